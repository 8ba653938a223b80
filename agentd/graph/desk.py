"""What is asked of the graph, by people, commands and models: questions of its language, or plain words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from agentd.domain.belief import OWN, SHARED, Trace
from agentd.domain.concept import FactHash
from agentd.domain.turn import Kind, SessionKey
from agentd.errors import AgentdError, QueryError
from agentd.graph import record
from agentd.graph.answer import Answer
from agentd.graph.history import histories
from agentd.graph.keeper import GraphKeeper
from agentd.graph.path import Way
from agentd.graph.picture import Picture
from agentd.graph.pointing import pointed
from agentd.graph.query import LIMIT
from agentd.graph.query import Kind as Wanted
from agentd.graph.recall import Recollection
from agentd.graph.working import WorkingMemory
from agentd.ports import Clock, GraphStore

log = structlog.get_logger()

OWNER = "user"  # who asks, where all may be seen
BESIDE = 5  # facts that a model is told beside those of the best way
_KINDS = frozenset(form for kind in Wanted for form in (kind.value, f"{kind.value}s"))

Scopes = Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a session recalled. `is_foreign` says that others than the owner said some of it, or that they
    alone have named what is proposed for an unknown name; `tellers` which other agents said what.
    """

    answer: Answer
    is_foreign: bool = False
    tellers: Mapping[str, Sequence[str]] = field(default_factory=dict)


class GraphDesk:
    """The graph, made level before each answer; where that fails, what was known answers."""

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
        """Await this before each answer: facts take in then what was done to their page."""
        self._refresh = refresh

    async def ask(
        self,
        question: str,
        *,
        limit: int = LIMIT,
        scopes: Scopes = None,
        beside: int | None = None,
    ) -> Answer:
        """The answer to a question that begins with FIND, or the facts that answer any other text, at
        most `limit`, and with `beside` so many that the best way does not need. Raises QueryError that
        shows the place of a mistake, GraphError for a name that is no label.
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
            raise pointed(question, error) from None

    async def recall(self, question: str, session: SessionKey, kind: Kind) -> Recalled:
        """The answer for a session: the owner's see all, any other what was said in it alone. A text
        that names nothing known is about what the session recalled last. Raises as `ask` does.
        """
        scopes = None if kind is Kind.MAIN else (session,)
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
        self, answer: Answer, traces: Sequence[Trace] | None = None
    ) -> Mapping[str, Sequence[str]]:
        """The names of other agents, each with what of the owner's answer it says."""
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
        by: Way = Way.PATHS,
    ) -> Picture:
        """What is around a name, as far as the way goes or `depth` says, each fact with its history.
        Raises GraphError for a name that is no label.
        """
        await self._fresh()
        picture = await self._recollection.picture(
            [name], depth=depth, most=most, scopes=scopes, by=by
        )
        facts = [edge.fact for edge in picture.edges]
        return picture.told(histories(await self._store.traces(facts, scopes=scopes)))

    async def told(self, picture: Picture, form: record.Form) -> str:
        """What the owner's picture shows as text in this form. Raises GraphError where it was erased
        meanwhile.
        """
        return await record.told(self._store, picture.edges, form)

    def deleted(self, session: SessionKey) -> None:
        """A session was deleted: nothing is known any more of what it recalled."""
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
        """The names of what the session dealt with last, the newest first."""
        held = reversed(self._working.peek(session))
        ends = dict.fromkeys(end for one in held for end in (one.object, one.subject))
        labels = await self._store.labels(ends)
        return ", ".join(labels[end] for end in ends if end in labels)

    async def _fresh(self) -> None:
        try:
            if self._refresh is not None:
                await self._refresh()
            await self._keeper.level()
        except AgentdError as error:  # `status` names it
            log.warning("graph_not_level", reason=error.reason)


def is_query(text: str) -> bool:
    """Whether a text is meant as a question of the graph's language: it begins with FIND in capitals, or
    in any case before what can be found.
    """
    first, *rest = text.split(maxsplit=2) or [""]
    if first == "FIND":
        return True
    return first.casefold() == "find" and bool(rest) and rest[0].casefold() in _KINDS
