"""What is learnt about the owner, what tells turns of it, and what forgets it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agentd.assembly.graph import Graph
from agentd.assembly.ground import Ground, Work
from agentd.assembly.memory import Memory
from agentd.assembly.storage import Stores
from agentd.domain.erasure import Needles
from agentd.domain.fact import ErasureReport
from agentd.domain.health import Problem
from agentd.domain.turn import SessionKey
from agentd.domain.workspace import FACTS_PATH
from agentd.engine.nudged import Nudged
from agentd.engine.sidecall import SideCall
from agentd.engine.watchers import WhenEnded
from agentd.facts.book import FactBook
from agentd.facts.current_first import CurrentFirst
from agentd.facts.deciding import Decider
from agentd.facts.desk import Desk
from agentd.facts.extraction.extractor import Extractor
from agentd.facts.forgetting import Forgetting, Place
from agentd.facts.proposals import Proposals
from agentd.facts.relevant import RelevantFacts
from agentd.facts.screen import objection
from agentd.facts.upkeep import Upkeep
from agentd.logs import OpenLog
from agentd.paths import prompt
from agentd.ports import CompactionHook, ContextSource, EventSink, Recall
from agentd.search.facts import LiveFacts
from agentd.storage.copies import Copies
from agentd.storage.keys import kept_key
from agentd.storage.masking import Masking
from agentd.workspace.scrub import NoteEraser, VersionEraser

_EMPTY_JOURNAL = "journalctl --rotate --vacuum-time=1s"
_TURNS = 20  # that a request is compared with


@dataclass(frozen=True, slots=True)
class Learning:
    """The facts, who asks for them, who reads them out of conversations, and who looks after them."""

    book: FactBook
    desk: Desk
    extractor: Extractor
    upkeep: Upkeep
    proposals: Proposals


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the owner; `sources`, `hooks` and `watchers` are for the engine, `work` runs on.
    Where facts are off, any text can be erased all the same.
    """

    forgetting: Forgetting
    recall: Recall  # search that knows what is past
    watchers: tuple[EventSink, ...]
    work: tuple[Work, ...]
    problems: Callable[[], tuple[Problem, ...]]
    learning: Learning | None = None
    sources: tuple[ContextSource, ...] = ()
    hooks: tuple[CompactionHook, ...] = ()

    async def erase(self, text: str) -> ErasureReport:
        """Erase what says the text, and the facts that do. Raises InvalidRequest, StorageError."""
        report = await self.forgetting.erase_text(text)
        if self.learning is None:
            return report
        book, needles = self.learning.book, Needles((text,))
        saying = [f.id for f in await book.all() if f.text and needles.stand_in(f.text)]
        return report + await book.forget(saying) if saying else report

    async def deleted(self, session: SessionKey) -> None:
        """A session was deleted: what was read in it has no place any more. Raises StorageError."""
        if self.learning is not None:
            self.learning.extractor.deleted(session)
            await self.learning.book.unlink(session)


@asynccontextmanager
async def open_facts(
    ground: Ground,
    stores: Stores,
    memory: Memory,
    graph: Graph,
    calls: SideCall,
    output: OpenLog,
) -> AsyncIterator[Known]:
    """The facts, level with their page once their work runs. `output` is the log.

    Raises StorageError.
    """
    settings, clock = ground.config.facts, ground.clock
    forgetting = _forgetting(ground, stores, memory, graph, output)
    if not settings.enabled:
        waiting = WhenEnded(forgetting.touch)
        yield Known(forgetting, graph.recall, (waiting,), (forgetting.run,), forgetting.problems)
        return
    async with LiveFacts.open(
        stores.facts, memory.embedders.chain, clock, settings.similarity_threshold
    ) as index:
        book = FactBook(
            stores.facts,
            index,
            memory.files,
            clock,
            new_id=lambda: secrets.token_hex(4),
            key=await asyncio.to_thread(kept_key, ground.places.facts_key),
            screen=objection,
            forgetting=forgetting,
            decide=Decider(calls, settings) if settings.judge == "model" else None,
        )
        book.listen(graph.changed)
        if graph.desk is not None:
            graph.desk.refresh_with(book.all)
            graph.exchange.refresh_with(book.all)
        yield _around(ground, stores, memory, graph, calls, forgetting, index=index, book=book)


def _around(
    ground: Ground,
    stores: Stores,
    memory: Memory,
    graph: Graph,
    calls: SideCall,
    forgetting: Forgetting,
    *,
    index: LiveFacts,
    book: FactBook,
) -> Known:
    settings, clock = ground.config.facts, ground.clock
    extractor = Extractor(stores.sessions, stores.facts, book, calls, clock, settings)
    upkeep = Upkeep(book, stores.facts, index, clock, settings)
    cap = ground.config.workspace.max_file_chars
    proposals = Proposals(book, stores.facts, memory.files, clock, cap)

    async def last_said(session: SessionKey) -> Sequence[tuple[int, str]]:
        rows = await stores.sessions.recent(session, _TURNS)
        said = await stores.sessions.said(session, rows[0].seq - 1, _TURNS) if rows else ()
        return [(row.seq, row.text) for row in said]

    desk = Desk(book, last_said, clock, extractor.catch_up)
    level = Nudged("facts", book.sync)
    memory.watching.listen(level.nudge)
    level.nudge()

    def problems() -> tuple[Problem, ...]:
        parts = (forgetting, book, index, extractor, upkeep)
        return tuple(problem for part in parts for problem in part.problems())

    tokens = ground.config.memory_search.max_tokens
    return Known(
        forgetting,
        CurrentFirst(graph.recall, book, stores.facts, memory.files, tokens),
        (WhenEnded(extractor.touch), WhenEnded(forgetting.touch)),
        (forgetting.run, index.run, level.run, extractor.run, upkeep.run),
        problems,
        Learning(book, desk, extractor, upkeep, proposals),
        (RelevantFacts(index, prompt("relevant"), settings.max_results),),
        (extractor,),
    )


def _forgetting(
    ground: Ground, stores: Stores, memory: Memory, graph: Graph, output: OpenLog
) -> Forgetting:
    """What erases words, place by place: first where they were written, then what was made of that."""
    versions = ground.places.versions
    notes = NoteEraser(memory.files, ground.workspace, versions, apart=frozenset({FACTS_PATH}))

    async def erase_index(_: Needles) -> int:
        await memory.indexer.sync_notes()
        await memory.index.erase(())
        return 0

    async def erase_log(needles: Needles) -> int:
        return await asyncio.to_thread(output.erase, needles)

    async def said(session: SessionKey, seq: int) -> str:
        rows = await stores.sessions.said(session, seq - 1, 1)
        return rows[0].text if rows and rows[0].seq == seq else ""

    return Forgetting(
        stores.facts,
        (
            Masking(stores.db, memory.indexer.without),
            notes,
            VersionEraser(memory.files, versions),
            graph.keeper,
            graph.sharing,
            Place("search index", erase_index),
            Place("log", erase_log),
            Place("chat history", stores.typed.erase_words),
        ),
        ground.clock,
        said=said,
        kept=notes.kept,
        copies=_copies(ground, stores, output).list,
    )


def _copies(ground: Ground, stores: Stores, output: OpenLog) -> Copies:
    """Where copies of what agentd keeps may lie: its own folders, all of its home if it has one."""
    home = ground.environ.get("AGENTD_HOME")
    roots = (Path(home),) if home else (ground.places.state_dir, ground.workspace)
    databases = stores.db.path, stores.index_db.path
    return Copies(roots, databases, _EMPTY_JOURNAL if output.is_journal else "")
