"""`agentd backup` and `agentd restore`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, answer
from agentd.cli.plain import counted
from agentd.cli.report import AsJson, ConfigPath, reporting, show
from agentd.paths import daemon_places

File = Annotated[Path, typer.Argument(metavar="FILE", help="The archive, a .tar.gz.")]


def backup(file: File, as_json: AsJson = False) -> None:
    """Write everything into one file while the daemon runs, and check it."""
    path = str(file.expanduser().absolute())
    answer("backup", _written, as_json=as_json, within=MODEL_SECONDS, file=path)


def restore(
    file: File,
    force: Annotated[
        bool, typer.Option("--force", help="Move what is there aside; it is not deleted.")
    ] = False,
    config: ConfigPath = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup in place; the daemon must not run."""
    from agentd.clock import SystemClock
    from agentd.restoring import restore as put

    places = daemon_places(os.environ, config)
    with reporting(as_json=as_json):
        now = SystemClock("UTC").now()
        result = put(file.expanduser(), places, os.environ, now, force=force)
        show(result, _restored, as_json=as_json)


def _written(result: dict[str, Any]) -> str:
    files, size = counted(result["files"], "file"), counted(result["bytes"], "byte")
    return f"{files} in {result['file']}, {size}, checked"


def _restored(result: dict[str, Any]) -> str:
    lines = [f"{counted(result['restored'], 'file')} restored; start the daemon with `agentd up`"]
    lines += [f"moved aside: {path}" for path in result["aside"]]
    if result["forgotten"] is None:
        lines.append(
            "nothing here tells what was forgotten after the backup was made: if something was, it is"
            " known again, so forget it once more"
        )
    elif result["forgotten"]:
        lines.append(
            f"forgotten again: {counted(result['forgotten'], 'fact')} forgotten since the backup; the"
            " daemon erases the words when it starts"
        )
    return "\n".join(lines)
