"""Answers questions to the graph from people, commands and models; and remembers what a session
last dealt with.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import structlog
from msgspec import Struct, field

from agentd.core.errors import AgentdError, InvalidRequest, QueryError
from agentd.core.evidence import OWN, SHARED, Trace
from agentd.core.graph import EpisodeHash, FactHash, Relation
from agentd.core.ports import Clock, GraphStore
from agentd.core.turn import SessionKey, SessionKind
from agentd.memory.graph import record
from agentd.memory.graph.answer import GraphAnswer
from agentd.memory.graph.drawing import columns
from agentd.memory.graph.keeper import GraphKeeper
from agentd.memory.graph.paths import TraversalMode
from agentd.memory.graph.picture import Picture, histories
from agentd.memory.graph.query import LIMIT
from agentd.memory.graph.query import QuestionKind as Wanted
from agentd.memory.graph.recall import Recollection
from agentd.memory.graph.wire import answer_json, picture_json

log = structlog.get_logger()


_AROUND = 36  # characters shown on each side of the error


def with_pointer(question: str, error: QueryError) -> QueryError:
    """Return the error with the line of the question in its message, and `^` below its place. An
    error without a place is about something missing, and is placed after the last word.
    """
    if not error.line:
        words = question.rstrip().split("\n")
        end = len(words), len(words[-1]) + 1
        error = QueryError(error.message, cure=error.cure, line=end[0], column=end[1])
    lines = question.split("\n")
    if not 0 < error.line <= len(lines) or error.column < 1:
        return error
    line = "".join(c if c.isprintable() else " " for c in lines[error.line - 1])
    at = min(error.column - 1, len(line))
    start, stop = max(0, at - _AROUND), min(len(line), at + _AROUND)
    before = f"{'…' if start else ''}{line[start:at]}"
    after = f"{line[at:stop]}{'…' if stop < len(line) else ''}"
    shown = f"  {before}{after}\n  {' ' * columns(before)}^"
    return QueryError(f"{error.message}\n{shown}", cure=error.cure)


CAPACITY = 20  # episodes remembered per session
SESSIONS = 256  # sessions remembered, the most recently used


class WorkingMemory:
    """The last episodes of each session, oldest dropped first; in memory only. Raises ValueError
    for a capacity below one.
    """

    def __init__(self, capacity: int = CAPACITY, sessions: int = SESSIONS) -> None:
        if capacity < 1 or sessions < 1:
            raise ValueError("working memory holds at least one episode of one session")
        self._capacity = capacity
        self._most = sessions
        self._sessions: OrderedDict[SessionKey, OrderedDict[EpisodeHash, Relation]] = OrderedDict()

    def add(self, session: SessionKey, episodes: Iterable[Relation]) -> None:
        """Add episodes, the newest last. A known one becomes the newest."""
        held = self._sessions.setdefault(session, OrderedDict())
        self._sessions.move_to_end(session)
        for relation in episodes:
            held[relation.episode] = relation
            held.move_to_end(relation.episode)
            if len(held) > self._capacity:
                held.popitem(last=False)
        while len(self._sessions) > self._most:
            self._sessions.popitem(last=False)

    def peek(self, session: SessionKey, n: int = CAPACITY) -> tuple[Relation, ...]:
        """Return the last `n` episodes, or all if there are fewer, the newest last. Raises
        ValueError for a negative `n`.
        """
        if n < 0:
            raise ValueError(f"there are no last {n} episodes")
        held = tuple(self._sessions.get(session, OrderedDict()).values())
        return held[max(0, len(held) - n) :]

    def drop(self, session: SessionKey) -> None:
        """Forget the session."""
        self._sessions.pop(session, None)


OWNER = "user"  # the label of the asker, if everything is visible
BESIDE = 5  # facts given to a model beside those of the best path
_KINDS = frozenset(form for kind in Wanted for form in (kind.value, f"{kind.value}s"))

Scopes = Sequence[str] | None


class Recalled(Struct, frozen=True):
    """What a session recalled. `is_foreign`: others than the owner said some of it, or they alone
    have named a label proposed for an unknown name. `tellers` are the other agents, with what each
    said.
    """

    answer: GraphAnswer
    is_foreign: bool = False
    tellers: Mapping[str, Sequence[str]] = field(default_factory=dict)


class GraphService:
    """The graph, brought level before each answer; if that fails, the last known state answers."""

    def __init__(
        self,
        keeper: GraphKeeper,
        recollection: Recollection,
        store: GraphStore,
        clock: Clock,
    ) -> None:
        self._keeper = keeper
        self._recollection = recollection
        self._store = store
        self._clock = clock
        self._refresh: Callable[[], Awaitable[object]] | None = None
        self._working = WorkingMemory()

    def refresh_with(self, refresh: Callable[[], Awaitable[object]]) -> None:
        """Await `refresh` before each answer; it makes facts take over changes of their page."""
        self._refresh = refresh

    async def ask(
        self,
        question: str,
        *,
        limit: int = LIMIT,
        scopes: Scopes = None,
        beside: int | None = None,
    ) -> GraphAnswer:
        """Answer a question that begins with FIND, or return the facts that answer any other text,
        at most `limit`; with `beside`, at most so many that are not part of the best path. Raises
        QueryError that shows the place of a mistake, GraphError for an invalid name.
        """
        await self._fresh()
        if not is_query(question):
            owner = OWNER if scopes is None else ""
            return await self._recollection.about(
                question, limit, scopes=scopes, owner=owner, beside=beside
            )
        try:
            return await self._recollection.answer(question, scopes=scopes)
        except QueryError as error:
            raise with_pointer(question, error) from None

    async def recall(self, question: str, session: SessionKey, kind: SessionKind) -> Recalled:
        """Answer for a session: the owner's sees everything, any other only what was said in it. A
        text that names nothing known is taken to be about what the session recalled last. Raises as
        `ask` does.
        """
        scopes = None if kind is SessionKind.OWNER else (session,)
        answer = await self.ask(question, scopes=scopes, beside=BESIDE)
        if not answer.rows and not is_query(question) and (names := await self._last(session)):
            answer = await self._recollection.about(names, scopes=scopes, beside=BESIDE)
        traces = await self._store.traces([t.fact for t in answer.triples], scopes=scopes)
        self._working.add(session, [trace.relation for trace in traces])
        if fading := [trace.relation.episode for trace in traces if not trace.stands]:
            await self._store.touch(fading, self._clock.now())
        is_foreign = any(trace.source not in OWN for trace in traces)
        is_foreign = is_foreign or await self._are_named_by_others(answer.proposed)
        return Recalled(answer, is_foreign, await self.tellers(answer, traces))

    async def tellers(
        self, answer: GraphAnswer, traces: Sequence[Trace] | None = None
    ) -> Mapping[str, Sequence[str]]:
        """Return the other agents by name, each with the facts in the owner's answer that it
        says.
        """
        if traces is None:
            traces = await self._store.traces([triple.fact for triple in answer.triples])
        told = {trace.relation.context for trace in traces if trace.source == SHARED}
        contexts = await self._store.contexts(sorted(told)) if told else {}
        names: dict[FactHash, set[str]] = {}
        for trace in traces:
            if trace.relation.context in contexts:
                name = contexts[trace.relation.context].agent
                names.setdefault(trace.relation.fact, set()).add(name)
        return {
            name: [str(one) for one in answer.triples if name in names.get(one.fact, ())]
            for name in sorted(set().union(*names.values()))
        }

    async def picture(
        self,
        name: str,
        *,
        depth: int | None = None,
        most: int = 24,
        scopes: Scopes = None,
        by: TraversalMode = TraversalMode.PATHS,
    ) -> Picture:
        """Return the neighbourhood of a name, up to `depth` or the default of the way, with the
        history of each fact. Raises GraphError for an invalid name.
        """
        await self._fresh()
        picture = await self._recollection.picture(
            [name], depth=depth, most=most, scopes=scopes, by=by
        )
        facts = [edge.fact for edge in picture.edges]
        return picture.with_history(histories(await self._store.traces(facts, scopes=scopes)))

    async def as_text(self, picture: Picture, form: record.Form) -> str:
        """Return the owner's picture as text in this form. Raises GraphError if a fact was erased
        meanwhile.
        """
        return await record.as_text(self._store, picture.edges, form)

    def deleted(self, session: SessionKey) -> None:
        """Forget what a deleted session recalled."""
        self._working.drop(session)

    async def _are_named_by_others(self, labels: Collection[str]) -> bool:
        """Whether the owner himself has never said one of these labels."""
        for concept in await self._store.named(sorted(labels)) if labels else ():
            if concept.label not in labels:
                continue
            said = await self._store.episodes([concept.hash])
            contexts = await self._store.contexts(sorted({one.context for one in said}))
            if not any(context.source in OWN for context in contexts.values()):
                return True
        return False

    async def _last(self, session: SessionKey) -> str:
        """Return the labels of what the session dealt with last, the newest first."""
        held = reversed(self._working.peek(session))
        ends = dict.fromkeys(end for one in held for end in (one.object, one.subject))
        labels = await self._store.labels(ends)
        return ", ".join(labels[end] for end in ends if end in labels)

    async def _fresh(self) -> None:
        try:
            if self._refresh is not None:
                await self._refresh()
            await self._keeper.level()
        except AgentdError as error:  # reported by `status`
            log.warning("graph_not_level", reason=error.reason)


class GraphAnswers:
    """The owner's questions to the graph, answered as plain data (agentd/memory/graph/wire.py)."""

    def __init__(self, service: GraphService) -> None:
        self._service = service

    async def ask(self, question: str, limit: int) -> dict[str, Any]:
        """Return the answer, and which other agents say parts of it. Raises as `GraphService.ask`
        does.
        """
        answer = await self._service.ask(question, limit=limit)
        return {**answer_json(answer), "tellers": await self._service.tellers(answer)}

    async def around(
        self, name: str, depth: int | None, most: int, by: str, form: str
    ) -> dict[str, Any]:
        """Return a picture, with its text if `form` is a text form. Raises InvalidRequest for a
        depth beyond that of the way, and as `GraphService.picture` and `GraphService.as_text` do.
        """
        way, wanted = TraversalMode(by), record.Form(form)
        if depth is not None and depth > way.most:
            raise InvalidRequest(
                f"by {way} nothing is looked for {depth} facts away",
                cure=f"ask for a depth of at most {way.most}",
            )
        picture = await self._service.picture(name, depth=depth, most=most, by=way)
        if wanted is record.Form.PICTURE:
            return picture_json(picture)
        return {**picture_json(picture), "text": await self._service.as_text(picture, wanted)}


def is_query(text: str) -> bool:
    """Whether a text is meant as a query: it begins with FIND in capitals, or in any case if a kind
    of result follows.
    """
    first, *rest = text.split(maxsplit=2) or [""]
    if first == "FIND":
        return True
    return first.casefold() == "find" and bool(rest) and rest[0].casefold() in _KINDS
