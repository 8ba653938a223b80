"""Watched entries of HEARTBEAT.md: the read-only tool calls of an entry, and their last answers."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from agentd.core.erasure import MASK
from agentd.core.message import JsonObject
from agentd.core.text import shorten, well_formed

MOST_CALLS = 8  # per entry; of more calls in a first look, only the first ones are repeated
_KEPT = 32_000  # characters of an answer that are stored, to show later what has changed
_SHOWN = 12_000  # characters of all changes that a model is shown
_AROUND = 3  # lines before and after a change
_MOST_LINES = 800  # longest diff; beyond that, only added and removed lines are listed
_LONG = 400  # longest line that is compared as one
_PIECE = re.compile(r"[^,}\]]{0,200}[,}\]]|[^,}\]]{1,200}")


class WatchedCall(Struct, frozen=True):
    """A tool call and its answer as the model sees it.

    `digest` is the SHA-256 (hex) of the whole answer, because only the beginning of a long one is
    stored in `answer`. It is "" once words were erased from `answer`, since it would reveal them.
    `repeats`: the call only reads, so it may be repeated.
    """

    name: str
    input: JsonObject
    answer: str
    digest: str
    repeats: bool = True

    @classmethod
    def answered(
        cls, name: str, given: JsonObject, answer: str, *, repeats: bool = True
    ) -> WatchedCall:
        """Return the call with a new answer."""
        digest = hashlib.sha256(answer.encode(errors="replace")).hexdigest()
        return cls(name, given, answer[:_KEPT], digest, repeats)

    @property
    def key(self) -> str:
        """An identifier of the call: equal names and inputs give equal keys."""
        return json.dumps([self.name, dict(self.input)], sort_keys=True)


class WatchedEntry(Struct, frozen=True):
    """What is stored of one watched entry. `entry` is its hash; `told` is what the user was last
    told about it.
    """

    entry: str
    calls: tuple[WatchedCall, ...] = ()
    looked_at: datetime | None = None  # when the stored answers were given
    told: str = ""
    told_at: datetime | None = None
    failing_since: datetime | None = None
    failure: str = ""  # the error of the last look, in words of agentd or of a server

    @property
    def repeats(self) -> bool:
        """Whether repeating the entry's calls shows if something has changed. Otherwise (there are
        none, or one may do more than read) a model looks at every beat.
        """
        return bool(self.calls) and all(call.repeats for call in self.calls)

    def as_json(self) -> dict[str, Any]:
        """Return the shape in `agentd heartbeat explain`, without the tools' answers."""
        return {
            "calls": [{"name": c.name, "input": dict(c.input)} for c in self.calls],
            "asks_model": "when an answer changes" if self.repeats else "at every beat",
            "looked_at": self.looked_at.isoformat() if self.looked_at else None,
            "told": self.told,
            "told_at": self.told_at.isoformat() if self.told_at else None,
            "failing_since": self.failing_since.isoformat() if self.failing_since else None,
            "failure": self.failure,
        }


def merge_answers(
    old: Iterable[WatchedCall], new: Iterable[WatchedCall]
) -> tuple[WatchedCall, ...]:
    """Return the old calls in order, with each changed answer replaced by the new one."""
    now = {call.key: call for call in new}
    return tuple(
        fresh if (fresh := now.get(call.key)) is not None and not is_same(call, fresh) else call
        for call in old
    )


def is_same(old: WatchedCall, new: WatchedCall) -> bool:
    """Whether the call gives the same answer as before. Where words were erased from the old
    answer, the new one may have any words.
    """
    return old.digest == new.digest if old.digest else not _diff(old.answer, new.answer)


def changes(before: Mapping[str, WatchedCall], now: Iterable[WatchedCall]) -> str:
    """Return a diff of the answer of each changed call; "" if none has changed. JSON on one line is
    compared value by value.

    The result is cut to 12,000 characters, and says so; then only additions are shown. Takes a
    tenth of a second for the longest answers that are stored.
    """
    pairs = [(before.get(call.key), call) for call in now]
    changed = [(old, call) for old, call in pairs if old is None or not is_same(old, call)]
    room = _SHOWN // max(1, len(changed))
    parts: list[str] = []
    for old, call in changed:
        lines = _diff(old.answer if old else "", call.answer)
        if sum(map(len, lines)) > room:
            lines = ["(what is gone is left out)", *(line for line in lines if line[0] == "+")]
        shown = "\n".join(lines) or "(beyond what is kept of the answer)"
        parts.append(f"{_call_label(call)}\n{shorten(shown, room)}")
    return well_formed("\n\n".join(parts))


def answers(calls: Iterable[WatchedCall]) -> str:
    """Return the answers of the calls, cut to 12,000 characters, which the text then says."""
    text = "\n\n".join(f"{_call_label(call)}\n{call.answer}" for call in calls)
    return well_formed(shorten(text, _SHOWN))


def _call_label(call: WatchedCall) -> str:
    return f"{call.name} {json.dumps(dict(call.input), ensure_ascii=False, sort_keys=True)}"


def _diff(old: str, new: str) -> list[str]:
    """Return the lines that differ, with prefix `-` or `+`, and some context; empty if none
    differ.
    """
    after = list(_lines(new))
    before = _restore_lines(list(_lines(old)), after)
    if before == after:
        return []
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    start, end = max(0, first - _AROUND), max(0, last - _AROUND)
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    if max(len(before), len(after)) > _MOST_LINES:
        gone, come = Counter(before) - Counter(after), Counter(after) - Counter(before)
        return [*(f"-{line}" for line in gone), *(f"+{line}" for line in after if line in come)]
    # The first two lines of a unified diff name the files.
    return list(difflib.unified_diff(before, after, n=_AROUND, lineterm=""))[2:]


def _restore_lines(before: list[str], after: list[str]) -> list[str]:
    """Return the old lines; a line with erased words is replaced by the first new line that may be
    the same.
    """
    return [
        next((new for new in after if _fits(line, new)), line) if MASK in line else line
        for line in before
    ]


def _fits(masked: str, line: str) -> bool:
    """Whether `line` is the masked line with any words in place of the masks."""
    first, *rest = masked.split(MASK)
    if not line.startswith(first):
        return False
    place = len(first)
    for part in rest[:-1]:
        place = line.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return line[place:].endswith(rest[-1])


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of an answer: for JSON on one line a line per value, for other long lines
    pieces.
    """
    for line in text.splitlines():
        if line.lstrip()[:1] in ("{", "["):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                pass  # no JSON, or truncated JSON
            else:
                yield from json.dumps(value, ensure_ascii=False, indent=1).splitlines()
                continue
        if len(line) <= _LONG:
            yield line
            continue
        yield from _PIECE.findall(line)
