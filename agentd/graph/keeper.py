"""The one owner of the graph: it keeps text and tables level, lets facts in, and takes out what goes.

The text is written first and the tables second. Which text the tables say is noted with them, so a
crash between the two, a change by hand and a lost database are all made good in the same way: what
the text says is read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

import structlog

from agentd.domain.belief import FACTS, Consolidated
from agentd.domain.concept import EpisodeHash, GraphCounts, Inserted, Record, Relation
from agentd.domain.erasure import Needles
from agentd.domain.fact import Fact, FactStatus
from agentd.domain.health import Problem
from agentd.domain.turn import Kind, SessionKey
from agentd.domain.workspace import Reader
from agentd.errors import AgentdError, FileMissing, FileUnreadable, GraphError, WorkspaceError
from agentd.failpoints import hit
from agentd.graph.consolidation import Consolidation
from agentd.graph.emitter import emit
from agentd.graph.feed import Saying, Wanted, wanted
from agentd.graph.files import FOLDER, Damage, GraphFiles, Rewritten
from agentd.graph.journal import Journal
from agentd.graph.naming import DEFAULT_ALIASES, Aliases, parse_aliases
from agentd.graph.noted import NotedText, Notes
from agentd.graph.portions import AT_ONCE, sayings_written, written
from agentd.graph.sighting import Sighting
from agentd.ports import Clock, GraphStore, Workspace

log = structlog.get_logger()

ALIASES = f"{FOLDER}/aliases.md"
OWN_NAMES = {"me": "user", "myself": "user"}  # how the owner speaks of himself

_READER = Reader(SessionKey("graph"), Kind.MAIN)
_SHOWN = 5  # problems of one kind

Facts = Callable[[], Awaitable[Sequence[Fact]]]


class GraphKeeper:
    """Text and tables of the graph. `facts` gives all that is known of the owner, forgotten ones as
    ids. Unless it is `fed` with them, what they no longer say is only taken out. Nothing is read before
    `level`.
    """

    def __init__(
        self,
        workspace: Workspace,
        store: GraphStore,
        notes: Notes,
        clock: Clock,
        facts: Facts,
        *,
        fed: bool = True,
        journal: Journal | None = None,
    ) -> None:
        self._workspace = workspace
        self._files = GraphFiles(workspace, clock)
        self._store = store
        self._noted = NotedText(workspace, notes)
        self._facts = facts
        self._journal = journal or Journal()
        self._is_fed = fed
        self._consolidation = Consolidation(store, self._files, clock)
        self._lock = asyncio.Lock()
        self._aliases = Aliases({**DEFAULT_ALIASES, **OWN_NAMES})
        self._alias_text: str | None = ""  # None: it could not be read
        self._fed: dict[EpisodeHash, Relation] | None = (
            None  # None: what the tables hold is not known
        )
        self._forgotten = 0  # episodes that went with their facts and were not reported yet
        self._is_due = True
        self._damage: tuple[Damage, ...] = ()
        self._unfit: tuple[str, ...] = ()
        self._mistake: AgentdError | None = None  # in the table of aliases
        self._failure: AgentdError | None = None

    @property
    def name(self) -> str:
        """See Eraser."""
        return "graph"

    def touch(self) -> None:
        """Facts have changed; `level` takes that in. Never blocks."""
        self._is_due = True

    def resolve(self, name: str) -> str:
        """The normal label of the concept that a name stands for. Raises GraphError for what is none."""
        return self._aliases.resolve(name)

    async def level(self) -> None:
        """Let the tables say what the text says, and both what the facts say. Raises WorkspaceError,
        StorageError; then it is tried again the next time.
        """
        async with self._lock:
            await self._level()

    async def erase(self, needles: Needles) -> int:
        """See Eraser; counts episodes, those of facts that were forgotten since the last time included,
        and damaged texts. Raises FileUnreadable while a file of the graph cannot be read.
        """
        async with self._lock:
            done = await self._level(needles)
            if done.unread:
                first = done.unread[0]
                raise FileUnreadable(str(first), cure=first.cure)
            taken, self._forgotten = self._forgotten, 0
        return taken + len(done.episodes) + done.damaged

    async def consolidate(self) -> Consolidated:
        """The work of every day: see Consolidation. Raises WorkspaceError, StorageError."""
        async with self._lock:
            await self._level()
            before = await self._noted.found()
            done = await self._consolidation.run()
            after = await self._noted.found()
            if done.promoted or done.swept:
                told = f"{done.promoted} {done.swept} {done.at.isoformat()}"
                await self._journal.enter("consolidated", told.encode())
            await self._noted.note_change(before, after, after, damaged=bool(self._damage))
        log.info("graph_consolidated", promoted=done.promoted, swept=done.swept)
        return done

    async def said(self) -> Wanted:
        """What the facts that hold say, in the names of now. Raises WorkspaceError, StorageError."""
        async with self._lock:
            await self._read_aliases()
            return await asyncio.to_thread(wanted, await self._facts(), self._aliases)

    async def add(self, record: Record, relations: Sequence[Relation]) -> Inserted:
        """Take in what others say: these of the record's. Raises WorkspaceError, StorageError."""
        parts = await asyncio.to_thread(lambda: list(written(record, relations)))
        async with self._lock:
            await self._level()
            return await self._keep(parts, "taken")

    async def withdraw(self, episodes: Collection[EpisodeHash]) -> int:
        """Take these out of text and tables; how many were there. Raises WorkspaceError, StorageError."""
        async with self._lock:
            await self._level()
            return len((await self._rewrite(episodes, None, "taken_back")).episodes)

    async def kept_out(self) -> frozenset[str]:
        """The names of what other agents said that was taken back, or forgotten here: it does not come
        in again. Raises WorkspaceError, and GraphError for a file that cannot be read.
        """
        return await self._files.kept_out()

    async def receipts(self) -> Sequence[tuple[str, str, Record]]:
        """The graphs of the text that were entered in the chain: where they stand, under which receipt,
        and what they say. Raises WorkspaceError.
        """
        async with self._lock:
            return await self._files.receipts()

    async def counts(self) -> GraphCounts:
        """How much there is."""
        return await self._store.counts()

    async def last(self) -> Consolidated | None:
        """What was consolidated last."""
        found = await self._store.consolidations(1)
        return found[0] if found else None

    def problems(self) -> tuple[Problem, ...]:
        """Text that cannot be used, mistakes in the table of aliases, facts that are no part of it. Of
        files that cannot be read at all the workspace tells.
        """
        damage = [one for one in self._damage if one.line]
        found = [Problem("graph_damaged", str(one), one.cure) for one in damage[:_SHOWN]]
        if (more := len(damage) - _SHOWN) > 0:
            text = f"{more} more graphs of {FOLDER} cannot be used"
            found.append(Problem("graph_damaged", text, damage[-1].cure))
        if self._mistake is not None:
            text = f"{ALIASES} is not used: {self._mistake.message}"
            found.append(Problem("graph_aliases", text, self._mistake.cure))
        if self._unfit:
            text = f"facts whose words are no labels are not in the graph: {', '.join(self._unfit[:_SHOWN])}"
            found.append(Problem("graph_unfit", text, "say them in other words"))
        if self._failure is not None:
            text = f"the graph is not level with facts and text: {self._failure.message}"
            found.append(Problem("graph_behind", text, self._failure.cure))
        return (*found, *self._files.problems())

    async def _level(self, needles: Needles | None = None) -> Rewritten:
        """What was taken out because it says it, and not because facts no longer do."""
        done = Rewritten()
        try:
            await self._read_aliases()
            # After a start nobody knows yet what is damaged.
            is_untold = not self._damage and await self._noted.is_damaged()
            if is_untold or not await self._noted.is_current():
                await self._read_text()
            if needles or self._is_due or self._fed is None:
                done = await self._feed(needles)
        except AgentdError as error:
            self._fed = None
            self._failure = error
            raise
        self._failure = None
        return done

    async def _read_aliases(self) -> None:
        """The table as it stands; one with a mistake changes nothing."""
        try:
            text = (await self._workspace.read(ALIASES, _READER)).text
        except FileMissing:
            text = ""
        except WorkspaceError as error:  # nobody waits for it, least of all who forgets
            self._alias_text, self._mistake = None, error
            return
        if text == self._alias_text:
            return
        self._alias_text = text
        try:
            own = parse_aliases(text)
            self._aliases = Aliases({**DEFAULT_ALIASES, **OWN_NAMES, **own})
        except GraphError as error:
            self._mistake = error
            return
        self._mistake = None
        self._is_due = True

    async def _read_text(self) -> None:
        """Make the tables of the text."""
        self._fed = None
        await self._noted.forget()
        text = await self._noted.found()
        loaded = await self._files.load()
        await self._store.rebuild(loaded.records)
        self._damage = loaded.damage
        await self._noted.note(text, damaged=bool(loaded.damage))
        log.info("graph_read", graphs=len(loaded.records), damaged=len(loaded.damage))

    async def _feed(self, needles: Needles | None) -> Rewritten:
        """Take out what facts no longer say, and whatever else says it, and add what they say now."""
        self._is_due = False
        done = Rewritten()
        try:
            facts = await self._facts()
            due = await asyncio.to_thread(wanted, facts, self._aliases)
            fed = await self._held()
            gone = [name for name, said in fed.items() if not _says(due.sayings.get(name), said)]
            if gone or needles:
                forgotten = {one.id for one in facts if one.status is FactStatus.FORGOTTEN}
                lost = [name for name in gone if not forgotten.isdisjoint(fed[name].refs)]
                done = await self._rewrite(gone, needles)
                done = replace(done, episodes=done.episodes.difference(gone))
                self._forgotten += len(lost)
            if self._is_fed:
                await self._add(due, await self._held())
        except BaseException:
            self._is_due = True
            self._fed = None
            raise
        self._unfit = due.unfit
        return done

    async def _held(self) -> dict[EpisodeHash, Relation]:
        """The episodes that come from facts."""
        if self._fed is not None:
            return self._fed
        relations = await self._store.episodes()
        contexts = await self._store.contexts(sorted({one.context for one in relations}))
        own = {name for name, context in contexts.items() if context.source == FACTS}
        self._fed = {one.episode: one for one in relations if one.context in own}
        return self._fed

    async def _rewrite(
        self, gone: Collection[EpisodeHash], needles: Needles | None, kind: str = "removed"
    ) -> Rewritten:
        """Take episodes, and what says it, out of the text and then of the tables."""
        fed, self._fed = self._fed, None  # not known until both are done
        said = {name: fed[name] for name in gone if name in fed} if fed else {}
        ends = {end for one in said.values() for end in (one.subject, one.object)}
        concepts = await self._store.concepts(sorted(ends))
        sighting = Sighting.of(gone, said, concepts, needles)
        says = needles.stand_in if needles else None
        before = await self._noted.found()
        done = await self._files.rewrite(gone, says, sighting.may_be_in)
        after = await self._noted.found()
        out = done.episodes.union(gone)
        if out or done.paths:
            kind = "erased" if says and (done.is_more or done.episodes.difference(gone)) else kind
            await self._journal.enter(kind, "\n".join(sorted(map(str, out))).encode())
        if done.is_more:
            await self._read_text()
            return done
        if out or done.paths:
            await self._store.remove(sorted(out))
            await self._noted.note_change(before, after, done.paths, damaged=bool(self._damage))
        if fed is not None:
            self._fed = {name: said for name, said in fed.items() if name not in out}
        return done

    async def _add(self, due: Wanted, fed: dict[EpisodeHash, Relation]) -> None:
        fresh = [saying for name, saying in due.sayings.items() if name not in fed]
        for start in range(0, len(fresh), AT_ONCE):
            some = fresh[start : start + AT_ONCE]
            parts = await asyncio.to_thread(sayings_written, some, due.aliases)
            await self._keep(parts, "inserted")
            said = (one for record, _ in parts for one in record.relations)
            fed.update((relation.episode, relation) for relation in said)

    async def _keep(self, parts: Sequence[tuple[Record, str]], kind: str) -> Inserted:
        """Enter them, write them, and let the tables say them."""
        texts = []
        for record, text in parts:
            beside = await self._journal.enter(kind, text.encode())
            texts.append(emit(record, metadata=beside) if beside else text)
        before = await self._noted.found()
        paths = await self._files.append(texts)
        after = await self._noted.found()
        hit("graph.written")
        done = await self._store.insert([record for record, _ in parts])
        await self._noted.note_change(before, after, paths, damaged=bool(self._damage))
        return done


def _says(saying: Saying | None, relation: Relation) -> bool:
    if saying is None or relation.denied:
        return False
    return (saying.confidence, saying.refs) == (relation.confidence, relation.refs)
