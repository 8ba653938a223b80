"""Writes `memory/graph/YYYY-MM-DD.0`: what was said on each day (UTC) as `.0` text, for the owner
and others to read.

The text is never read back: the tables are made from facts and from what others said. What others
said comes after the user's own, in separate graphs, so that its lines can be distinguished.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from agentd.core.evidence import OWN
from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    EpisodeHash,
    Record,
    Relation,
    StoredEpisode,
)
from agentd.core.ports import GraphStore
from agentd.core.workspace import GRAPH_FOLDER
from agentd.zero.formats.records import canonical, concepts_told
from agentd.zero.record_graph import emit

TOGETHER: Final = 25  # episodes in one graph of the text: fewer would make the text much longer

_NOTE = "graph_text_due"  # texts noted under "graph_due" lack the record of lines from outside
_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})(?:-\d{1,6})?\.0")


T = TypeVar("T")


class TextFiles(Protocol):
    """Files of the workspace that only agentd writes. Methods raise WorkspaceError."""

    async def replace(self, path: str, data: bytes, outside: Collection[bytes] = ()) -> None:
        """Write the file durably, whole or not at all. The lines in `outside` are recorded as from
        outside before they are in the file.
        """

    async def delete(self, path: str) -> None:
        """Delete the file, if it exists."""

    async def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; empty if it does not exist."""


class Notes(Protocol):
    """Values stored beside the tables, and lost with them. Methods raise StorageError."""

    async def meta(self, name: str) -> str:
        """Return the value stored under the name; "" if there is none."""

    async def set_meta(self, name: str, value: str) -> None:
        """Store a value under the name."""


class WrittenGraph(Struct, frozen=True):
    """How many files the graph's text has now, and how many episodes they contain."""

    files: int
    episodes: int


class GraphText:
    """Keeps the text up to date. The days to be rewritten are noted before the tables change and
    struck out when they are written, so that an interruption forgets no day. Methods raise
    WorkspaceError, StorageError.
    """

    def __init__(self, files: TextFiles, store: GraphStore, notes: Notes) -> None:
        self._files = files
        self._store = store
        self._notes = notes
        self._writing = asyncio.Lock()
        # Whether anything has changed since the last write; unknown, so True, after a start.
        self._is_changed = True
        self._changing = Counter[str]()  # days being changed in the tables, with counts
        self._late: set[str] = set()  # days noted while the text was being written

    @asynccontextmanager
    async def changing(self, times: Iterable[datetime]) -> AsyncIterator[None]:
        """Note that the block changes what was said at these times."""
        days = Counter({_day(at).isoformat() for at in times})
        self._changing += days
        self._late.update(days)
        try:
            due = await self._due()
            if due is not None and not days.keys() <= due:
                await self._notes.set_meta(_NOTE, json.dumps(sorted(due.union(days))))
            yield
        finally:
            self._changing -= days
            self._is_changed = True

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Find out and note which days the block changes."""
        before = await self._store.stored_episodes()
        async with self.changing([]), self._writing:
            due = await self._due()
            await self._notes.set_meta(_NOTE, "")
            yield
            if due is not None:
                days = await asyncio.to_thread(
                    _changed_days, before, await self._store.stored_episodes()
                )
                await self._notes.set_meta(_NOTE, json.dumps(sorted(days | due)))

    async def write(self) -> None:
        """Write the days that have changed; all days if that is not known."""
        async with self._writing:
            if self._is_changed:
                await self._done(self._write_due())

    async def write_all(self) -> WrittenGraph:
        """Write all days, and delete files of days without episodes."""
        async with self._writing:
            return await self._done(self._write_all())

    async def _done(self, work: Awaitable[T]) -> T:
        """Await the work; if it is interrupted, it is done again the next time."""
        is_done = False
        try:
            found = await work
            is_done = True
        finally:
            self._is_changed = self._is_changed or not is_done
        return found

    async def _write_due(self) -> None:
        due = await self._due()
        if due is None:
            await self._write_all()
            return
        self._begin()
        for day in sorted(due):
            await self._write(date.fromisoformat(day))
        await self._end()

    async def _write_all(self) -> WrittenGraph:
        await self._notes.set_meta(_NOTE, "")
        self._begin()
        times = [one.said for one in (await self._store.stored_episodes()).values()]
        days = {_day(at) for at in times}
        for day in sorted(days):
            await self._write(day)
        wanted = {_path(day) for day in days}
        for name in await self._files.names(GRAPH_FOLDER):
            path = f"{GRAPH_FOLDER}/{name}"
            if _DATED.fullmatch(name) and path not in wanted:
                await self._files.delete(path)
        await self._end()
        return WrittenGraph(len(days), len(times))

    def _begin(self) -> None:
        self._late = set(self._changing)
        self._is_changed = False

    async def _end(self) -> None:
        """Strike out the days that were written."""
        await self._notes.set_meta(_NOTE, json.dumps(sorted(self._late)))

    async def _due(self) -> set[str] | None:
        """Return the days to be written; None for all."""
        noted = await self._notes.meta(_NOTE)
        return set(json.loads(noted)) if noted else None

    async def _write(self, day: date) -> None:
        relations = await self._store.said_on(day)
        if not relations:
            await self._files.delete(_path(day))
            return
        ends = {end for one in relations for end in (one.subject, one.object)}
        concepts = await self._store.concepts(sorted(ends))
        contexts = await self._store.contexts(sorted({one.context for one in relations}))
        data, outside = await asyncio.to_thread(write_episodes, relations, concepts, contexts)
        await self._files.replace(_path(day), data, outside)


def write_episodes(
    relations: Iterable[Relation],
    concepts: Mapping[ConceptHash, Concept],
    contexts: Mapping[ContextHash, ConceptContext],
) -> tuple[bytes, frozenset[bytes]]:
    """Return these episodes as `.0` text, several per graph, with their part of the concepts; and
    the lines from outside: those that occur only in what others said.
    """
    own: list[Relation] = []
    others: list[Relation] = []
    for one in relations:
        if one.subject in concepts and one.object in concepts and one.context in contexts:
            (own if contexts[one.context].source in OWN else others).append(one)
    his, theirs = (
        "".join(map(emit, _records(said, concepts, contexts))).encode() for said in (own, others)
    )
    return his + theirs, frozenset(theirs.splitlines()).difference(his.splitlines())


def _records(
    relations: list[Relation],
    concepts: Mapping[ConceptHash, Concept],
    contexts: Mapping[ContextHash, ConceptContext],
) -> Iterator[Record]:
    for start in range(0, len(relations), TOGETHER):
        some = relations[start : start + TOGETHER]
        where = {one.context for one in some}
        told = concepts_told(concepts, some)
        yield canonical(Record(told, tuple(contexts[name] for name in where), tuple(some)))


def _changed_days(
    before: Mapping[EpisodeHash, StoredEpisode], after: Mapping[EpisodeHash, StoredEpisode]
) -> set[str]:
    """Return the days whose episodes differ."""
    names = before.keys() | after.keys()
    differ = (name for name in names if before.get(name) != after.get(name))
    found = ((before.get(name), after.get(name)) for name in differ)
    return {_day(one.said).isoformat() for both in found for one in both if one is not None}


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()


def _path(day: date) -> str:
    return f"{GRAPH_FOLDER}/{day.isoformat()}.0"
