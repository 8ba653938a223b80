"""`agentd export`: everything that is yours, as plain files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, sockets
from agentd.cli.report import AsJson, ConfigFile, reporting, show
from agentd.commands.plain import counted
from agentd.paths import daemon_places

Target = Annotated[
    Path, typer.Argument(metavar="DIR|FILE.tar", help="A new folder, or a new archive.")
]


def export(target: Target, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Write everything that is yours as plain files: workspace, transcripts, alerts, beats, costs."""
    import asyncio

    from agentd.cli.exporting import write_all
    from agentd.config import read

    with reporting(as_json=as_json):
        places = daemon_places(os.environ, config)
        named = read(places.config_file, os.environ).config.workspace.path
        workspace = Path(named).expanduser() if named else places.workspace
        done = asyncio.run(
            write_all(target, workspace, places.config_file, sockets(), MODEL_SECONDS)
        )
        show(done, _told, as_json=as_json)


def _told(done: dict[str, Any]) -> str:
    return f"{counted(done['files'], 'file')}, {counted(done['bytes'], 'byte')}: {done['path']}"
