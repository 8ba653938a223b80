"""`agentd jobs`, where a moment may be told in words: what is understood is shown, and asked about."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from agentd.app.cli.ask import agree, owners_times, sockets
from agentd.app.cli.declared import grouped, tell
from agentd.app.cli.report import note, reporting
from agentd.interfaces.commands.jobs import JOBS
from agentd.interfaces.commands.plain import visible


def _add(
    given: dict[str, Any],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask about a time in words.")] = False,
    as_json: bool,
) -> None:
    words = given.get("at") or ""
    if words.strip() and not _is_spelled(words):
        with reporting(as_json=as_json):
            given = {
                **given,
                "at": _agreed(words, given.get("zone") or "", yes=yes, ask=not as_json),
            }
    tell(JOBS["add"], given, as_json=as_json)


app = grouped(JOBS, {"add": _add})


def _is_spelled(words: str) -> bool:
    """Whether the daemon reads it by itself."""
    try:
        datetime.fromisoformat(words.strip())
    except ValueError:
        return False
    return True


def _agreed(words: str, zone: str, *, yes: bool, ask: bool) -> str:
    """The moment that the words mean, once the user has said so. Raises InvalidRequest, DaemonUnreachable."""
    import asyncio

    from agentd.app.cli.moments import understood
    from agentd.core.clock import SystemClock

    clock = SystemClock(_zone(zone) or asyncio.run(_daemons_zone()))
    at = understood(words, clock.now(), clock.zone)
    note(f"{visible(words)!r} is {at:%A, %Y-%m-%d %H:%M} ({clock.zone.key})")
    agree("Is that what you mean?", yes=yes, ask=ask)
    return at.isoformat(timespec="seconds")


def _zone(name: str) -> str:
    from agentd.core.durations import parse_zone
    from agentd.core.errors import InvalidRequest

    try:
        return parse_zone(name)
    except ValueError as error:
        msg, _, cure = str(error).partition("; ")
        raise InvalidRequest(msg, cure=cure) from None


async def _daemons_zone() -> str:
    from agentd.interfaces.client.connection import connected

    async with connected(sockets()) as connection:
        return (await owners_times(connection)).clock.zone.key
