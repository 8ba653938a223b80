"""The recipes of the pages: what they show is taken, and does with the real packages what they
say.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from agentd.app.config import load
from agentd.core.clock import SystemClock
from agentd.interfaces.mcp.mcp_settings import McpServer
from tests.mcp.servers import running, server

DOCS = Path(__file__).parents[2] / "docs"
CLOCK = SystemClock("UTC")
# What each package calls its program, and what needs no account and no browser of it.
PROGRAMS = {
    "@modelcontextprotocol/server-filesystem": "mcp-server-filesystem",
    "@modelcontextprotocol/server-memory": "mcp-server-memory",
    "@playwright/mcp": "playwright-mcp",
}


def blocks() -> list[str]:
    """Every piece of a configuration that the pages about tools of others show."""
    pages = ("mcp.md", "watching.md", "web.md")
    texts = [(DOCS / page).read_text(encoding="utf-8") for page in pages]
    return [block for text in texts for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)]


def servers(folder: Path) -> dict[str, McpServer]:
    """Those of the pages by name."""
    found: dict[str, McpServer] = {}
    for number, block in enumerate(blocks()):
        file = folder / f"{number}.toml"
        file.write_text(block)
        found |= load(file, {}).mcp.servers
    return found


def test_every_configuration_that_the_pages_show_is_taken(tmp_path: Path) -> None:
    assert {"files", "shared-memory", "calendar", "browser", "github", "mail", "letters"} == set(
        servers(tmp_path)
    )


@pytest.mark.parametrize(
    ("name", "tool", "given", "answer"),
    [
        ("files", "list_directory", {"path": "{folder}"}, "note.md"),
        ("shared-memory", "read_graph", {}, "entities"),
        ("browser", "", {}, ""),  # it starts without a browser
    ],
)
async def test_the_recipe_works_with_the_package(
    tmp_path: Path, name: str, tool: str, given: dict[str, str], answer: str
) -> None:
    recipe = servers(tmp_path)[name]
    npx, _, package, *rest = recipe.command
    program = shutil.which(PROGRAMS[package])
    if program is None:
        pytest.skip(f"needs `npm install -g {package}`")
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "note.md").write_text("a note\n")
    places = {f"/home/me/{name}": str(folder) for name in ("papers", "browser")}
    places["/home/me/shared-memory.json"] = f"{tmp_path}/m.json"
    command = (program, *(places.get(one, one) for one in rest))
    env = {key: places[value] for key, value in recipe.env.items()}
    one = server(tmp_path, CLOCK, recipe.model_copy(update={"command": command, "env": env}))
    async with running(one):
        await one.refresh()
        assert set(recipe.tools) <= set(one.catalogue.listing.entries)
        filled = {key: value.format(folder=folder) for key, value in given.items()}
        if tool:
            assert answer in (await one.call(tool, filled)).text
    assert npx == "npx"
