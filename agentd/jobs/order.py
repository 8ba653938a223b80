"""What somebody wants done when, as it was written; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeVar
from zoneinfo import ZoneInfo

from agentd.domain.durations import format_duration, parse_duration, parse_zone
from agentd.domain.job import (
    At,
    Cron,
    Every,
    JobKind,
    JobSession,
    Misfire,
    NewJob,
    Schedule,
)
from agentd.errors import InvalidRequest

if TYPE_CHECKING:
    from agentd.jobs.settings import JobsSettings

_MOST_CHARS = 4_000
_LONGEST = timedelta(days=3660)
_ONE_OF = (
    'give one of --at "2026-12-01 09:00", --in 2h, --every 1d, --cron "0 9 * * 1-5" '
    "(a tool call: at, every or cron)"
)


@dataclass(frozen=True, slots=True)
class Order:
    """The words of a command or tool call; "" is what was not given."""

    text: str
    at: str = ""
    within: str = ""
    every: str = ""
    cron: str = ""
    zone: str = ""
    kind: str = "remind"
    session: str = "isolated"
    misfire: str = ""
    model: str = ""
    created_by: Literal["owner", "model"] = "owner"


def understood(order: Order, now: datetime, zone: ZoneInfo, settings: JobsSettings) -> NewJob:
    """The job that is meant; `zone` counts where the order names none. Whether a cron expression
    makes sense is not looked at. Raises InvalidRequest with a right example.
    """
    text = order.text.strip()
    if not text:
        raise InvalidRequest("the job has no text", cure="say what is to be done")
    if len(text) > _MOST_CHARS:
        raise InvalidRequest(
            f"the text has {len(text)} characters; at most {_MOST_CHARS} are allowed",
            cure="put the details into a file, and name the file",
        )
    return NewJob(
        text=text,
        schedule=_schedule(order, now, _zone(order.zone) or zone, settings),
        kind=_word(JobKind, order.kind, "kind"),
        session=_word(JobSession, order.session, "session"),
        misfire=_word(Misfire, order.misfire or settings.misfire, "misfire"),
        model=order.model.strip(),
        created_by=order.created_by,
    )


def _schedule(order: Order, now: datetime, zone: ZoneInfo, settings: JobsSettings) -> Schedule:
    given = [word for word in (order.at, order.within, order.every, order.cron) if word.strip()]
    if len(given) != 1:
        what = "no time is given" if not given else "more than one kind of time is given"
        raise InvalidRequest(what, cure=_ONE_OF)
    if order.at.strip():
        return At(_instant(order.at.strip(), now, zone))
    if order.within.strip():
        return At(now + _duration(order.within, "in", timedelta()))
    if order.every.strip():
        return Every(_duration(order.every, "every", settings.min_interval), now)
    return Cron(" ".join(order.cron.split()), zone.key)


def _instant(text: str, now: datetime, zone: ZoneInfo) -> datetime:
    """The instant that is meant. A time that the clocks skip comes as much later, one that they
    repeat is the first.
    """
    example = f"{(now + timedelta(days=1)).astimezone(zone):%Y-%m-%d} 09:00"
    try:
        at = datetime.fromisoformat(text) if ":" in text else None
        instant = (
            None if at is None else (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)
        )
    except (ValueError, OverflowError):
        instant = None
    if instant is None:
        raise InvalidRequest(f"{text!r} is no date with a time", cure=f'write it like "{example}"')
    if instant <= now:
        told = f"{now.astimezone(zone):%Y-%m-%d %H:%M:%S}"
        msg = f"{text!r} is past: it is {told} now ({zone.key})"
        raise InvalidRequest(msg, cure=f'give a time to come, like "{example}"')
    return instant


def _duration(text: str, name: str, least: timedelta) -> timedelta:
    try:
        value = parse_duration(text)
    except ValueError:
        value = timedelta()
    if not value:
        raise InvalidRequest(
            f"{text!r} is no duration for {name!r}", cure='write it like "2h", "1h30m" or "1d"'
        )
    if value < least:
        msg = f"every {format_duration(value)} is too often"
        cure = f'"{format_duration(least)}" is the least ([jobs] min_interval)'
        raise InvalidRequest(msg, cure=cure)
    if value > _LONGEST:
        raise InvalidRequest(f"{text!r} is more than ten years", cure='write it like "30d"')
    return value


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if parse_zone(name) else None
    except ValueError as error:
        msg, _, cure = str(error).partition("; ")
        raise InvalidRequest(msg, cure=cure) from None


W = TypeVar("W", JobKind, JobSession, Misfire)


def _word(words: type[W], given: str, name: str) -> W:
    try:
        return words(given)
    except ValueError:
        known = " or ".join(f'"{word}"' for word in words)
        raise InvalidRequest(f"{given!r} is no {name}", cure=f"write {known}") from None
