"""Recall from the graph: answers queries, and finds what it knows about the things that a text
names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import QueryError
from agentd.core.graph import Concept, ConceptHash
from agentd.core.ports import Clock, GraphReader, Walk
from agentd.memory.graph import mentions
from agentd.memory.graph.answer import AnswerRow, GraphAnswer, Unknown
from agentd.memory.graph.conditions import Normalised, normalise
from agentd.memory.graph.importance import Importance, rank
from agentd.memory.graph.paths import (
    LIMITS,
    MAX_DEPTH,
    MAX_RESULTS,
    Path,
    PathLimits,
    TraversalMode,
)
from agentd.memory.graph.picture import Picture, neighbourhood
from agentd.memory.graph.query import LIMIT, GraphQuery, QuestionKind, parse
from agentd.memory.graph.relevance import Relevance, answering_paths, words_of
from agentd.memory.graph.results import (
    GraphFound,
    Labels,
    Names,
    Scores,
    best,
    candidates,
    concepts_of,
    rows,
    spellings,
)
from agentd.memory.graph.spreading import spread
from agentd.memory.graph.traversal import GraphView, Traversal, along, best_paths, fewest_hops
from agentd.zero.naming import Aliases, normal_label

STATED = 500  # facts considered for a query without names
LOOKED_AT = 100  # facts counted to explain why none was walked
NEAREST = 3  # labels proposed for an unknown name

_USUAL = Aliases()

Scopes = Sequence[str] | None
Near = Callable[
    [Sequence[str], Sequence[str]], Awaitable[Mapping[str, Sequence[float]]]
]  # texts, names: cosines by name


class Recollection:
    """Recall from the graph. `resolve` turns a name as people write it into a normal label, `near`
    returns the cosines of names with texts.

    `scopes` are the audiences whose facts may be used; None means all. With scopes, a concept
    without a fact in them is treated as if it did not exist, and concepts have no names but their
    labels, because an alias is information as well, and nobody knows any more who was told it.
    """

    def __init__(
        self,
        store: GraphReader,
        clock: Clock,
        *,
        resolve: Callable[[str], str] = normal_label,
        near: Near | None = None,
        limits: PathLimits = LIMITS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._resolve = resolve
        self._near = near
        self._limits = limits

    async def answer(self, query: GraphQuery | str, *, scopes: Scopes = None) -> GraphAnswer:
        """Answer a query (agentd/memory/graph/query.py), the best rows first.

        Concepts and paths are found by their best path, facts once each; the way of the query
        (`TraversalMode`) decides which path is best, and the score. Raises QueryError for a text
        that is no query and for a query without a start, GraphError for an invalid name.
        """
        asked = parse(query) if isinstance(query, str) else query
        resolve = self._resolver(scopes)
        where = normalise(asked.where, resolve) if asked.where is not None else None
        view = self._view(scopes)
        if asked.names:
            return await self._from_names(asked, where, view)
        if where is None or where.predicate is None:
            raise QueryError(
                "the question has no beginning",
                cure="add FROM and a name, or WHERE predicate = and a predicate",
            )
        edges = await self._store.stating(where.predicate, STATED, scopes=view.scopes, now=view.now)
        if not edges:
            return GraphAnswer(asked.kind, reason=f"no fact has the predicate {where.predicate!r}")
        traversal = along(edges, self._limits)
        stated = _Reached(asked.by, traversal, Importance(traversal, self._clock.now()))
        return await self._answer(asked, where, stated, view)

    async def about(
        self,
        text: str,
        limit: int = LIMIT,
        *,
        scopes: Scopes = None,
        owner: str = "",
        beside: int | None = None,
    ) -> GraphAnswer:
        """Return the facts that answer a text, along paths of up to four facts from the concepts
        that it names (labels and aliases of up to five words). First come those whose relations the
        text mentions in letters or by meaning, each after the facts that lead to it; with `beside`,
        at most so many that are not part of the best path. `owner` is the label of the asker: paths
        begin there, too, along relations that the text mentions, and none leads through it.
        """
        starts = await self._starts(text, scopes)
        hub = await self._called([owner], scopes) if owner else ()
        if not starts and not hub:
            return GraphAnswer(
                QuestionKind.FACT, reason="the text names nothing that the graph knows"
            )
        relevance = await self._relevance(text, await self._store.predicates())
        said = relevance.relevant()
        seeds = [*starts, *(one.hash for one in hub if said)]
        view, middle = self._view(scopes), hub[0].hash if hub else None
        limits = replace(self._limits, depth=MAX_DEPTH)
        traversal = await self._store.walk(
            best_paths(list(dict.fromkeys(seeds)), limits, view, preferred=said, hub=middle)
        )
        paths = answering_paths(
            traversal, relevance, starts, middle, min(limit, MAX_RESULTS), beside
        )
        if not paths:
            return GraphAnswer(
                QuestionKind.FACT, reason="the text names nothing that the graph knows"
            )
        scores = Importance(traversal, self._clock.now())
        found = [GraphFound(QuestionKind.FACT, path, scores.fact(path)) for path in paths]
        return GraphAnswer(QuestionKind.FACT, await self._rows(found))

    async def picture(
        self,
        names: Sequence[str],
        *,
        depth: int | None = None,
        most: int = 24,
        scopes: Scopes = None,
        by: TraversalMode = TraversalMode.PATHS,
    ) -> Picture:
        """Return the neighbourhood of these names, up to `depth` or the default of the way, with at
        most `most` other concepts. Without a known name the picture is empty, and its title says
        so. Raises GraphError for an invalid name.
        """
        seeds, unknown = await self._seeds(names, scopes)
        far = by.depth if depth is None else depth
        reached = await self._reach(sorted(seeds), far, self._view(scopes), by)
        traversal = reached.traversal
        missing = [*unknown, *_unseen(seeds, traversal)]
        if len(missing) == len(names):
            return Picture("; ".join(str(Unknown(name)) for name in missing), by=by)
        ranked = reached.ranked(self._clock.now())
        hashes = {one for edge in traversal.edges for one in (edge.subject, edge.object)}
        labels = await self._store.labels(hashes)
        how = "" if by is TraversalMode.PATHS else f", by {by}"
        return neighbourhood(f"Around {', '.join(names)}{how}", traversal, ranked, labels, most, by)

    async def _starts(self, text: str, scopes: Scopes) -> dict[ConceptHash, float]:
        """Return the concepts that a text names, each with how many of its words name it."""
        spans = mentions.spans(text, self._resolver(scopes))
        wanted = sorted({label for span in spans for label in span.labels})
        names: dict[str, list[Concept]] = {}
        for concept in await self._called(wanted, scopes) if wanted else ():
            for name in spellings(concept):
                names.setdefault(name, []).append(concept)
        found: dict[ConceptHash, float] = {}
        for label, span in mentions.longest(spans, names.__contains__):
            for concept in names[label]:
                said = float(len(words_of(text[span.start : span.end])))
                found[concept.hash] = max(said, found.get(concept.hash, 0.0))
        return found

    async def _relevance(self, text: str, predicates: Sequence[str]) -> Relevance:
        names = {one: one.replace("_", " ") for one in predicates}
        cosines: Mapping[str, Sequence[float]] = {}
        if self._near is not None and names:
            cosines = await self._near(words_of(text), list(names.values()))
        return Relevance(text, names, {one: cosines.get(name, ()) for one, name in names.items()})

    async def _from_names(
        self, asked: GraphQuery, where: Normalised | None, view: GraphView
    ) -> GraphAnswer:
        seeds, unknown = await self._seeds(asked.names, view.scopes)
        about = {where.predicate} if where and where.predicate is not None else ()
        reached = await self._reach(sorted(seeds), asked.depth, view, asked.by, about=about)
        missing = [*unknown, *_unseen(seeds, reached.traversal)]
        strangers = [Unknown(name, await self._nearest(name, view)) for name in missing]
        if not reached.traversal.edges:
            weak = await self._weak(sorted(seeds), view)
            reason = weak or "; ".join(map(str, strangers))
            return GraphAnswer(
                asked.kind, reason=reason, unknown=() if weak else tuple(strangers), by=asked.by
            )
        return await self._answer(asked, where, reached, view, tuple(strangers))

    async def _answer(
        self,
        asked: GraphQuery,
        where: Normalised | None,
        reached: _Reached,
        view: GraphView,
        unknown: tuple[Unknown, ...] = (),
    ) -> GraphAnswer:
        found = candidates(asked.kind, reached.traversal, reached.scores)
        if where is not None:
            names = await self._names(found, view) if where.needs_labels else {}
            found = [one for one in found if where.holds(one.fields(names))]
        if kept := best(found, asked.by)[: asked.limit]:
            return GraphAnswer(asked.kind, await self._rows(kept), unknown=unknown, by=asked.by)
        walked = len(reached.traversal.edges)
        facts = "1 fact was" if walked == 1 else f"{walked} facts were"
        reason = f"{facts} looked at, and no {asked.kind} among them fits the question"
        return GraphAnswer(asked.kind, reason=reason, unknown=unknown, by=asked.by)

    def _view(self, scopes: Scopes) -> GraphView:
        return GraphView(scopes, self._clock.now())

    async def _reach(
        self,
        seeds: Sequence[ConceptHash],
        depth: int,
        view: GraphView,
        by: TraversalMode = TraversalMode.PATHS,
        *,
        about: Collection[str] = (),
    ) -> _Reached:
        """Walk from seeds; `about` are the predicates that the question is about."""
        now = self._clock.now()
        walk = _reach(seeds, by, depth, self._limits, view, now, preferred=about)
        return await self._store.walk(walk)

    def _resolver(self, scopes: Scopes) -> Callable[[str], str]:
        """Return the function from names to labels: the owner's aliases apply only if all scopes
        are visible.
        """
        return self._resolve if scopes is None else _USUAL.resolve

    async def _called(self, names: Sequence[str], scopes: Scopes) -> Sequence[Concept]:
        """Return the concepts with these normal names."""
        found = await self._store.named(names)
        if scopes is None:
            return found
        wanted = set(names)
        return [replace(one, aliases=()) for one in found if one.label in wanted]

    async def _seeds(
        self, names: Sequence[str], scopes: Scopes
    ) -> tuple[dict[ConceptHash, str], Sequence[str]]:
        """Return the concepts with these names, each with the name as written; and the names
        without a concept.
        """
        resolve = self._resolver(scopes)
        labels = {name: resolve(name) for name in names}
        seeds: dict[ConceptHash, str] = {}
        missing = dict.fromkeys(names)
        for concept in await self._called(sorted(set(labels.values())), scopes):
            for name, label in labels.items():
                if label in spellings(concept):
                    seeds[concept.hash] = name
                    missing.pop(name, None)
        return seeds, tuple(missing)

    async def _weak(self, seeds: Sequence[ConceptHash], view: GraphView) -> str:
        """Return why a walk used none of the facts of its seeds; "" if the seeds have no facts."""
        if not seeds:
            return ""
        edges = await self._store.edges(seeds, scopes=view.scopes, now=view.now, most=LOOKED_AT)
        if not edges:
            return ""
        surest = max(edge.confidence for edge in edges)
        count = len(edges) if len(edges) < LOOKED_AT else f"at least {LOOKED_AT}"
        facts = "1 fact is" if count == 1 else f"{count} facts are"
        least = self._limits.least
        return f"{facts} known, but none as sure as {least:g}: the surest has {surest:.2g}"

    async def _nearest(self, name: str, view: GraphView) -> tuple[str, ...]:
        similar = mentions.similar(self._resolver(view.scopes)(name))
        concepts = await self._called(similar, view.scopes)
        edges = await self._store.edges(
            [one.hash for one in concepts], scopes=view.scopes, now=view.now, most=1
        )
        seen = {one for edge in edges for one in (edge.subject, edge.object)}
        labels = {
            c.label: min(map(_place(similar), spellings(c))) for c in concepts if c.hash in seen
        }
        return tuple(sorted(labels, key=lambda label: (labels[label], label)))[:NEAREST]

    async def _rows(self, found: Sequence[GraphFound]) -> tuple[AnswerRow, ...]:
        return rows(found, Labels(await self._store.labels(concepts_of(found))))

    async def _names(self, found: Sequence[GraphFound], view: GraphView) -> Names:
        """Return the names of concepts: with scopes, only their labels."""
        if view.scopes is not None:
            labels = await self._store.labels(concepts_of(found))
            return {one.value: frozenset([label]) for one, label in labels.items()}
        known = await self._store.concepts(concepts_of(found))
        return {one.value: spellings(concept) for one, concept in known.items()}


def _place(names: Sequence[str]) -> Callable[[str], int]:
    places = {name: place for place, name in enumerate(names)}
    return lambda name: places.get(name, len(names))


def _unseen(seeds: dict[ConceptHash, str], traversal: Traversal) -> list[str]:
    """Return the names of seeds for which the walk saw no fact."""
    seen = {edge.subject.value for edge in traversal.edges}
    seen |= {edge.object.value for edge in traversal.edges}
    return sorted({*seeds.values()} - {name for one, name in seeds.items() if one.value in seen})


class _Reached(Struct, frozen=True):
    """What a walk reached, with the scores of its way: importance along paths, or activation."""

    by: TraversalMode
    traversal: Traversal
    scores: Scores

    def ranked(self, now: datetime) -> Sequence[tuple[Path, float]]:
        """Return the path to each reached concept with its score, the highest first; for BREADTH
        fewest facts first.
        """
        if self.by is TraversalMode.ACTIVATION:
            return [(path, self.scores.score(path)) for path in self.traversal.reached]
        scored = [(one.path, one.score) for one in rank(self.traversal, now)]
        return (
            sorted(scored, key=lambda one: one[0].depth)
            if self.by is TraversalMode.BREADTH
            else scored
        )


def _reach(
    seeds: Sequence[ConceptHash],
    by: TraversalMode,
    depth: int,
    limits: PathLimits,
    view: GraphView,
    now: datetime,
    *,
    preferred: Collection[str] = (),
) -> Walk[_Reached]:
    """Walk to everything at most `depth` facts away from seeds, and score it as of `now`.
    `preferred` are predicates that the question is about (see Adjacency). Raises ValueError for a
    depth beyond that of the way.
    """
    if by is TraversalMode.ACTIVATION:
        if not 1 <= depth <= by.most:
            raise ValueError(f"activation spreads for 1 to {by.most} rounds, not {depth}")
        spreading = yield from spread(seeds, limits, view, rounds=depth, preferred=preferred)
        return _Reached(by, spreading.traversal, spreading)
    walk = fewest_hops if by is TraversalMode.BREADTH else best_paths
    limits = replace(limits, depth=depth)
    traversal = yield from walk(seeds, limits, view, preferred=preferred)
    return _Reached(by, traversal, Importance(traversal, now))
