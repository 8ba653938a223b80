"""`agentd jobs`; `add` takes a time in words, too, shows the date it means and asks for a yes."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from agentd.app.cli.ask import agree, owners_times, sockets
from agentd.app.cli.declared import group_of, tell
from agentd.app.cli.report import note, reporting
from agentd.core.clock import SystemClock
from agentd.core.errors import InvalidRequest
from agentd.core.times import parse_zone
from agentd.interfaces.client.connection import connect
from agentd.interfaces.commands.jobs import JOBS
from agentd.interfaces.commands.plain import visible

_MOST_CHARS = 100
_MINUTE = timedelta(minutes=1)
_MIDNIGHT = re.compile(r"0:00|24:00|\b00\b|12\s?a\.?m|midnight", re.IGNORECASE)


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
                "at": _confirm_moment(words, given.get("zone") or "", yes=yes, ask=not as_json),
            }
    tell(JOBS["add"], given, as_json=as_json)


app = group_of(JOBS, {"add": _add})


def _is_spelled(words: str) -> bool:
    """Return whether the daemon can parse the text itself: it is an ISO date or time."""
    try:
        datetime.fromisoformat(words.strip())
    except ValueError:
        return False
    return True


def _confirm_moment(words: str, zone: str, *, yes: bool, ask: bool) -> str:
    """Return the moment that the words mean, as ISO text, after the user has confirmed it. Raises
    InvalidRequest, DaemonUnreachable.
    """
    clock = SystemClock(_zone(zone) or asyncio.run(_daemons_zone()))
    at = parse_moment(words, clock.now(), clock.zone)
    note(f"{visible(words)!r} is {at:%A, %Y-%m-%d %H:%M} ({clock.zone.key})")
    agree("Is that what you mean?", yes=yes, ask=ask)
    return at.isoformat(timespec="seconds")


def _zone(name: str) -> str:
    try:
        return parse_zone(name)
    except ValueError as error:
        msg, _, cure = str(error).partition("; ")
        raise InvalidRequest(msg, cure=cure) from None


async def _daemons_zone() -> str:
    async with connect(sockets()) as connection:
        return (await owners_times(connection)).clock.zone.key


def parse_moment(
    words: str,
    now: datetime,
    zone: ZoneInfo,
    find: Callable[[str], object | None] = importlib.util.find_spec,
) -> datetime:
    """Return the future moment that the words mean, relative to `now` in `zone`, in whole seconds.
    Raises InvalidRequest if the words mean no moment, name no time of day or mean a past moment, or
    if dateparser is not installed. `find` looks a package up.
    """
    local = now.astimezone(zone)
    example = f"{local + timedelta(days=1):%Y-%m-%d} 09:00"
    told = repr(words[:_MOST_CHARS])
    if find("dateparser") is None:
        extra = "pip install 'agentd-daemon[dates]'"
        cure = f'write it like "{example}"; words need the extra `dates`: {extra}'
        raise InvalidRequest(f"{told} is no date with a time", cure=cure)
    found = _parse_date(words, local) if len(words) <= _MOST_CHARS else None
    if found is None:
        cure = f'write it like "tomorrow 9am" or "{example}"'
        raise InvalidRequest(f"{told} means no date with a time", cure=cure)
    at = found.astimezone(zone).replace(microsecond=0)
    # dateparser reads a day without a time of day as that day at the current time, or at midnight.
    # A result that changes with the current time is the former.
    is_midnight = (at.hour, at.minute) == (0, 0) and not _MIDNIGHT.search(words)
    if is_midnight or _parse_date(words, local + _MINUTE) != found:
        cure = 'name one, like "tomorrow 9am"; a span from now on is --in 2h'
        raise InvalidRequest(f"{told} names no time of day", cure=cure)
    if at <= now:
        msg = f"{told} is past: it means {at:%Y-%m-%d %H:%M} ({zone.key})"
        raise InvalidRequest(msg, cure=f'give a time to come, like "{example}"')
    return at


def _parse_date(words: str, local: datetime) -> datetime | None:
    import dateparser

    found: datetime | None = dateparser.parse(
        words,
        settings={
            "RELATIVE_BASE": local.replace(tzinfo=None),
            "TIMEZONE": str(local.tzinfo),
            "PREFER_DATES_FROM": "future",
            "RETURN_AS_TIMEZONE_AWARE": True,
        },
    )
    return found
