"""How relevant facts are to a question, by letters and by meaning, and which of them answer it."""

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

SECONDS = 1.0  # seconds that an answer waits for the embedder
MOST_TEXTS = 24
MOST_NAMES = 500  # names that are compared, and whose vectors are cached


class NameSimilarity:
    """Compares names with texts by the cosine of their vectors; the embedder should be a fast
    one.
    """

    def __init__(self, embedder: Embedder, seconds: float = SECONDS) -> None:
        self._embedder = embedder
        self._seconds = seconds
        self._known: OrderedDict[str, bytes] = OrderedDict()

    async def near(
        self, texts: Sequence[str], names: Sequence[str]
    ) -> Mapping[str, Sequence[float]]:
        """Return for each name its cosines with the texts, up to a maximum of names and texts;
        empty if the embedder does not answer in time.
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


SAME = 0.6  # common prefix, as a share of the longer word, that makes two words forms of one
ALIKE = 0.45, 0.75  # cosines from which a word begins to mean a relation, and surely means it
LIKELY = 0.3  # factor for the highest cosine
A_STEP = 0.1  # cost of each fact of a path
WEAK = 0.3  # relevance below this counts as none
A_JOIN = 0.3  # bonus for a path that ends at a thing the question names
READ = 2_000  # characters of a question
_LEAST = 3  # least length of words in predicates that have longer ones, and of common prefixes
_WORD = re.compile(r"[^\W_]+")
Cosines = Mapping[str, Sequence[float]]  # cosines of each predicate with the words of a question


def words_of(text: str) -> list[str]:
    """Return the distinct words of a question."""
    found = (one for one in _WORD.findall(text[:READ].casefold()) if len(one) > 1)
    return list(dict.fromkeys(found))


class Relevance:
    """The relevance of predicates to a question, word by word: by letters, weighted by the rarity
    of the predicates' words, and by meaning, as far as `cosines` are known.
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
        """Return the relevance of a predicate to the question, in [0, 1]."""
        return max(self._said.get(predicate, ()), default=0.0)

    def relevant(self) -> list[str]:
        """Return the relevant predicates."""
        return [one for one in self._said if self.of(one) >= WEAK]

    def worth(self, predicates: Sequence[str]) -> float:
        """Return how much of the question a path with these predicates covers; each word of the
        question counts once.
        """
        rows = [self._said.get(one, ()) for one in predicates]
        said = sum(max(word) for word in zip(*rows, strict=False))
        likely = self._likely.get(predicates[-1], 0.0)
        return float(said + likely - A_STEP * len(predicates))

    def _scores(self, weights: Mapping[str, float], cosines: Sequence[float]) -> list[float]:
        """Return for each word of the question its relevance to a predicate with these words."""
        low, high = ALIKE
        whole = sum(weights.values())
        found = []
        for number, asked in enumerate(self._asked):
            letters = sum(
                weight for word, weight in weights.items() if _shared_prefix(word, asked) >= SAME
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
    """Return the paths that answer best, at most `limit`, each after its own prefixes; with
    `beside`, at most so many facts that are not part of the best path.

    After the best path come the facts by which the question names things: those that link them to
    the `hub`. `starts` is how many words of the question name each of these things.
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
    """Return the hash of the last fact."""
    return path.steps[-1].edge.fact.value


def _prefixes(path: Path) -> Iterator[Path]:
    way = Path.at(path.start)
    for step in path.steps:
        way = way.then(step)
        yield way


def _words(predicate: str) -> Sequence[str]:
    found = [one for one in predicate.casefold().split("_") if one]
    return [one for one in found if len(one) >= _LEAST] or found


def _shared_prefix(one: str, other: str) -> float:
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    return same / max(len(one), len(other)) if same >= _LEAST or one == other else 0.0
