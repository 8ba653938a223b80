"""`agentd heartbeat`; its `pause` has an option that the method does not have: `--resume`."""

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
    if not resume and given["duration"] is None:
        msg = 'say for how long, like "30m", "2h" or "1d12h"; --resume lets the beats go on'
        raise typer.BadParameter(msg)
    tell(HEARTBEAT["pause"], given, as_json=as_json)


app = group_of(HEARTBEAT, {"pause": _pause})
