"""Workspace scans: sort a listing into notes and folders that are too deep, and decide whether a
scan is needed before a search.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from msgspec import Struct

from agentd.core.health import Problem
from agentd.core.ports import Clock
from agentd.core.workspace import LISTED_DEPTH, TreeEntry

_MOST_NAMED = 20
_GROUP = 16  # files that are read at once: more would delay others and be no faster
_GROUP_BYTES = 4 * 1024 * 1024


def split_listing(
    entries: Iterable[TreeEntry],
) -> tuple[dict[str, TreeEntry], list[str]]:
    """Sort a listing into the notes by path, and the folders at the deepest level, whose contents
    are not listed.
    """
    notes: dict[str, TreeEntry] = {}
    deep: list[str] = []
    for entry in entries:
        if entry.is_dir:
            if entry.path.count("/") - entry.path.startswith("@") == LISTED_DEPTH:
                deep.append(entry.path)
        elif entry.path.casefold().endswith(".md"):
            notes[entry.path] = entry
    return notes, deep


def too_deep(folders: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each of the first folders, and one that counts the rest."""
    cure = "Move it up."
    for path in folders[:_MOST_NAMED]:
        text = f"{path} is {LISTED_DEPTH} folders deep: nothing in it is searched"
        yield Problem("folder_too_deep", text, cure)
    if (more := len(folders) - _MOST_NAMED) > 0:
        yield Problem("folder_too_deep", f"{more} more folders are as deep", cure)


def groups(entries: Sequence[TreeEntry]) -> Iterator[list[TreeEntry]]:
    """Yield the entries in groups small enough to hold their files in memory together."""
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
    """Whether the path is the root of another workspace."""
    return path.startswith("@") and path.count("/") == 1


CHEAP = 0.010  # seconds: a scan that takes less is always done
_LAST = 10  # scans of which the fastest counts, since other work may have delayed the rest


class Scan(Struct, frozen=True):
    """A scan that has begun."""

    mark: Hashable | None
    began: float


class Freshness:
    """Decides whether a scan can be skipped: records the cost of scans, and the mark at which the
    last one began.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._mark: Callable[[], Hashable | None] = lambda: None
        self._costs: deque[float] = deque(maxlen=_LAST)
        self._level: Hashable | None = None

    def trust(self, mark: Callable[[], Hashable | None]) -> None:
        """Set the source of marks. `mark` returns a new value after each noticed change, and None
        while changes may go unnoticed.
        """
        self._mark = mark

    @property
    def is_sure(self) -> bool:
        """Whether a scan would take noticeable time and find nothing."""
        is_cheap = min(self._costs, default=0.0) < CHEAP
        return not is_cheap and self._level is not None and self._mark() == self._level

    def begin(self) -> Scan:
        """Begin a scan; pass the result to `listed` and `settle`."""
        return Scan(self._mark(), self._clock.monotonic())

    def listed(self, look: Scan) -> None:
        """Record the cost of listing all files, which is the cost of a scan that finds no
        change.
        """
        self._costs.append(self._clock.monotonic() - look.began)

    def settle(self, look: Scan) -> None:
        """Record that everything the scan found has been indexed."""
        self._level = look.mark

    def lose(self) -> None:
        """Record that something is not indexed yet, so that the next scan is not skipped."""
        self._level = None
