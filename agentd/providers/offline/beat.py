"""The offline provider's replies to a heartbeat and to a job's question. Pure.

A beat's message contains the checklist: dated entries, and open boxes. Without a language model
nobody can act on prose, so prose alone gives a quiet beat; due entries and open boxes are reported.
Nor can a job's request be carried out, but its text, sent at the job's time, still reminds the
owner.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agentd.core.checklist import Item, ItemPart, parse
from agentd.core.prompt import Prompt
from agentd.providers.offline.conversation import FinalText, Reply, own_words

QUIET = "HEARTBEAT_OK"
_HEADING = "## HEARTBEAT.md\n\n"
_JOB_HEADING = "## Job\n\n"
_TIME = "\n\nCurrent time: "
_NOW = re.compile(r"(\d{4}-\d{2}-\d{2} \d{2}:\d{2}) \(\w+, ([\w/+-]{1,64})\)")
_BOX = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s+\[ ?\](?=\s|$)\s*")
_BULLET = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s+")


def reply(prompt: Prompt) -> Reply:
    """Return the entries that need the owner, or HEARTBEAT_OK."""
    head, _, time = own_words(prompt).rpartition(_TIME)
    _, _, text = head.partition(_HEADING)
    zone, now = _now(time)
    parts = parse(text, zone).parts
    due = [_with_date(p.item, now) for p in parts if p.item and _is_due(p.item, now)]
    open_boxes = [_plain(p) for p in parts if p.is_open and _BOX.match(p.lines[0].strip())]
    lines = [*_titled_list("Due now:", due), *_titled_list("Still open:", open_boxes)]
    return FinalText("\n".join(lines) or QUIET)


def reply_to_job(prompt: Prompt) -> Reply:
    """Return the job's own text."""
    head, _, _ = own_words(prompt).rpartition(_TIME)
    _, _, text = head.partition(_JOB_HEADING)
    return FinalText(text.strip() or QUIET)


def _now(text: str) -> tuple[ZoneInfo, datetime | None]:
    match = _NOW.match(text)
    if match is None:
        return ZoneInfo("UTC"), None
    try:
        zone = ZoneInfo(match[2])
        return zone, datetime.fromisoformat(match[1]).replace(tzinfo=zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC"), None


def _is_due(item: Item, now: datetime | None) -> bool:
    return now is None or item.due is None or item.due <= now.astimezone(UTC)


def _with_date(item: Item, now: datetime | None) -> str:
    """Return the entry's text; a recurring one with the time, so that it is not taken for a
    repetition.
    """
    text = _without_bullet(item.text)
    return f"{text} [{now:%Y-%m-%d %H:%M}]" if item.every and now else text


def _plain(part: ItemPart) -> str:
    return _without_bullet("\n".join(line.strip() for line in part.lines))


def _without_bullet(text: str) -> str:
    first, *rest = text.split("\n")
    first = _BOX.sub("", first.strip(), count=1) if _BOX.match(first) else _BULLET.sub("", first, 1)
    return "\n  ".join((first, *rest))


def _titled_list(title: str, entries: list[str]) -> list[str]:
    shown = [f"- {entry}" for entry in dict.fromkeys(entries) if entry.strip()]
    return [title, *shown] if shown else []
