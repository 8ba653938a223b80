"""What facts have to do with a question, by letters and by meaning, and which are told."""

from __future__ import annotations

import asyncio
import re
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import mul

import structlog

from agentd.core.errors import EmbedderFault
from agentd.core.graph import ConceptHash
from agentd.core.ports import Embedder
from agentd.memory.graph.paths import Path
from agentd.memory.graph.traversal import Traversal

log = structlog.get_logger()

SECONDS = 1.0  # that an answer waits for an embedder
MOST_TEXTS = 24
MOST_NAMES = 500  # that are compared, and whose vectors are remembered


class Meaning:
    """How near names are to texts in meaning, by this embedder, which should be a quick one."""

    def __init__(self, embedder: Embedder, seconds: float = SECONDS) -> None:
        self._embedder = embedder
        self._seconds = seconds
        self._known: OrderedDict[str, bytes] = OrderedDict()

    async def near(
        self, texts: Sequence[str], names: Sequence[str]
    ) -> Mapping[str, Sequence[float]]:
        """For each name its cosines with the texts, as far as they are not too many; nothing where the
        embedder cannot say it in time.
        """
        some = list(dict.fromkeys(names))[:MOST_NAMES]
        try:
            async with asyncio.timeout(self._seconds):
                asked = await self._embedder.embed(list(texts)[:MOST_TEXTS], query=True)
                await self._learn(some)
        except (EmbedderFault, TimeoutError) as error:
            log.warning("graph_meaning_unknown", error=type(error).__name__)
            return {}
        vectors = {name: self._known[name] for name in some if name in self._known}
        return await asyncio.to_thread(_cosines, asked, vectors)

    async def _learn(self, names: Iterable[str]) -> None:
        fresh = [name for name in names if name not in self._known]
        if fresh:
            self._known.update(zip(fresh, await self._embedder.embed(fresh), strict=True))
        for name in names:
            self._known.move_to_end(name)
        while len(self._known) > MOST_NAMES:
            self._known.popitem(last=False)


def _cosines(asked: Sequence[bytes], names: Mapping[str, bytes]) -> dict[str, list[float]]:
    texts = [array("f", one) for one in asked]
    return {
        name: [sum(map(mul, text, vector)) for text in texts]
        for name, data in names.items()
        for vector in (array("f", data),)
    }


SAME = 0.6  # of the longer of two words that they share from their beginning: forms of one word
ALIKE = 0.45, 0.75  # cosines from which on a word means something like a relation, and means it
LIKELY = 0.3  # what a cosine is worth that is below them
A_STEP = 0.1  # what each fact of a path costs
WEAK = 0.3  # below it a fact has little to do with the question
A_JOIN = 0.3  # what it is worth that a path ends at a thing that the question names
READ = 2_000  # characters of a question
_LEAST = 3  # letters of a word of a predicate that has longer ones, and that words share
_WORD = re.compile(r"[^\W_]+")
Cosines = Mapping[str, Sequence[float]]  # of each predicate with the words of a question


def words_of(text: str) -> list[str]:
    """The words of a question, each once."""
    found = (one for one in _WORD.findall(text[:READ].casefold()) if len(one) > 1)
    return list(dict.fromkeys(found))


class Relevance:
    """What predicates have to do with a question, word by word: by letters, the rarer words of predicates
    the more, and by meaning, as far as `cosines` tells it.
    """

    def __init__(self, question: str, predicates: Iterable[str], cosines: Cosines) -> None:
        self._asked = words_of(question)
        words = {one: _words(one) for one in predicates}
        many = Counter(word for some in words.values() for word in some)
        self._said = {
            name: self._scores({word: 1 / many[word] for word in some}, cosines.get(name, ()))
            for name, some in words.items()
        }
        self._likely = {name: LIKELY * max(found, default=0.0) for name, found in cosines.items()}

    def of(self, predicate: str) -> float:
        """How much it has to do with the question, in [0, 1]."""
        return max(self._said.get(predicate, ()), default=0.0)

    def relevant(self) -> list[str]:
        """The predicates that have much to do with it."""
        return [one for one in self._said if self.of(one) >= WEAK]

    def worth(self, predicates: Sequence[str]) -> float:
        """How much of the question a path with these predicates says: each of its words counts once."""
        rows = [self._said.get(one, ()) for one in predicates]
        said = sum(max(word) for word in zip(*rows, strict=False))
        likely = self._likely.get(predicates[-1], 0.0)
        return float(said + likely - A_STEP * len(predicates))

    def _scores(self, weights: Mapping[str, float], cosines: Sequence[float]) -> list[float]:
        """For each word of the question what it has to do with a predicate of these words."""
        low, high = ALIKE
        whole = sum(weights.values())
        found = []
        for number, asked in enumerate(self._asked):
            letters = sum(
                weight for word, weight in weights.items() if _shared(word, asked) >= SAME
            )
            cosine = cosines[number] if number < len(cosines) else 0.0
            means = min(1.0, max(0.0, (cosine - low) / (high - low)))
            score = max(letters / whole, means)
            found.append(score if score >= WEAK else 0.0)
        return found


def answering_paths(
    traversal: Traversal,
    relevance: Relevance,
    starts: Mapping[ConceptHash, float],
    hub: ConceptHash | None,
    limit: int,
    beside: int | None = None,
) -> list[Path]:
    """The paths that answer best, at most `limit`, each behind those that lead to it; with `beside`, no more
    than so many facts that are no part of the best path. Behind that come the facts by which the question
    names things: those that tell what they are to the `hub`. `starts` is how much of the question each of
    these things is.
    """
    worth = {
        path: relevance.worth([step.edge.predicate for step in path.steps])
        + starts.get(path.start, 0.0)
        + A_JOIN * (path.end in starts)
        for path in traversal.arrivals
    }
    ranked = sorted(worth, key=lambda one: (-worth[one], one.depth, one.order))
    naming = [one for one in ranked if _names(one, hub, starts, relevance)]
    if ranked and beside is not None:
        limit = min(limit, ranked[0].depth + beside)
    found: dict[bytes, Path] = {}
    for path in (*ranked[:1], *naming, *ranked[1:]):
        new = [one for one in _prefixes(path) if _name(one) not in found]
        if len(found) + len(new) <= limit:
            found.update((_name(one), one) for one in new)
    return list(found.values())


def _names(
    path: Path,
    hub: ConceptHash | None,
    starts: Mapping[ConceptHash, float],
    relevance: Relevance,
) -> bool:
    if path.depth > 1 or path.start not in starts or path.end != hub:
        return False
    return relevance.of(path.steps[0].edge.predicate) >= WEAK


def _name(path: Path) -> bytes:
    """Of its last fact."""
    return path.steps[-1].edge.fact.value


def _prefixes(path: Path) -> Iterator[Path]:
    way = Path.at(path.start)
    for step in path.steps:
        way = way.then(step)
        yield way


def _words(predicate: str) -> Sequence[str]:
    found = [one for one in predicate.casefold().split("_") if one]
    return [one for one in found if len(one) >= _LEAST] or found


def _shared(one: str, other: str) -> float:
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    return same / max(len(one), len(other)) if same >= _LEAST or one == other else 0.0
