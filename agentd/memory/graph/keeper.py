"""The only writer of the graph: keeps tables and text level with the facts and with what others
said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import structlog
from msgspec import Struct

from agentd.core.erasure import Erasure
from agentd.core.errors import AgentdError, FileMissing, GraphError, WorkspaceError
from agentd.core.evidence import LEAST, SAID, Consolidated, faded_confidence
from agentd.core.fact import Evidence, Fact, FactStatus
from agentd.core.failpoints import hit
from agentd.core.graph import (
    EpisodeHash,
    GraphCounts,
    InsertCounts,
    KeptEpisode,
    Record,
    Relation,
    StoredEpisode,
)
from agentd.core.health import Problem
from agentd.core.ports import Clock, GraphRecords, GraphStore, NoteReader
from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import GRAPH_FOLDER, Reader
from agentd.memory.graph.consolidation import Consolidation, KeptRecords, read_rows, rows, valid
from agentd.memory.graph.derive import OWNER_TOO, Derived, DerivedEpisode, Names, derive
from agentd.memory.graph.earlier_text import EarlierText
from agentd.memory.graph.journal import GraphJournal
from agentd.memory.graph.text import GraphText, WrittenGraph
from agentd.zero.naming import DEFAULT_ALIASES, Aliases, parse_aliases

log = structlog.get_logger()

ALIASES = f"{GRAPH_FOLDER}/aliases.md"
AT_ONCE = 500  # episodes inserted in one transaction

_READER = Reader(SessionKey("graph"), SessionKind.OWNER)
_SHOWN = 5  # ids of unfit facts that are named


class KnownFacts(Protocol):
    """The source of facts, as in FactStore. Methods raise StorageError."""

    async def facts(self) -> Sequence[Fact]:
        """Return all facts, forgotten ones included."""

    async def evidence(self, fact_ids: Sequence[str]) -> Mapping[str, Sequence[Evidence]]:
        """Return the evidence of each of these facts."""


class _Wanted(Struct, frozen=True):
    """What the tables should hold."""

    derived: Derived
    kept: tuple[KeptRecords, ...]
    forgotten: frozenset[str]  # ids of facts

    def gone(self, held: Mapping[EpisodeHash, StoredEpisode]) -> dict[EpisodeHash, StoredEpisode]:
        """Return the stored episodes that should not be there, or have another content."""
        due = {
            name: StoredEpisode(one.confidence, one.is_denial, one.refs, one.at)
            for name, one in self.derived.sayings.items()
        }
        for one in self.kept:
            said, at = one.relation, one.record.contexts[0].event_time
            due[said.episode] = StoredEpisode(said.confidence, said.denied, said.refs, at)
        return {name: one for name, one in held.items() if due.get(name) != one}

    def fresh(
        self, held: Mapping[EpisodeHash, StoredEpisode], now: datetime
    ) -> list[DerivedEpisode]:
        """Return the sayings that are missing, except faded ones, which a rebuilt table need not
        have.
        """
        sayings = self.derived.sayings.items()
        return [one for name, one in sayings if name not in held and _is_alive(one, now)]


class GraphKeeper:
    """Tables and text of the graph. If not `fed` with facts, it only deletes what they no longer
    say. Nothing is read before `level`.
    """

    def __init__(
        self,
        workspace: NoteReader,
        store: GraphStore,
        records: GraphRecords,
        facts: KnownFacts,
        text: GraphText,
        earlier: EarlierText,
        clock: Clock,
        *,
        fed: bool = True,
        journal: GraphJournal | None = None,
    ) -> None:
        self._workspace = workspace
        self._store = store
        self._records = records
        self._facts = facts
        self._text = text
        self._earlier = earlier
        self._clock = clock
        self._journal = journal or GraphJournal()
        self._is_fed = fed
        self._consolidation = Consolidation(store, records, clock)
        self._lock = asyncio.Lock()
        self._own = Aliases({**DEFAULT_ALIASES, **OWNER_TOO})
        self._names = Names(self._own)
        self._alias_text: str | None = ""  # None: unreadable
        self._kept: tuple[KeptRecords, ...] | None = None  # None: must be read again
        self._is_due = True
        self._forgotten = 0  # episodes deleted with forgotten facts, not reported yet
        self._unfit: tuple[str, ...] = ()
        self._mistake: AgentdError | None = None  # in the table of aliases
        self._failure: AgentdError | None = None

    @property
    def name(self) -> str:
        """See Eraser."""
        return "graph"

    def touch(self) -> None:
        """Note that facts have changed, for the next `level`. Never blocks."""
        self._is_due = True

    def resolve(self, name: str) -> str:
        """Return the normal label of the concept that a name stands for. Raises GraphError for an
        invalid name.
        """
        return self._names.resolve(name)

    async def level(self) -> None:
        """Bring the tables level with the facts and with what others said. Raises WorkspaceError,
        StorageError, GraphError for damaged records; then the next call tries again.
        """
        async with self._lock:
            await self._level()

    async def write(self) -> None:
        """Write the text of the days that have changed. Raises WorkspaceError, StorageError."""
        await self._text.write()

    async def export(self) -> WrittenGraph:
        """Write the whole text anew. Raises what `level` does."""
        await self.level()
        return await self._text.write_all()

    async def erase(self, erasure: Erasure) -> int:
        """See Eraser; return the number of episodes, including those of facts forgotten since the
        last call. The index, whose file contains the tables, must be erased afterwards.
        """
        async with self._lock:
            await self._level()
            gone = [one for one in await self._read_kept() if one.says(erasure)]
            await self._take_out(gone, "erased", traceless=True)
            await self._text.write()
            taken, self._forgotten = self._forgotten, 0
        return taken + len(gone)

    async def consolidate(self) -> Consolidated:
        """Do the daily consolidation, see Consolidation. Raises what `level` does."""
        async with self._lock:
            self._is_due = True
            await self._level()
            async with self._text.watching():
                done = await self._consolidation.run()
            self._kept = None
            if done.promoted or done.swept:
                told = f"{done.promoted} {done.swept} {done.at.isoformat()}"
                await self._journal.enter("consolidated", told.encode())
        log.info("graph_consolidated", promoted=done.promoted, swept=done.swept)
        return done

    async def said(self) -> Derived:
        """Return what the facts say, in the present names. Raises StorageError."""
        async with self._lock:
            await self._read_aliases()
            return await self._derived(await self._facts.facts())

    async def add(self, record: Record, relations: Sequence[Relation], teller: str) -> InsertCounts:
        """Add these relations of the record, as said by `teller`. Raises what `level` does."""
        wanted = {one.episode for one in relations}
        fresh = rows(record, teller, self._clock.now())
        async with self._lock:
            await self._level()
            kept = [await self._entered(row) for row in fresh if row.episode in wanted]
            await self._records.keep(kept)
            self._kept = None
            parts = [one.record for one in await asyncio.to_thread(read_rows, kept)]
            return await self._insert(parts)

    async def withdraw(self, episodes: Collection[EpisodeHash]) -> int:
        """Delete these episodes of others; return how many existed. Raises what `level` does."""
        async with self._lock:
            await self._level()
            gone = [one for one in await self._read_kept() if one.relation.episode in episodes]
            return await self._take_out(gone, "taken_back")

    async def kept_out(self) -> frozenset[str]:
        """Return the names of other agents' episodes that were withdrawn, or forgotten here, and
        are not accepted again. Raises StorageError.
        """
        return await self._records.withdrawn_names()

    async def receipts(self) -> Sequence[tuple[str, str, Record]]:
        """Return (teller, receipt, record) for everything others said that was entered in the
        chain. Raises StorageError, GraphError.
        """
        async with self._lock:
            kept = await self._read_kept()
        return [(one.row.teller, one.row.receipt, one.record) for one in kept if one.row.receipt]

    async def counts(self) -> GraphCounts:
        """Return how many records of each kind there are."""
        return await self._store.counts()

    async def last(self) -> Consolidated | None:
        """Return the last consolidation; None if there was none."""
        found = await self._store.consolidations(1)
        return found[0] if found else None

    def problems(self) -> tuple[Problem, ...]:
        """Return mistakes in the table of aliases, facts that cannot be in the graph, and why the
        graph is behind.
        """
        found = []
        if self._mistake is not None:
            text = f"{ALIASES} is not used: {self._mistake.message}"
            found.append(Problem("graph_aliases", text, self._mistake.cure))
        if self._unfit:
            text = (
                "facts whose words are no labels are not in the graph: "
                f"{', '.join(self._unfit[:_SHOWN])}"
            )
            found.append(Problem("graph_unfit", text, "say them in other words"))
        if self._failure is not None:
            text = f"the graph is not level with the facts: {self._failure.message}"
            found.append(Problem("graph_behind", text, self._failure.cure))
        return tuple(found)

    async def _level(self) -> None:
        try:
            await self._earlier.take()
            await self._read_aliases()
            if self._is_due:
                self._is_due = False
                await self._make_level(await self._find_wanted())
        except BaseException as error:
            self._is_due = True
            if isinstance(error, AgentdError):
                self._failure = error
            raise
        self._failure = None

    async def _make_level(self, wanted: _Wanted) -> None:
        held = await self._store.stored_episodes()
        gone = await asyncio.to_thread(wanted.gone, held)
        if gone:
            await self._journal.enter("removed", "\n".join(sorted(map(str, gone))).encode())
            async with self._text.changing(one.said for one in gone.values()):
                await self._store.remove(sorted(gone))
            self._forgotten += sum(not wanted.forgotten.isdisjoint(o.refs) for o in gone.values())
            held = (
                await self._store.stored_episodes()
            )  # promotions were deleted with what they count
        if self._is_fed:
            fresh = await asyncio.to_thread(wanted.fresh, held, self._clock.now())
            await self._add_sayings(fresh)
        missing = [one.record for one in wanted.kept if one.relation.episode not in held]
        await self._insert(missing)
        self._names, self._unfit = wanted.derived.names, wanted.derived.unfit

    async def _add_sayings(self, fresh: Sequence[DerivedEpisode]) -> None:
        for start in range(0, len(fresh), AT_ONCE):
            some = fresh[start : start + AT_ONCE]
            records = await asyncio.to_thread(_records_of, some)
            names = (str(one.episode) for record in records for one in record.relations)
            await self._journal.enter("inserted", "\n".join(sorted(names)).encode())
            await self._insert(records)

    async def _insert(self, records: Sequence[Record]) -> InsertCounts:
        if not records:
            return InsertCounts()
        times = [one.event_time for record in records for one in record.contexts]
        async with self._text.changing(times):
            done = await self._store.insert(records)
            hit("graph.written")
        return done

    async def _find_wanted(self) -> _Wanted:
        facts = await self._facts.facts()
        said = await self._derived(facts)
        forgotten = frozenset(one.id for one in facts if one.status is FactStatus.FORGOTTEN)
        kept = await self._read_kept()
        standing = await asyncio.to_thread(valid, kept, said.sayings.keys())
        if len(standing) < len(kept):
            there = {one.relation.episode for one in standing}
            gone = [one.row.episode for one in kept if one.row.episode not in there]
            await self._records.drop(gone, traceless=True)
            self._kept = tuple(standing)
        return _Wanted(said, tuple(standing), forgotten)

    async def _derived(self, facts: Sequence[Fact]) -> Derived:
        ids = [one.id for one in facts if one.triple is not None]
        evidence = await self._facts.evidence(ids)
        return await asyncio.to_thread(derive, facts, evidence, self._own)

    async def _read_kept(self) -> tuple[KeptRecords, ...]:
        if self._kept is None:
            found = await self._records.kept_episodes()
            self._kept = tuple(await asyncio.to_thread(read_rows, found))
        return self._kept

    async def _take_out(
        self, gone: Sequence[KeptRecords], kind: str, *, traceless: bool = False
    ) -> int:
        """Delete records and their episodes in the tables, for good."""
        if not gone:
            return 0
        names = [ref for one in gone if one.row.teller for ref in one.relation.refs]
        episodes = [one.relation.episode for one in gone]
        await self._records.drop(episodes, names, traceless=traceless)
        self._kept = None
        await self._journal.enter(kind, "\n".join(sorted(map(str, episodes))).encode())
        async with self._text.changing(one.record.contexts[0].event_time for one in gone):
            return await self._store.remove(episodes)

    async def _entered(self, row: KeptEpisode) -> KeptEpisode:
        """Return the row with its receipt, after entering it in the chain, if one is kept."""
        receipt = await self._journal.enter("taken", row.said.encode())
        return KeptEpisode(row.episode, row.teller, row.at, row.said, receipt)

    async def _read_aliases(self) -> None:
        """Read the table of aliases; one with a mistake changes nothing."""
        try:
            text = (await self._workspace.read(ALIASES, _READER)).text
        except FileMissing:
            text = ""
        except WorkspaceError as error:  # must hold up nobody, least of all forgetting
            self._alias_text, self._mistake = None, error
            return
        if text == self._alias_text:
            return
        self._alias_text = text
        try:
            self._own = Aliases({**DEFAULT_ALIASES, **OWNER_TOO, **parse_aliases(text)})
        except GraphError as error:
            self._mistake = error
            return
        self._mistake = None
        self._is_due = True


def _records_of(sayings: Sequence[DerivedEpisode]) -> list[Record]:
    return [one.record() for one in sayings]


def _is_alive(saying: DerivedEpisode, now: datetime) -> bool:
    """Whether the saying has not faded."""
    age = (now - saying.at).total_seconds()
    return saying.source != SAID or faded_confidence(saying.confidence, age) >= LEAST
