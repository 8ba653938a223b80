"""What is learnt about the owner, what tells turns of it, and what forgets it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agentd.app.assembly.erasing import build_forgetting, row_of
from agentd.app.assembly.graph import GraphParts
from agentd.app.assembly.ground import Ground, Work
from agentd.app.assembly.memory import Memory
from agentd.app.assembly.storage import Stores
from agentd.app.logs import OpenLog
from agentd.core.erasure import Erasure
from agentd.core.fact import ErasureReport
from agentd.core.health import Problem
from agentd.core.paths import prompt
from agentd.core.ports import CompactionHook, ContextSource, EventSink, Recall
from agentd.core.turn import SessionKey
from agentd.engine.background import SideCall
from agentd.engine.watchers import WhenEnded
from agentd.engine.workers import Nudged
from agentd.memory.facts.book import FactBook
from agentd.memory.facts.daily import Review
from agentd.memory.facts.fact_service import FactsService
from agentd.memory.facts.forgetting import Forgetting
from agentd.memory.facts.learning import Learning
from agentd.memory.facts.outdated import Outdated
from agentd.memory.facts.proposals import Proposals
from agentd.memory.facts.reader import PassageReader
from agentd.memory.facts.told import FactsInPrompt
from agentd.memory.index.search.fact_search import LiveFacts
from agentd.storage.keys import kept_key

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # of ids: none of them is taken for another
_ID_LENGTH = 4  # 900,000 ids
_RANDOM_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Learnt:
    """The facts, who asks for them, who reads them out of conversations, and who looks after them."""

    book: FactBook
    service: FactsService
    learning: Learning
    review: Review
    proposals: Proposals
    told: FactsInPrompt


@dataclass(frozen=True, slots=True)
class FactParts:
    """What is known of the owner; `sources`, `hooks` and `watchers` are for the engine, `work` runs on.
    Where facts are off, any text can be erased all the same.
    """

    forgetting: Forgetting
    recall: Recall  # search that knows what is past
    watchers: tuple[EventSink, ...]
    work: tuple[Work, ...]
    problems: Callable[[], tuple[Problem, ...]]
    learnt: Learnt | None = None
    sources: tuple[ContextSource, ...] = ()
    hooks: tuple[CompactionHook, ...] = ()

    async def erase(self, text: str) -> ErasureReport:
        """Erase what says the text, and the facts that do. Raises InvalidRequest, StorageError."""
        report = await self.forgetting.erase_text(text)
        if self.learnt is None:
            return report
        book, erasure = self.learnt.book, Erasure(sentences=(text,))
        saying = [f.id for f in await book.all() if f.text and erasure.found(f.text)]
        return report + await book.forget(saying) if saying else report

    async def counts(self) -> dict[str, Any]:
        """How much is known, see `Service.counts`; empty where facts are off."""
        return await self.learnt.service.counts() if self.learnt is not None else {}

    async def deleted(self, session: SessionKey) -> None:
        """A session was deleted: what was read in it has no place any more. Raises StorageError."""
        if self.learnt is not None:
            self.learnt.learning.deleted(session)
            self.learnt.told.renew(session)
            await self.learnt.book.unlink(session)


@asynccontextmanager
async def open_facts(
    ground: Ground,
    stores: Stores,
    memory: Memory,
    graph: GraphParts,
    calls: SideCall,
    *,
    shown: EventSink,
    output: OpenLog,
) -> AsyncIterator[FactParts]:
    """The facts, level with their page once their work runs. `shown` is told their changes, `output` is
    the log.

    Raises StorageError.
    """
    settings, clock = ground.config.facts, ground.clock
    forgetting = build_forgetting(ground, stores, memory, graph, calls, output)
    if not settings.enabled:
        waiting = WhenEnded(forgetting.touch)
        yield FactParts(
            forgetting, memory.recall, (waiting,), (forgetting.run,), forgetting.problems
        )
        return
    async with LiveFacts.open(
        stores.facts, memory.asked, clock, settings.similarity_threshold
    ) as index:
        book = FactBook(
            stores.facts,
            index,
            memory.files,
            clock,
            new_id=_Ids(),
            key=await asyncio.to_thread(kept_key, ground.places.facts_key),
            forgetting=forgetting,
        )
        book.listen(graph.changed)
        if graph.desk is not None:
            graph.desk.refresh_with(book.all)
            graph.exchange.refresh_with(book.all)
        reader = PassageReader(stores.sessions, stores.facts, book, calls, clock, settings)
        learning = Learning(stores.sessions, reader, shown, clock, settings)
        learnt = Learnt(
            book,
            FactsService(book, reader, learning, stores.sessions, clock, forgetting),
            learning,
            Review(book, stores.facts, calls, clock, settings),
            _proposals(ground, stores, memory, book),
            FactsInPrompt(book, index, clock, prompt("known"), settings),
        )
        yield _around(ground, stores, memory, forgetting, index, learnt)


def _around(
    ground: Ground,
    stores: Stores,
    memory: Memory,
    forgetting: Forgetting,
    index: LiveFacts,
    learnt: Learnt,
) -> FactParts:
    book, learning, review = learnt.book, learnt.learning, learnt.review
    level = Nudged("facts", book.sync)
    memory.watching.listen(level.nudge)
    level.nudge()

    async def said(session: SessionKey, seq: int) -> str:
        row = await row_of(stores.sessions, session, seq)
        return row.text if row is not None else ""

    def problems() -> tuple[Problem, ...]:
        parts = (forgetting, book, index, learning, review)
        return tuple(problem for part in parts for problem in part.problems())

    tokens = ground.config.memory_search.max_tokens
    return FactParts(
        forgetting,
        Outdated(memory.recall, book, stores.facts, memory.files, said, tokens),
        (WhenEnded(learning.touch), WhenEnded(forgetting.touch), learnt.told),
        (forgetting.run, index.run, level.run, learning.run, review.run),
        problems,
        learnt,
        (learnt.told,),
        (learning,),
    )


def _proposals(ground: Ground, stores: Stores, memory: Memory, book: FactBook) -> Proposals:
    cap = ground.config.workspace.max_file_chars
    return Proposals(book, stores.facts, stores.facts, memory.files, ground.clock, cap)


class _Ids:
    """New ids. The system is asked for many random bytes at once: each question gives the interpreter's lock
    away and takes it back at once, so that the event loop's wait for it would start anew with every id.
    """

    def __init__(self) -> None:
        self._random = iter(b"")

    def __call__(self) -> str:
        """One of `_ID_LENGTH` letters."""
        found = tuple(islice(self._random, _ID_LENGTH))
        if len(found) < _ID_LENGTH:
            self._random = iter(secrets.token_bytes(_RANDOM_BYTES))
            return self()
        return "".join(_LETTERS[byte % len(_LETTERS)] for byte in found)
