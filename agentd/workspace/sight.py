"""Who may see which file. No I/O.

The owner's sessions see everything of the user's own workspace. Sessions in which others read along
(groups) and isolated ones see none of the owner's private files: USER, MEMORY, HEARTBEAT and
BOOTSTRAP in any copy or case (`memory.old.md`, `MEMORY (1).md`, `user-2025.md`), everything below
the memory folder and its aliases, and whatever is named like a day. They do see SOUL, AGENTS,
TOOLS, IDENTITY, README and the other files and folders that the user or the agent has made
(`projects/…`), since a group works on something.

Another scope is seen by the owner alone, and without its identity files: whose agent this is, is
said by the user's own workspace only. Names count wherever they stand in a path, and folded, so
that neither a case-insensitive disk nor a copy in a folder shows what the plain name hides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentd.domain.turn import Kind
from agentd.workspace.names import Name, fold

_PRIVATE = frozenset({"user", "memory", "heartbeat", "bootstrap"})
_IDENTITY = frozenset({"agents", "soul", "user", "identity", "tools", "bootstrap", "heartbeat"})
_WORD = re.compile(r"[^\W_]+")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class Sight:
    """Answers whether a kind of session may know of a file."""

    def __init__(self, daily_folders: Iterable[str]) -> None:
        parts = (part for folder in daily_folders for part in folder.split("/"))
        self._private = _PRIVATE | {_stem(part) for part in parts}

    def sees(self, name: Name, kind: Kind) -> bool:
        """Whether the file exists for such a session."""
        if name.scope:
            return kind is Kind.MAIN and not any(_stem(p) in _IDENTITY for p in name.parts)
        return kind is Kind.MAIN or not self._is_private(name)

    def _is_private(self, name: Name) -> bool:
        return any(
            _first_word(p) in _PRIVATE or _stem(p) in self._private or _DAY.match(fold(p))
            for p in name.parts
        )


def _stem(part: str) -> str:
    return fold(part).partition(".")[0].strip()


def _first_word(part: str) -> str:
    """What programs and people leave standing when they name a copy: `#memory.md#`, `memory-1`."""
    found = _WORD.search(fold(part))
    return found.group() if found else ""
