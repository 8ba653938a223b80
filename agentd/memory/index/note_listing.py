"""Looks at the workspace: what one has listed, sorted out, and whether one is needed before a search."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentd.core.health import Problem
from agentd.core.ports import Clock
from agentd.core.workspace import TreeEntry

DEPTH = 32  # levels of folders that are looked at
_MOST_NAMED = 20
_GROUP = 16  # files that are taken at once: more keep others waiting and are no quicker
_GROUP_BYTES = 4 * 1024 * 1024


def sorted_out(
    entries: Iterable[TreeEntry],
) -> tuple[dict[str, TreeEntry], list[str]]:
    """The notes by path, and the folders into which nobody has looked."""
    notes: dict[str, TreeEntry] = {}
    deep: list[str] = []
    for entry in entries:
        if entry.is_dir:
            if entry.path.count("/") - entry.path.startswith("@") == DEPTH:
                deep.append(entry.path)
        elif entry.path.casefold().endswith(".md"):
            notes[entry.path] = entry
    return notes, deep


def too_deep(folders: Sequence[str]) -> Iterator[Problem]:
    """The first of them, and how many more there are."""
    cure = "Move it up."
    for path in folders[:_MOST_NAMED]:
        text = f"{path} is {DEPTH} folders deep: nothing in it is searched"
        yield Problem("folder_too_deep", text, cure)
    if (more := len(folders) - _MOST_NAMED) > 0:
        yield Problem("folder_too_deep", f"{more} more folders are as deep", cure)


def groups(entries: Sequence[TreeEntry]) -> Iterator[list[TreeEntry]]:
    """The entries in groups whose files fit into memory together."""
    group: list[TreeEntry] = []
    size = 0
    for entry in entries:
        if group and (len(group) == _GROUP or size + entry.size > _GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(entry)
        size += entry.size
    if group:
        yield group


def is_scope(path: str) -> bool:
    """Whether it is the root of another workspace."""
    return path.startswith("@") and path.count("/") == 1


CHEAP = 0.010  # seconds: a look that takes no longer is not worth saving
_LAST = 10  # looks whose quickest counts: others may have kept one waiting


@dataclass(frozen=True, slots=True)
class Look:
    """One that has begun."""

    mark: Hashable | None
    began: float


class Freshness:
    """Keeps what looks cost, and what had been told of changes when the last one began."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._mark: Callable[[], Hashable | None] = lambda: None
        self._costs: deque[float] = deque(maxlen=_LAST)
        self._level: Hashable | None = None

    def trust(self, mark: Callable[[], Hashable | None]) -> None:
        """`mark` gives another value whenever a change is told; None while changes may go untold."""
        self._mark = mark

    @property
    def is_sure(self) -> bool:
        """Whether looking would cost something and find nothing."""
        is_cheap = min(self._costs, default=0.0) < CHEAP
        return not is_cheap and self._level is not None and self._mark() == self._level

    def begin(self) -> Look:
        """A look begins."""
        return Look(self._mark(), self._clock.monotonic())

    def listed(self, look: Look) -> None:
        """All files have been listed, which is what a look costs where nothing has changed."""
        self._costs.append(self._clock.monotonic() - look.began)

    def settle(self, look: Look) -> None:
        """What the look has found is taken in."""
        self._level = look.mark

    def lose(self) -> None:
        """Something is to be taken in."""
        self._level = None
