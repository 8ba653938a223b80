"""`agentd import`: moving in from another agent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, sockets
from agentd.cli.group import Group
from agentd.cli.plain import table
from agentd.cli.report import AsJson, reporting, show

app = Group("Move in from another agent; nothing that is yours is overwritten.")

Folder = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="Its folder.", exists=True, file_okay=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")]


@app.command()
def openclaw(folder: Folder, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Take over OpenClaw's workspace and transcripts."""
    _move("openclaw", folder, dry_run=dry_run, as_json=as_json)


@app.command()
def rustyclaw(folder: Folder, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Take over RustyClaw's workspace and transcripts."""
    _move("rustyclaw", folder, dry_run=dry_run, as_json=as_json)


def _move(agent: str, folder: Path, *, dry_run: bool, as_json: bool) -> None:
    import asyncio

    from agentd.cli.moving import House, move

    with reporting(as_json=as_json):
        house = House.of(agent, folder)
        done = asyncio.run(move(house, sockets(), MODEL_SECONDS, dry_run=dry_run))
        show({**done, "dry_run": dry_run}, _told, as_json=as_json)
    if any(step["action"] == "refused" for step in (*done["files"], *done["sessions"])):
        raise typer.Exit(1)


def _told(done: Mapping[str, Any]) -> str:
    files = table(done["files"], ("path", "action", "reason"), "no workspace files found")
    sessions = table(done["sessions"], ("key", "rows", "action", "reason"), "no transcripts found")
    parts = [files, sessions]
    if done["config"]:
        keys = table(done["config"], ("theirs", "ours", "value"), "")
        parts.append(f"settings to set yourself, in config.toml:\n{keys}")
    if done["dry_run"]:
        parts.append("nothing was changed")
    return "\n\n".join(parts)
