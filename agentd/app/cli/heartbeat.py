"""`agentd heartbeat`, where the command line says more than the method takes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentd.app.cli.declared import group_of, tell
from agentd.interfaces.commands.heartbeat import HEARTBEAT


def _pause(
    given: dict[str, Any],
    *,
    resume: Annotated[bool, typer.Option("--resume", help="Let the beats go on.")] = False,
    as_json: bool,
) -> None:
    if resume and given["duration"] is not None:
        raise typer.BadParameter("give a duration or --resume, not both")
    tell(HEARTBEAT["pause"], given, as_json=as_json)


app = group_of(HEARTBEAT, {"pause": _pause})
