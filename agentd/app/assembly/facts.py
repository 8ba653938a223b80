"""Opens what learns facts about the owner, adds them to prompts and erases forgotten words."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentd.app.assembly.graph import GraphParts
from agentd.app.assembly.memory import Memory
from agentd.app.assembly.runtime import RuntimeContext, Work
from agentd.app.assembly.storage import Stores
from agentd.app.logs import OpenLog
from agentd.core.erasure import Erasure
from agentd.core.errors import ProviderError
from agentd.core.event import FactsChanged
from agentd.core.fact import ErasureReport, Fact, Mention
from agentd.core.health import Problem
from agentd.core.paths import prompt
from agentd.core.ports import CompactionHook, ContextSource, EventSink, Recall, Transcripts
from agentd.core.search import SearchQuery
from agentd.core.transcript import Row
from agentd.core.turn import MAIN, Origin, SessionKey, SessionKind
from agentd.core.workspace import FACTS_PATH, Reader
from agentd.engine.completion import Completions
from agentd.engine.watchers import TurnEndCallback
from agentd.engine.workers import CoalescingWorker
from agentd.memory.facts.book import FactBook
from agentd.memory.facts.daily import Review
from agentd.memory.facts.fact_service import FactsService
from agentd.memory.facts.facts_in_prompt import FactsInPrompt
from agentd.memory.facts.forgetting import Forgetting, ForgottenPlace
from agentd.memory.facts.learning import Learning
from agentd.memory.facts.outdated import Outdated
from agentd.memory.facts.proposals import Proposals
from agentd.memory.facts.reader import PassageReader
from agentd.memory.index.search.fact_search import LiveFacts
from agentd.storage.copies import Copies
from agentd.storage.keys import load_key
from agentd.storage.masking import Masking
from agentd.workspace.scrub import NoteEraser, VersionEraser

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # of ids; none looks like another
_ID_LENGTH = 4  # 900,000 ids
_RANDOM_BYTES = 1 << 16

_EMPTY_JOURNAL = "journalctl --rotate --vacuum-time=1s"
_DONE = "erased everywhere: what you wanted forgotten"
_NEAREST = 10  # search hits that are judged by meaning
_MAX_TOKENS = 2_048
_OWNER = Reader(MAIN, SessionKind.OWNER)


class EnabledFactParts(Struct, frozen=True, kw_only=True):
    """The parts that exist only while facts are on: the stored facts, the service that the owner
    asks, the reading of conversations, the review of facts, the proposals, and the facts in
    prompts.
    """

    book: FactBook
    service: FactsService
    learning: Learning
    review: Review
    proposals: Proposals
    told: FactsInPrompt


class FactParts(Struct, frozen=True, kw_only=True):
    """The parts that keep facts about the owner. The engine gets `sources`, `hooks` and `watchers`;
    `work` runs in the background. While facts are off, `learnt` is None, and any text can still be
    erased.
    """

    forgetting: Forgetting
    recall: Recall  # while facts are on, it marks hits that state outdated facts
    watchers: tuple[EventSink, ...]
    work: tuple[Work, ...]
    problems: Callable[[], tuple[Problem, ...]]
    learnt: EnabledFactParts | None = None
    sources: tuple[ContextSource, ...] = ()
    hooks: tuple[CompactionHook, ...] = ()

    async def erase(self, text: str) -> ErasureReport:
        """Erase the text everywhere, and forget the facts that contain it. Raises InvalidRequest,
        StorageError.
        """
        report = await self.forgetting.erase_text(text)
        saying = await self._facts_saying(text)
        if self.learnt is None or not saying:
            return report
        return report + await self.learnt.book.forget([fact.id for fact in saying])

    async def preview_erasure(self, text: str) -> ErasureReport:
        """Return what `erase` would erase, facts first. Raises what it raises."""
        saying = await self._facts_saying(text)
        goes = tuple(Mention(n, fact.id, fact.text) for n, fact in enumerate(saying, start=1))
        facts = ErasureReport({"facts": len(saying)} if saying else {}, goes=goes)
        return facts + await self.forgetting.preview_text(text)

    async def _facts_saying(self, text: str) -> list[Fact]:
        if self.learnt is None:
            return []
        erasure = Erasure(sentences=(text,))
        return [f for f in await self.learnt.book.all() if f.text and erasure.found(f.text)]

    async def counts(self) -> dict[str, Any]:
        """Return the counts of `FactsService.counts`, if facts are on, and the status of
        erasures.
        """
        known = await self.learnt.service.counts() if self.learnt is not None else {}
        return {**known, **self.forgetting.status()}

    async def deleted(self, session: SessionKey) -> None:
        """Drop what refers to a deleted session: its due reading, its snapshot of facts for the
        prompt, and its name as the source of facts. Raises StorageError.
        """
        if self.learnt is not None:
            self.learnt.learning.deleted(session)
            self.learnt.told.renew(session)
            await self.learnt.book.unlink(session)


@asynccontextmanager
async def open_facts(
    runtime: RuntimeContext,
    stores: Stores,
    memory: Memory,
    graph: GraphParts,
    completions: Completions,
    *,
    shown: EventSink,
    output: OpenLog,
) -> AsyncIterator[FactParts]:
    """Open the facts. They catch up with their page once the background work runs. `shown` gets an
    event when forgotten words have been erased or facts were learnt, `output` is the log, which is
    erased, too. Raises StorageError.
    """
    settings, clock = runtime.config.facts, runtime.clock
    tell = partial(_erased, shown)
    forgetting = build_forgetting(runtime, stores, memory, graph, completions, tell, output)
    if not settings.enabled:
        yield FactParts(
            forgetting=forgetting,
            recall=memory.recall,
            watchers=(TurnEndCallback(forgetting.touch),),
            work=(forgetting.run,),
            problems=forgetting.problems,
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
            key=await asyncio.to_thread(load_key, runtime.places.facts_key),
            forgetting=forgetting,
        )
        book.listen(graph.changed)
        if graph.service is not None:
            graph.service.refresh_with(book.all)
            graph.exchange.refresh_with(book.all)
        reader = PassageReader(stores.sessions, stores.facts, book, completions, clock, settings)
        learning = Learning(stores.sessions, reader, shown, clock, settings)
        learnt = EnabledFactParts(
            book=book,
            service=FactsService(book, reader, learning, stores.sessions, clock, forgetting),
            learning=learning,
            review=Review(book, stores.facts, completions, clock, settings),
            proposals=_proposals(runtime, stores, memory, book),
            told=FactsInPrompt(book, index, clock, prompt("known"), settings),
        )
        yield _assemble(runtime, stores, memory, forgetting, index, learnt)


def _assemble(
    runtime: RuntimeContext,
    stores: Stores,
    memory: Memory,
    forgetting: Forgetting,
    index: LiveFacts,
    learnt: EnabledFactParts,
) -> FactParts:
    book, learning, review = learnt.book, learnt.learning, learnt.review
    level = CoalescingWorker("facts", book.sync)
    memory.watching.listen(level.nudge)
    level.nudge()

    async def said(session: SessionKey, seq: int) -> str:
        row = await row_of(stores.sessions, session, seq)
        return row.text if row is not None else ""

    def problems() -> tuple[Problem, ...]:
        parts = (forgetting, book, index, learning, review)
        return tuple(problem for part in parts for problem in part.problems())

    tokens = runtime.config.memory_search.max_tokens
    return FactParts(
        forgetting=forgetting,
        recall=Outdated(memory.recall, book, stores.facts, memory.files, said, tokens),
        watchers=(TurnEndCallback(learning.touch), TurnEndCallback(forgetting.touch), learnt.told),
        work=(forgetting.run, index.run, level.run, learning.run, review.run),
        problems=problems,
        learnt=learnt,
        sources=(learnt.told,),
        hooks=(learning,),
    )


def _proposals(
    runtime: RuntimeContext, stores: Stores, memory: Memory, book: FactBook
) -> Proposals:
    cap = runtime.config.workspace.max_file_chars
    return Proposals(book, stores.facts, stores.facts, memory.files, runtime.clock, cap)


class _Ids:
    """Returns new ids of facts. Random bytes are read from the system many at a time: each read
    releases the interpreter lock and takes it back at once, and would restart the event loop's wait
    for the lock if it happened for every id.
    """

    def __init__(self) -> None:
        self._random = iter(b"")

    def __call__(self) -> str:
        """Return `_ID_LENGTH` random letters and digits."""
        found = tuple(islice(self._random, _ID_LENGTH))
        if len(found) < _ID_LENGTH:
            self._random = iter(secrets.token_bytes(_RANDOM_BYTES))
            return self()
        return "".join(_LETTERS[byte % len(_LETTERS)] for byte in found)


def build_forgetting(
    runtime: RuntimeContext,
    stores: Stores,
    memory: Memory,
    graph: GraphParts,
    completions: Completions,
    tell: Callable[[SessionKey], None],
    output: OpenLog,
) -> Forgetting:
    """Build the Forgetting with every place that it erases words from, in the order of the erasure:
    first the places where words were written, then what was derived from these.
    """
    versions = runtime.places.versions
    notes = NoteEraser(
        memory.files,
        runtime.workspace,
        versions,
        apart=frozenset({FACTS_PATH}),
        shipped=memory.template,
    )
    former = VersionEraser(memory.files, versions)
    stored = Masking(stores.db, memory.indexer.without)

    async def erase_index(_: Erasure) -> int:
        await memory.indexer.level_notes()
        await memory.index.erase(())
        return 0

    async def erase_log(erasure: Erasure) -> int:
        return await asyncio.to_thread(output.erase, erasure)

    return Forgetting(
        stores.erasures,
        (
            stored,
            notes,
            former,
            graph.keeper,
            graph.sharing,
            ForgottenPlace("search index", erase_index),
            ForgottenPlace("log", erase_log),
            ForgottenPlace("chat history", stores.typed.erase_words),
        ),
        runtime.clock,
        ask=partial(_ask, completions),
        texts=(stored, notes, former, stores.typed),
        said=stored.said,
        copies=_copies(runtime, stores, output).list,
        near=partial(_nearest, memory.recall),
        tell=tell,
    )


async def _ask(completions: Completions, system: str, text: str) -> str:
    answer = await completions.ask(MAIN, Origin.FORGETTING, system, text, max_tokens=_MAX_TOKENS)
    if answer.is_cut:  # the words that it did not reach would not be erased
        raise ProviderError("the model's answer was cut off")
    return answer.text


async def _nearest(recall: Recall, text: str) -> Sequence[tuple[str, int, int]]:
    found = await recall.search(SearchQuery(text, limit=_NEAREST), _OWNER)
    chunks = (hit.chunk for hit in found.hits)
    return [(chunk.path, chunk.start_line, chunk.end_line) for chunk in chunks]


def _erased(shown: EventSink, session: SessionKey) -> None:
    shown.emit(FactsChanged(session, _DONE, ()))


async def row_of(sessions: Transcripts, session: SessionKey, seq: int) -> Row | None:
    """Return a row of a transcript; None if the row or the session is gone. Raises StorageError."""
    if not await sessions.exists(session):
        return None
    rows = await sessions.rows(session, seq, 1)
    return rows[0] if rows and rows[0].seq == seq else None


def _copies(runtime: RuntimeContext, stores: Stores, output: OpenLog) -> Copies:
    """Return the search for copies of what agentd keeps: in AGENTD_HOME if that is set, else in the
    state directory and the workspace.
    """
    home = runtime.environ.get("AGENTD_HOME")
    roots = (Path(home),) if home else (runtime.places.state_dir, runtime.workspace)
    databases = stores.db.path, stores.index_db.path
    places = runtime.places
    erased = [runtime.workspace, places.versions, places.state_dir / "logs", places.chat_history]
    erased.append(places.mirror)
    if output.file is not None:
        erased.append(output.file)
    return Copies(roots, databases, _EMPTY_JOURNAL if output.is_journal else "", erased)
