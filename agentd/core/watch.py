"""What an entry of HEARTBEAT.md watches: calls of tools that only read, and what they answered last."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentd.core.erasure import MASK
from agentd.core.message import JsonObject
from agentd.core.text import shortened, well_formed

MOST_CALLS = 8  # of one entry; a first look that makes more repeats the first of them
_KEPT = 32_000  # characters of an answer that are kept, to show what has changed in it
_SHOWN = 12_000  # characters of all changes that a model is shown
_AROUND = 3  # lines before and after a change
_MOST_LINES = 800  # that are laid side by side; of more only what is new and what is gone is told
_LONG = 400  # characters of a line that is compared as one
_PIECE = re.compile(r"[^,}\]]{0,200}[,}\]]|[^,}\]]{1,200}")


@dataclass(frozen=True, slots=True)
class WatchedCall:
    """A call, and its answer as models are shown it. `digest` is the SHA-256 of that, in hex, since of long
    ones only the beginning is kept; "" once words were erased from `answer`, which it would tell. `repeats`
    says that it may be made again: it only reads.
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
        """The call with an answer that has just come."""
        digest = hashlib.sha256(answer.encode(errors="replace")).hexdigest()
        return cls(name, given, answer[:_KEPT], digest, repeats)

    @property
    def key(self) -> str:
        """The same for the same call."""
        return json.dumps([self.name, dict(self.input)], sort_keys=True)


@dataclass(frozen=True, slots=True)
class WatchedEntry:
    """What is known of one entry. `entry` is its hash, `told` what its owner was told last about it."""

    entry: str
    calls: tuple[WatchedCall, ...] = ()
    looked_at: datetime | None = None  # when the calls answered what is kept of them
    told: str = ""
    told_at: datetime | None = None
    failing_since: datetime | None = None
    failure: str = ""  # why the last look failed, in words of agentd or of a server

    @property
    def repeats(self) -> bool:
        """Whether its calls tell by themselves that something has changed. Where one of them may do more
        than read, or there are none, a model looks at every beat.
        """
        return bool(self.calls) and all(call.repeats for call in self.calls)

    def as_json(self) -> dict[str, Any]:
        """The shape in `agentd heartbeat explain`: without what the tools answered."""
        return {
            "calls": [{"name": c.name, "input": dict(c.input)} for c in self.calls],
            "asks_model": "when an answer changes" if self.repeats else "at every beat",
            "looked_at": self.looked_at.isoformat() if self.looked_at else None,
            "told": self.told,
            "told_at": self.told_at.isoformat() if self.told_at else None,
            "failing_since": self.failing_since.isoformat() if self.failing_since else None,
            "failure": self.failure,
        }


def answered(old: Iterable[WatchedCall], new: Iterable[WatchedCall]) -> tuple[WatchedCall, ...]:
    """The old calls in their order, with those of the new answers that are not the same."""
    now = {call.key: call for call in new}
    return tuple(
        fresh if (fresh := now.get(call.key)) is not None and not is_same(call, fresh) else call
        for call in old
    )


def is_same(old: WatchedCall, new: WatchedCall) -> bool:
    """Whether a call answers as it did. Words that were erased from the old answer may stand in the new."""
    return old.digest == new.digest if old.digest else not _diff(old.answer, new.answer)


def changes(before: Mapping[str, WatchedCall], now: Iterable[WatchedCall]) -> str:
    """What has changed in the answers, as a diff for each call; what stands on one line of JSON is compared
    by its values. "" where nothing has. Cut to 12,000 characters, which it says: what was added comes first.
    Takes a tenth of a second for the longest answers that are kept.
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
        parts.append(f"{_named(call)}\n{shortened(shown, room)}")
    return well_formed("\n\n".join(parts))


def answers(calls: Iterable[WatchedCall]) -> str:
    """What they answered, cut to 12,000 characters, which it says."""
    text = "\n\n".join(f"{_named(call)}\n{call.answer}" for call in calls)
    return well_formed(shortened(text, _SHOWN))


def _named(call: WatchedCall) -> str:
    return f"{call.name} {json.dumps(dict(call.input), ensure_ascii=False, sort_keys=True)}"


def _diff(old: str, new: str) -> list[str]:
    """The lines that differ, each behind `-` or `+`, with some around them; none where none does."""
    after = list(_lines(new))
    before = _unmasked(list(_lines(old)), after)
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
    # The first two lines of the library's own say which files these are.
    return list(difflib.unified_diff(before, after, n=_AROUND, lineterm=""))[2:]


def _unmasked(before: list[str], after: list[str]) -> list[str]:
    """The old lines; of those with erased words the new line, where that may be the same one."""
    return [
        next((new for new in after if _fits(line, new)), line) if MASK in line else line
        for line in before
    ]


def _fits(masked: str, line: str) -> bool:
    """Whether a line is a masked one with words in the places of the marks."""
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
    """The lines of an answer; of JSON on one line a line for each value, of other long ones pieces."""
    for line in text.splitlines():
        if line.lstrip()[:1] in ("{", "["):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                pass  # it is no JSON, or cut
            else:
                yield from json.dumps(value, ensure_ascii=False, indent=1).splitlines()
                continue
        if len(line) <= _LONG:
            yield line
            continue
        yield from _PIECE.findall(line)
