"""Search over an invented year of notes and talks: `python -m benchmarks.year` prints every figure,
`EMBEDDER=auto` before it those of a fresh installation once all vectors are there.

Of the default pipeline it is asked that on no type of question it does worse than its better leg,
and that a current value stands above the outdated ones.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from math import floor
from statistics import fmean, quantiles
from time import perf_counter

import numpy as np

from agentd.domain.memory import Chunk
from agentd.domain.search import Fusion, SearchOptions
from agentd.embedders.static import load
from agentd.ports import Embedder
from agentd.search.searcher import Searcher
from benchmarks import embedder
from benchmarks.row import Row
from benchmarks.workspace_year.baseline import Fts5
from benchmarks.workspace_year.reading import Asked, questions
from benchmarks.workspace_year.scoring import Marks, Search, Span, mark
from benchmarks.workspace_year.units import lines, units

DEPTH = 60
MIN_SCORE = SearchOptions().min_score
CURRENT_FIRST = 0.9
_PLAIN = SearchOptions(
    limit=DEPTH,
    fusion=Fusion.WEIGHTED,
    gate=False,
    recency=False,
    importance=False,
    newest_first=False,
    join=False,
)
_DEFAULT = SearchOptions(limit=DEPTH)
PIPELINES = {
    "keyword": replace(_PLAIN, text_weight=1.0, vector_weight=0.0),
    "vector": replace(_PLAIN, text_weight=0.0, vector_weight=1.0),
    "plain rrf": replace(_PLAIN, fusion=Fusion.RRF),
    "rrf": replace(_DEFAULT, fusion=Fusion.RRF),
    "weighted": replace(_DEFAULT, fusion=Fusion.WEIGHTED),
    "default": _DEFAULT,
}
LEGS = ("keyword", "vector")


@dataclass(frozen=True, slots=True)
class Year:
    """The searcher that holds everything, its units by slot, and the questions' vectors by id."""

    searcher: Searcher
    by_slot: dict[int, Chunk]
    vectors: dict[str, np.ndarray]

    def search(self, asked: Asked, options: SearchOptions, *, vector: bool = True) -> list[Span]:
        """The hits of a question, asked on its day."""
        options = replace(options, today=asked.now.date())
        query = self.vectors[asked.id] if vector else None
        return [
            self._span(hit.slots, hit.tokens, hit.score)
            for hit in self.searcher.search(asked.query, query, options)
        ]

    def _span(self, slots: Sequence[int], tokens: int, score: float) -> Span:
        first, last = self.by_slot[slots[0]], self.by_slot[slots[-1]]
        return Span(first.path, first.start_line, last.end_line, tokens, score)


async def built(made_by: Embedder | None = None) -> Year:
    """Everything indexed, with the vectors of this embedder or else of the word table."""
    made_by = made_by or load()
    chunks = units()
    texts = [f"{one.speaker} {one.context} {one.text}".strip() for one in chunks]
    searcher = Searcher(made_by.dimension)
    slots = searcher.add(chunks, _matrix(await made_by.embed(texts)))
    asked = questions()
    vectors = _matrix(await made_by.embed([one.query for one in asked], query=True))
    return Year(
        searcher,
        dict(zip(slots, chunks, strict=True)),
        {one.id: vector for one, vector in zip(asked, vectors, strict=True)},
    )


def marks(search: Search, split: str) -> dict[str, Marks]:
    """The marks of an engine by type of question, and over `all` types; `split` may be "" for both."""
    asked = [one for one in questions() if one.gold and split in ("", one.split)]
    answers = {one.id: search(one) for one in asked}
    types = {"all": asked} | {
        kind: [one for one in asked if one.type == kind]
        for kind in dict.fromkeys(one.type for one in asked)
    }
    return {kind: mark(some, [answers[one.id] for one in some]) for kind, some in types.items()}


def certainties(year: Year, split: str) -> dict[bool, list[float]]:
    """The score of the surest hit, 0 without any: of questions that can be answered, and that cannot."""
    found: dict[bool, list[float]] = {True: [], False: []}
    for asked in questions():
        if split in ("", asked.split):
            spans = year.search(asked, _DEFAULT)
            found[bool(asked.gold)].append(max((span.score for span in spans), default=0.0))
    return found


def refused(scores: Sequence[float], min_score: float) -> float:
    """The share of questions that get no hit at this threshold."""
    return fmean(score < min_score for score in scores)


async def rows() -> AsyncIterator[Row]:
    """One line per type: the default beside its better leg; then newest first, refusals and pace."""
    async with embedder.opened() as made:
        year = await built(made)
    by_name = {name: marks(_search(year, name), "") for name in (*LEGS, "default")}
    for kind, own in by_name["default"].items():
        best = max(by_name[leg][kind].hit3 for leg in LEGS)
        yield Row(
            f"a year of notes, {kind}: hit@3", [own.hit3], "share", least=floor(best * 1000) / 1000
        )
        yield Row(f"a year of notes, {kind}: recall in 1,000 tokens", [own.recall], "share")
    newest = by_name["default"]["changed"].newest
    if newest is not None:
        yield Row("a year of notes: current value first", [newest], "share", least=CURRENT_FIRST)
    sure = certainties(year, "")
    told, missed = refused(sure[False], MIN_SCORE), refused(sure[True], MIN_SCORE)
    yield Row("a year of notes: no answer told as such", [told], "share")
    yield Row("a year of notes: answers refused", [missed], "share")
    yield Row("a year of notes: one search", [_milliseconds(year)], "ms at p95", below=10)


async def tables(split: str) -> None:
    """Print every figure of every pipeline."""
    async with embedder.opened() as made:
        year = await built(made)
    engines: dict[str, Search] = {"fts5": Fts5(lines())}
    engines |= {name: _search(year, name) for name in PIPELINES}
    found = {name: marks(search, split) for name, search in engines.items()}
    figures: dict[str, Callable[[Marks], float | None]] = {
        "hit@1": lambda one: one.hit1,
        "hit@3": lambda one: one.hit3,
        "recall@1000tok": lambda one: one.recall,
        "newest first": lambda one: one.newest,
    }
    for title, figure in figures.items():
        print(f"\n| {title} | n | {' | '.join(found)} |\n|---|---|{'---|' * len(found)}")
        for kind, any_engine in found["default"].items():
            if figure(any_engine) is not None:
                cells = [f"{figure(by_kind[kind]):.3f}" for by_kind in found.values()]
                print(f"| {kind} | {any_engine.questions} | {' | '.join(cells)} |")
    print("\n| min_score | no answer told | answers refused |\n|---|---|---|")
    sure = certainties(year, split)
    for threshold in sorted({MIN_SCORE, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5}):
        told, missed = refused(sure[False], threshold), refused(sure[True], threshold)
        chosen = " (default)" if threshold == MIN_SCORE else ""
        print(f"| {threshold}{chosen} | {told:.3f} | {missed:.3f} |")


def _search(year: Year, name: str) -> Search:
    return lambda asked: year.search(asked, PIPELINES[name], vector=name != "keyword")


def _matrix(rows_of_bytes: Sequence[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(rows_of_bytes), "<f4").reshape(len(rows_of_bytes), -1)


def _milliseconds(year: Year) -> float:
    taken = []
    for asked in questions():
        begun = perf_counter()
        year.search(asked, _DEFAULT)
        taken.append((perf_counter() - begun) * 1000)
    return quantiles(taken, n=20)[-1]


if __name__ == "__main__":
    asyncio.run(tables(sys.argv[1] if len(sys.argv) > 1 else ""))
