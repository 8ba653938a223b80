"""Other engines over the same pieces: SQLite's full-text search; sqlite-vec and txtai where they
are installed. `MEMBENCH=DIR python -m benchmarks engines` asks them what `benchmarks/retrieval.py`
asks.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib import import_module, util
from pathlib import Path
from statistics import fmean, quantiles
from time import perf_counter
from typing import Any, Self

import numpy as np
from msgspec.structs import replace

from agentd.core.ports import Embedder
from agentd.memory.index.embedding.places import packaged_model
from agentd.memory.index.search import words
from agentd.memory.index.search.units import embedded_text
from benchmarks import embedder, retrieval
from benchmarks.row import Row

TOP = 60
_WARM_UP = 5
Ask = Callable[[str], Awaitable[list[Any]]]


async def rows() -> AsyncIterator[Row]:
    """Of each engine and form recall within 1,000 tokens, nDCG and what a question takes, the
    making of its vector included.
    """
    place = os.environ.get("MEMBENCH", "")
    if not place:
        yield Row("other engines: MEMBENCH is not set, nothing measured", [0], "questions")
        return
    if reason := Txtai.missing():
        yield Row(f"txtai: {reason}", [0], "questions")
    every = int(os.environ.get("EVERY", "1"))
    for form in retrieval.FORMS:
        async with embedder.opened() as own:
            talks = await retrieval.talks(Path(place), form, own)
            engines = {f"agentd, {embedder.settings().provider}": lambda talk: _agentd(talk, own)}
            engines["FTS5"] = _full_text
            if not Txtai.missing():
                engines["txtai, hybrid, MiniLM"] = _txtai
            for name, engine in engines.items():
                marks, taken = await _asked([(talk, engine(talk)) for talk in talks], every)
                what = f"conversations as {form}: {name}"
                for figure in ("recall@1000tok", "ndcg@10"):
                    yield Row(f"{what}: {figure}", [fmean(one[figure] for one in marks)], "share")
                yield Row(f"{what}: a question", [quantiles(taken, n=20)[-1]], "ms at p95")


async def _asked(
    pairs: Sequence[tuple[retrieval.Talk, Ask]], every: int
) -> tuple[list[dict[str, float]], list[float]]:
    """The marks of every question, and milliseconds."""
    marks, taken = [], []
    for talk, ask in pairs:
        for asked in talk.conversation.queries[:_WARM_UP]:
            await ask(asked["query"])
        for asked in talk.conversation.queries[::every]:
            if asked["category"] != "adversarial":
                begun = perf_counter()
                hits = await ask(asked["query"])
                taken.append((perf_counter() - begun) * 1000)
                marks.append(talk.core.score(talk.conversation, asked, hits))
    return marks, taken


def _agentd(talk: retrieval.Talk, own: Embedder | None) -> Ask:
    options = replace(retrieval.DEFAULT, today=talk.today)

    async def ask(query: str) -> list[Any]:
        vector = None
        if own is not None:
            (row,) = await own.embed([query], query=True)
            vector = np.frombuffer(row, "<f4")
        return [talk.hit(hit.slots) for hit in talk.searcher.search(query, vector, options)]

    return ask


def _full_text(talk: retrieval.Talk) -> Ask:
    index = FullText()
    index.add([words.terms(embedded_text(chunk)) for chunk in talk.chunks])

    async def ask(query: str) -> list[Any]:
        return [talk.hit([number - 1]) for number in index.top(words.terms(query))]

    return ask


def _txtai(talk: retrieval.Talk) -> Ask:
    index = Txtai()
    index.add([embedded_text(chunk) for chunk in talk.chunks])

    async def ask(query: str) -> list[Any]:
        return [talk.hit([number]) for number in index.top(query)]

    return ask


class FullText:
    """FTS5 in memory, asked for any of a question's terms, the best by BM25 first."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE pieces USING fts5(terms, content='')")

    def add(self, documents: Sequence[Sequence[str]]) -> None:
        """Add pieces by their terms."""
        rows = ((" ".join(terms),) for terms in documents)
        with self._db:
            self._db.executemany("INSERT INTO pieces (terms) VALUES (?)", rows)

    def top(self, terms: Sequence[str]) -> list[int]:
        """The numbers of the best."""
        query = " OR ".join(f'"{term}"' for term in terms) or '""'
        sql = "SELECT rowid FROM pieces WHERE pieces MATCH ? ORDER BY rank LIMIT ?"
        return [number for (number,) in self._db.execute(sql, (query, TOP))]


class SqliteVec:
    """sqlite-vec in memory through apsw, whose SQLite loads extensions everywhere."""

    @staticmethod
    def missing() -> str:
        """Why it cannot be measured; "" when it can."""
        absent = [name for name in ("apsw", "sqlite_vec") if util.find_spec(name) is None]
        return f"{' and '.join(absent)} not installed" if absent else ""

    def __init__(self, dimension: int) -> None:
        apsw: Any = import_module("apsw")
        self._db = apsw.Connection(":memory:")
        self._db.enable_load_extension(True)
        self._db.load_extension(import_module("sqlite_vec").loadable_path())
        self._db.execute(f"CREATE VIRTUAL TABLE pieces USING vec0(vector float[{dimension}])")

    def add(self, first: int, matrix: np.ndarray) -> Self:
        """Add vectors, numbered from `first`."""
        rows = [(first + number, row.tobytes()) for number, row in enumerate(matrix)]
        with self._db:
            self._db.executemany("INSERT INTO pieces (rowid, vector) VALUES (?, ?)", rows)
        return self

    def top(self, vector: np.ndarray) -> list[int]:
        """The numbers of the ten nearest."""
        sql = "SELECT rowid FROM pieces WHERE vector MATCH ? ORDER BY distance LIMIT 10"
        return [number for (number,) in self._db.execute(sql, (vector.tobytes(),))]


class Txtai:
    """txtai's hybrid index, its own BM25 beside the vectors of all-MiniLM-L6-v2."""

    @staticmethod
    def missing() -> str:
        """Why it cannot be measured; "" when it can."""
        if util.find_spec("txtai") is None:
            return "not installed"
        return "" if packaged_model() else "the weights of MiniLM are not installed"

    def __init__(self) -> None:
        make: Any = import_module("txtai").Embeddings
        self._index = make(path=str(packaged_model()), hybrid=True)

    def add(self, texts: Sequence[str]) -> None:
        """Index these texts alone."""
        self._index.index(enumerate(texts))

    def top(self, query: str) -> list[int]:
        """The numbers of the best, from 0 on."""
        return [number for number, _ in self._index.search(query, TOP)]
