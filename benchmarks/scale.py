"""How search in memory grows: build, memory, queries, and what the machine allows at best.

`python -m benchmarks.scale` prints the whole table, `python -m benchmarks.scale SIZE` one size as
JSON. With FULL=1 a million pieces are measured too, which takes minutes. The vectors are the word
table's, turned into as many numbers as the default model's have: to embed a million pieces with
that takes hours, and what a search costs is decided by how many numbers it compares.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from pathlib import Path
from statistics import fmean, median, quantiles
from time import perf_counter, process_time
from typing import Any

import numpy as np

from agentd.app.daemon import tune_interpreter
from agentd.core.search import Chunk, SearchOptions
from agentd.memory.index.embedding.static import load
from agentd.memory.index.search import words
from agentd.memory.index.search.searcher import Searcher
from benchmarks import machine
from benchmarks.engines import FullText, SqliteVec
from benchmarks.invented import Inventor
from benchmarks.row import Row

SIZES = (1_000, 10_000, 100_000)
FULL_SIZE = 1_000_000
QUESTIONS = 200
LEG = 200  # pieces that each leg proposes
WARM_UP = 20
PEERS_UP_TO = 100_000  # pieces; more take the others minutes
TODAY = date(2025, 11, 5)
P95_MS = {10_000: 12.0, 100_000: 15.0, FULL_SIZE: 60.0}
_OPTIONS = SearchOptions(today=TODAY)
_BATCH = 10_000
_NUMBERS = 768  # of a vector of the default model

Figures = dict[str, float]


async def rows() -> AsyncIterator[Row]:
    """The lines that have a goal, per size."""
    for size in _sizes():
        own = await _in_a_process(size)
        yield Row(
            f"search among {size:,} pieces", [own["query p95 ms"]], "ms at p95", P95_MS.get(size)
        )
        recall = own["recall@10"]
        yield Row(f"nearest ten found among {size:,}", [recall], "share", least=0.99)
        if size == max(SIZES):
            yield Row("pieces put into memory", [own["pieces/s"]], "/s")
            lag = own["loop lag p99 ms"]
            yield Row("loop lag while pieces are put into memory", [lag], "ms at p99", below=20)


async def table() -> None:
    """Print every figure, sizes in columns."""
    columns = {size: await _in_a_process(size) for size in _sizes()}
    print(machine.facts(), end="\n\n")
    print(f"| | {' | '.join(f'{size:,}' for size in columns)} |\n|---|{'---|' * len(columns)}")
    for name in next(iter(columns.values())):
        cells = [f"{own[name]:.3g}" if name in own else "-" for own in columns.values()]
        print(f"| {name} | {' | '.join(cells)} |")
    if reason := SqliteVec.missing():
        print(f"\nsqlite-vec was not measured: {reason}.")


async def measure(size: int) -> Figures:
    """Everything about one size."""
    tune_interpreter()  # as the daemon does
    embedder, inventor = Wide(_NUMBERS), Inventor()
    texts = inventor.questions(QUESTIONS)
    texts = [f"{text} last week" if at % 20 == 0 else text for at, text in enumerate(texts)]
    vectors = await embedder.embed(texts)
    built = Built(embedder, Nearest(vectors), small=size <= PEERS_UP_TO)
    for chunks in inventor.chunks(size, _BATCH):
        await built.add(chunks)
    out = built.figures()
    searcher = built.searcher
    out |= _queries(searcher, texts, vectors)
    out["recall@10"] = built.nearest.recall(searcher)
    out |= _limits(searcher, size)
    if (full_text := built.full_text) is not None:
        out |= _percentiles("FTS5 60 best", lambda text: full_text.top(words.terms(text)), texts)
    if (vec := built.vec) is not None:
        out |= _percentiles("sqlite-vec 10 nearest", vec.top, list(vectors))
    out["loop lag p99 ms"] = await _lag(Searcher())
    return out


class Wide:
    """The word table's vectors in a space of more numbers, with the same angles between them."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._table = load()
        noise = np.random.default_rng(1).normal(size=(dimension, self._table.dimension))
        self._turned = np.linalg.qr(noise)[0].T.astype(np.float32)

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        """One row for each text."""
        found = b"".join(await self._table.embed(texts))
        return np.frombuffer(found, "<f4").reshape(len(texts), -1) @ self._turned


class Built:
    """A searcher and its rivals, filled with the same pieces, and what that took."""

    def __init__(self, embedder: Wide, nearest: Nearest, *, small: bool) -> None:
        self.searcher = Searcher(embedder.dimension)
        self.nearest = nearest
        self.full_text = FullText() if small else None
        self.vec = SqliteVec(embedder.dimension) if small and not SqliteVec.missing() else None
        self._embedder = embedder
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._held = 0

    async def add(self, chunks: list[Chunk]) -> None:
        """Add pieces everywhere."""
        first = len(self.searcher)
        slots = range(first, first + len(chunks))
        begun = perf_counter()
        rows = await self._embedder.embed([chunk.text for chunk in chunks])
        self._seconds["embedded/s"] += perf_counter() - begun
        before = _resident()
        self._time("pieces/s", partial(self.searcher.add, chunks))
        self._time("vectors/s", partial(self.searcher.set_vectors, slots, rows))
        self._held += _resident() - before
        self.nearest.look(first, rows)
        if self.full_text is not None:
            terms = [words.terms(chunk.text) for chunk in chunks]
            self._time("FTS5 rows/s", partial(self.full_text.add, terms))
        if self.vec is not None:
            self.vec.add(first, rows)

    def figures(self) -> Figures:
        """Rates and memory."""
        assert self.searcher.vectors is not None
        size = len(self.searcher)
        share = size / 100_000 * 1e6
        return {name: size / taken for name, taken in self._seconds.items()} | {
            "postings, MB per 100,000": self.searcher.postings.nbytes / share,
            "vectors, MB per 100,000": self.searcher.vectors.nbytes / share,
            "all of it, MB per 100,000": self._held / share,
        }

    def _time(self, name: str, work: Callable[[], object]) -> None:
        self._seconds[name] += _took(work)


class Nearest:
    """The exact ten nearest of each question, kept while vectors pass by."""

    def __init__(self, questions: np.ndarray) -> None:
        self._questions = questions
        self._scores = np.zeros((len(questions), 0), np.float32)
        self._slots = np.zeros((len(questions), 0), np.int64)

    def look(self, first: int, rows: np.ndarray) -> None:
        """See the vectors of the slots from `first` on."""
        scores = np.concatenate([self._scores, self._questions @ rows.T], axis=1)
        new = np.tile(np.arange(first, first + len(rows)), (len(scores), 1))
        slots = np.concatenate([self._slots, new], axis=1)
        order = np.argsort(-scores, axis=1)[:, :10]
        self._scores = np.take_along_axis(scores, order, axis=1)
        self._slots = np.take_along_axis(slots, order, axis=1)

    def recall(self, searcher: Searcher) -> float:
        """The share of them that a searcher finds among as many as it would look at."""
        assert searcher.vectors is not None
        shares = []
        for question, slots in zip(self._questions, self._slots, strict=True):
            found = searcher.vectors.top(question, 10)[0][:10]
            shares.append(len(set(found.tolist()) & set(slots.tolist())) / slots.size)
        return fmean(shares)


def _queries(searcher: Searcher, texts: Sequence[str], vectors: np.ndarray) -> Figures:
    assert searcher.vectors is not None
    taken, worked = [], []
    asked = list(zip(texts, vectors, strict=True))
    for text, vector in [*asked[:WARM_UP], *asked]:
        begun, cpu = perf_counter(), process_time()
        searcher.search(text, vector, _OPTIONS)
        taken.append(1000 * (perf_counter() - begun))
        worked.append(1000 * (process_time() - cpu))
    out = _spread("query", taken[WARM_UP:]) | _spread("query, processor", worked[WARM_UP:])
    terms = [[(term, 1.0) for term in dict.fromkeys(words.terms(text))] for text in texts]
    keywords, meaning = searcher.postings, searcher.vectors
    out |= _percentiles("keyword leg", lambda own: keywords.top(own, LEG), terms)
    return out | _percentiles("vector leg", lambda own: meaning.top(own, LEG), list(vectors))


def _limits(searcher: Searcher, size: int) -> Figures:
    """How long it takes to read once what a query has to compare: all vectors, or all codes."""
    assert searcher.vectors is not None
    block = np.ones(1 << 26, np.float32)
    bandwidth = block.nbytes / min(_took(block.sum) for _ in range(5))
    plain = size * searcher.vectors.dimension * 4
    return {
        "memory bandwidth, GB/s": bandwidth / 1e9,
        "limit: read all float32, ms": plain / bandwidth * 1000,
        "limit: read all codes, ms": plain / 32 / bandwidth * 1000,
    }


async def _lag(searcher: Searcher) -> float:
    """How late the loop's turns are while a thread adds pieces: 99 of 100 in milliseconds."""
    batches = list(Inventor(2).chunks(5_000, 250))
    late: list[float] = []
    with ThreadPoolExecutor(1) as thread:
        loop = asyncio.get_running_loop()
        for chunks in batches:
            adding = loop.run_in_executor(thread, searcher.add, chunks)
            while not adding.done():
                begun = perf_counter()
                await asyncio.sleep(0.002)
                late.append((perf_counter() - begun - 0.002) * 1000)
            await adding
    return quantiles(late, n=100)[-1]


def _percentiles(name: str, ask: Callable[[Any], object], asked: Sequence[Any]) -> Figures:
    """Half, and 95 of 100, of the questions take at most so long."""
    for one in asked[:WARM_UP]:
        ask(one)
    return _spread(name, [1000 * _took(partial(ask, one)) for one in asked])


def _spread(name: str, taken: Sequence[float]) -> Figures:
    return {f"{name} p50 ms": median(taken), f"{name} p95 ms": quantiles(taken, n=20)[-1]}


def _took(work: Callable[[], object]) -> float:
    begun = perf_counter()
    work()
    return perf_counter() - begun


def _resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _sizes() -> tuple[int, ...]:
    return (*SIZES, FULL_SIZE) if os.environ.get("FULL") else SIZES


async def _in_a_process(size: int) -> Figures:
    """Measure a size in a process of its own, on one core as in the daemon."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.scale", str(size),
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    figures: Figures = json.loads(out)
    return figures


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(asyncio.run(measure(int(sys.argv[1])))))
    else:
        asyncio.run(table())
