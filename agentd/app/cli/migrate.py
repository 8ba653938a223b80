"""`agentd import`: import the workspace and transcripts of another agent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.app.cli.ask import MODEL_SECONDS, fit_to_terminal, sockets
from agentd.app.cli.group import CommandGroup
from agentd.app.cli.other_agents import NOT_ASKED, AgentFolder, move
from agentd.app.cli.report import AsJson, note, reporting, show
from agentd.core.workspace import FACTS_PATH
from agentd.interfaces.commands.plain import revealed, table

app = CommandGroup()

Folder = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="Its folder.", exists=True, file_okay=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")]

Trust = Annotated[
    bool, typer.Option("--trust", help="Take files that instruct the agent without a question.")
]

_LONGEST = 200  # characters of a suspicious line that are shown
_CURE = (
    "left out, since prompts would carry words that read like orders to the model: import them on "
    "a terminal, which shows them and asks, or take the lines out and import again"
)
_UNASKED = (
    "files that tell the agent what to do are taken on a terminal, which shows them and asks, or "
    "with --trust, if they are yours"
)


@app.command()
def openclaw(
    folder: Folder, dry_run: DryRun = False, trust: Trust = False, as_json: AsJson = False
) -> None:
    """Take over OpenClaw's workspace and transcripts."""
    _move("openclaw", folder, dry_run=dry_run, trust=trust, as_json=as_json)


@app.command()
def rustyclaw(
    folder: Folder, dry_run: DryRun = False, trust: Trust = False, as_json: AsJson = False
) -> None:
    """Take over RustyClaw's workspace and transcripts."""
    _move("rustyclaw", folder, dry_run=dry_run, trust=trust, as_json=as_json)


def _move(agent: str, folder: Path, *, dry_run: bool, trust: bool, as_json: bool) -> None:

    with reporting(as_json=as_json):
        house = AgentFolder.of(agent, folder)
        asks = not dry_run and not as_json and sys.stdin.isatty() and sys.stderr.isatty()
        permit = (lambda *_: True) if trust else _ask if asks else None
        done = asyncio.run(move(house, sockets(), MODEL_SECONDS, permit, dry_run=dry_run))
        show(
            {**done, "dry_run": dry_run},
            lambda all_: fit_to_terminal(_as_text(all_)),
            as_json=as_json,
        )
    if any(step["action"] == "refused" for step in (*done["files"], *done["sessions"])):
        raise typer.Exit(1)


def _ask(path: str, text: str, warnings: Sequence[Mapping[str, Any]]) -> bool:
    """Show the suspicious lines of a file, or the whole file if it has none, and return whether the
    user wants to import the file.
    """
    lines = text.split("\n")
    if not warnings:
        is_page = path.casefold() == FACTS_PATH
        would = "be facts about you" if is_page else "tell the agent what to do"
        note(f"{path} would {would}:")
        note("\n".join(f"  {revealed(line)}" for line in lines))
        return typer.confirm("Import it?", default=False, err=True)
    note(f"{path} would stand in the agent's prompts; look at these lines of it:")
    for found in warnings:
        line = revealed(lines[found["line"] - 1].strip())
        start = max(0, found["column"] - _LONGEST // 2)
        part = line if len(line) <= _LONGEST else f"…{line[start : start + _LONGEST]}…"
        note(f"  {found['line']}:{found['column']} {found['reason']}\n      {part}")
    return typer.confirm("Import it all the same?", default=False, err=True)


def _as_text(done: Mapping[str, Any]) -> str:
    files = table(done["files"], ("path", "action", "reason"), "no workspace files found")
    sessions = table(done["sessions"], ("key", "rows", "action", "reason"), "no transcripts found")
    parts = [files, *_suspicions(done["files"]), sessions]
    if done["config"]:
        keys = table(done["config"], ("theirs", "ours", "value"), "")
        parts.append(f"settings to set yourself, in config.toml:\n{keys}")
    if done["dry_run"]:
        parts.append("nothing was changed")
    return "\n\n".join(parts)


def _suspicions(files: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of the suspicious passages in files, and advice about the files that were left
    out.
    """
    rows = [
        {**found, "path": f"{step['path']}:{found['line']}:{found['column']}"}
        for step in files
        for found in step.get("warnings", ())
    ]
    if rows:
        yield "looks suspicious:\n" + table(rows, ("path", "severity", "reason"), "")
    if any(step["action"] == "refused" and "warnings" in step for step in files):
        yield _CURE
    if any(step["reason"] == NOT_ASKED for step in files):
        yield _UNASKED
