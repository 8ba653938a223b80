"""What an entry of HEARTBEAT.md watches: calls of tools that only read, and what they answered last."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentd.core.message import JsonObject

MOST_CALLS = 8  # of one entry; a first look that makes more repeats the first of them
_KEPT = 32_000  # characters of an answer that are kept, to show what has changed in it
_SHOWN = 12_000  # characters of all changes that a model is shown
_AROUND = 3  # lines before and after a change


@dataclass(frozen=True, slots=True)
class WatchedCall:
    """A call, and its answer as models are shown it. `digest` is the SHA-256 of the whole answer, in hex:
    what is cut or erased from `answer` later is no change. `repeats` says that it may be made again: it
    only reads.
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
class Watch:
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


def merged(old: Iterable[WatchedCall], new: Iterable[WatchedCall]) -> tuple[WatchedCall, ...]:
    """The calls of both in their order, each once, with the new answers where there are such."""
    calls = {call.key: call for call in old}
    calls.update((call.key, call) for call in new)
    return tuple(calls.values())


def changes(before: Mapping[str, WatchedCall], now: Iterable[WatchedCall]) -> str:
    """What has changed in the answers, as a unified diff for each call; what stands on one line of JSON is
    compared by its values. "" where nothing has. Cut to 12,000 characters, which it says.
    """
    parts: list[str] = []
    for call in now:
        old = before.get(call.key)
        if old is not None and old.digest == call.digest:
            continue
        lines = difflib.unified_diff(
            list(_lines(old.answer if old else "")),
            list(_lines(call.answer)),
            n=_AROUND,
            lineterm="",
        )
        shown = "\n".join(line for line in lines if not line.startswith(("--- ", "+++ ")))
        parts.append(f"{_named(call)}\n{shown or '(beyond what is kept of the answer)'}")
    return _shown(parts)


def answers(calls: Iterable[WatchedCall]) -> str:
    """What they answered, cut to 12,000 characters, which it says."""
    return _shown([f"{_named(call)}\n{call.answer}" for call in calls])


def _named(call: WatchedCall) -> str:
    return f"{call.name} {json.dumps(dict(call.input), ensure_ascii=False, sort_keys=True)}"


def _shown(parts: Iterable[str]) -> str:
    text = "\n\n".join(parts)
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}\n[… {len(text) - _SHOWN} more characters]"


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.lstrip()[:1] not in ("{", "["):
            yield line
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            yield line
            continue
        yield from json.dumps(value, ensure_ascii=False, indent=1).splitlines()
