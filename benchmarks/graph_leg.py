"""Whether the graph helps search as a leg: each question once without it and once with it.

`MEMBENCH=DIR python -m benchmarks.graph_leg` prints every figure, for each of the graphs that
`benchmarks/graph_feeds.py` makes of the very conversations that are searched.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from statistics import fmean, median, quantiles
from time import perf_counter, process_time

import numpy as np

from agentd.domain.fact import Fact
from agentd.domain.memory import Chunk, Found, Hit
from agentd.domain.search import SearchOptions, SearchQuery
from agentd.domain.turn import MAIN, Kind
from agentd.domain.workspace import FileView, Reader
from agentd.embedders.static import load
from agentd.graph.keeper import GraphKeeper
from agentd.graph.leg import GraphLeg
from agentd.graph.recall import Recollection
from agentd.ports import Embedder
from agentd.search.hits import joined
from agentd.search.searcher import Searcher
from agentd.storage.graph import SqliteGraph
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock
from agentd.workspace.files import Files
from agentd.workspace.settings import WorkspaceSettings
from benchmarks import graph_leg_talk, retrieval, year
from benchmarks.graph_feeds import FEEDS, facts_of, messages
from benchmarks.row import Row
from benchmarks.workspace_year.reading import HERE, questions
from benchmarks.workspace_year.scoring import Span, mark

DEPTH = 60
MOST = 2.0  # milliseconds that a query may cost more that names nothing known
FIGURES = ("recall@1000tok", "ndcg@10")

_OWN = Reader(MAIN, Kind.MAIN)


@dataclass(slots=True)
class Effect:
    """What the leg did to some questions; figures by name and question, without it and with it."""

    off: dict[str, list[float]] = field(default_factory=dict)
    on: dict[str, list[float]] = field(default_factory=dict)
    asked: int = 0
    followed: int = 0  # that named something known
    changed: int = 0
    idle: list[float] = field(
        default_factory=list
    )  # milliseconds more, of those that named nothing
    worked: list[float] = field(default_factory=list)  # of the processor, of the same
    busy: list[float] = field(default_factory=list)  # and of all others

    def row(self, what: str) -> str:
        """A line of the table."""
        cells = [f"{fmean(v):.3f} → {fmean(self.on[name]):.3f}" for name, v in self.off.items()]
        times = [_times(self.idle), _times(self.busy)]
        shares = [f"{one / self.asked:.3f}" for one in (self.followed, self.changed)]
        return f"| {' | '.join([what, *cells, *shares, *times])} |"


class Pool:
    """A Recall by one searcher; it notes when the first search of a query was done."""

    def __init__(
        self, searcher: Searcher, chunks: Mapping[int, Chunk], embedder: Embedder, today: date
    ) -> None:
        self.today = today
        self.searches = 0
        self.first_done = self.first_worked = 0.0
        self._searcher = searcher
        self._chunks = chunks
        self._embedder = embedder
        self._tokens: dict[tuple[str, int, int], int] = {}

    async def search(self, query: SearchQuery, reader: Reader) -> Found:
        """See Recall."""
        (row,) = await self._embedder.embed([query.text], query=True)
        options = SearchOptions(limit=query.limit, today=self.today)
        ranking = self._searcher.search(query.text, np.frombuffer(row, "<f4"), options)
        hits = []
        for one in ranking:
            chunk = joined([self._chunks[slot] for slot in one.slots])
            self._tokens[chunk.path, chunk.start_line, chunk.end_line] = one.tokens
            hits.append(Hit(chunk, one.score, one.scores))
        self.searches += 1
        if self.searches == 1:
            self.first_done, self.first_worked = perf_counter(), process_time()
        return Found(tuple(hits), str(ranking.reason or ""))

    async def read(self, path: str, reader: Reader) -> FileView:
        """See Recall."""
        raise NotImplementedError(path)

    def span(self, hit: Hit) -> Span:
        """The hit for those who score."""
        chunk = hit.chunk
        place = chunk.path, chunk.start_line, chunk.end_line
        return Span(*place, self._tokens[place], hit.score)


async def rows() -> AsyncIterator[Row]:
    """What the leg changes for the owner's graph; the pace has a goal."""
    async for what, effect in effects(("owner",)):
        for name, without in effect.off.items():
            gain = 100 * (fmean(effect.on[name]) - fmean(without))
            yield Row(f"graph as a leg, {what}: {name} gained", [gain], "points")
        changed = 100 * effect.changed / effect.asked
        yield Row(f"graph as a leg, {what}: questions whose hits change", [changed], "%")
        if effect.idle:
            label = f"graph as a leg, {what}: more for a query that names nothing known"
            yield Row(label, [median(effect.idle)], "ms at p50")
            yield Row(f"{label}, processor time", [_p95(effect.worked)], "ms at p95", below=MOST)
    async for row in graph_leg_talk.rows():
        yield row


async def effects(feeds: Sequence[str]) -> AsyncIterator[tuple[str, Effect]]:
    """The effect on each set of questions, of each graph."""
    if folder := os.environ.get("MEMBENCH"):
        for form in retrieval.FORMS:
            talks = await retrieval.talks(Path(folder), form, load())
            for feed in feeds:
                effect = Effect()
                for talk in talks:
                    await _of_talk(talk, feed, effect)
                yield f"conversations as {form}, {feed}", effect
    made = await year.built()
    for feed in feeds:
        if feed != "speakers":  # one person speaks there
            yield f"a year, {feed}", await _of_year(made, feed)


async def _of_talk(talk: retrieval.Talk, feed: str, effect: Effect) -> None:
    chunks = dict(enumerate(talk.chunks))
    pool = Pool(talk.searcher, chunks, load(), talk.today)
    files = sorted((talk.conversation.dir / "sessions").glob("*.jsonl"))
    async with graph(facts_of(messages(files), feed), talk.today) as known:
        for asked in talk.conversation.queries:
            if asked["category"] == "adversarial":
                continue
            off, on = await _both(pool, known, asked["query"], effect)
            marks = [
                talk.core.score(
                    talk.conversation, asked, [_shown(talk, chunks.values(), hit) for hit in hits]
                )
                for hits in ((off, on) if on != off else (off,))
            ]
            for name in FIGURES:
                effect.off.setdefault(name, []).append(marks[0][name])
                effect.on.setdefault(name, []).append(marks[-1][name])


async def _of_year(made: year.Year, feed: str) -> Effect:
    effect = Effect()
    asked = sorted((one for one in questions() if one.gold), key=lambda one: one.now)
    pool = Pool(made.searcher, made.by_slot, load(), asked[0].now.date())
    files = sorted((HERE / "sessions").glob("*.jsonl"))
    answers: tuple[list[list[Span]], list[list[Span]]] = ([], [])
    async with graph(facts_of(messages(files), feed), asked[-1].now.date()) as known:
        for one in asked:
            pool.today = one.now.date()
            both = await _both(pool, known, one.query, effect)
            for kept, hits in zip(answers, both, strict=True):
                kept.append([pool.span(hit) for hit in hits])
    for figures, kept in zip((effect.off, effect.on), answers, strict=True):
        marks = mark(asked, kept)
        figures["hit@3"], figures["recall@1000tok"] = [marks.hit3], [marks.recall]
        figures["newest first"] = [marks.newest or 0.0]
    return effect


async def _both(
    pool: Pool, known: Recollection, text: str, effect: Effect
) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    """The hits without the leg and with it."""
    query = SearchQuery(text, limit=DEPTH)
    off = (await pool.search(query, _OWN)).hits
    pool.searches = 0
    on = (await GraphLeg(pool, known).search(query, _OWN)).hits
    more = (perf_counter() - pool.first_done) * 1000
    worked = (process_time() - pool.first_worked) * 1000
    followed = pool.searches > 1
    effect.asked += 1
    effect.followed += followed
    effect.changed += [one.chunk for one in on] != [one.chunk for one in off]
    (effect.busy if followed else effect.idle).append(more)
    if not followed:
        effect.worked.append(worked)
    return off, on


@asynccontextmanager
async def graph(facts: Sequence[Fact], today: date) -> AsyncIterator[Recollection]:
    """A graph of these facts on the disk, as the daemon keeps it."""
    clock = FakeClock(datetime.combine(today, time(12), UTC))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "workspace")
        root.mkdir()
        files = Files(root, WorkspaceSettings(), clock, {}, Path(folder, "versions"))
        async with Database.open(Path(folder, "i.db"), INDEX, synchronous="NORMAL") as db:
            store = SqliteGraph(db)

            async def every() -> Sequence[Fact]:
                return facts

            keeper = GraphKeeper(files, store, SqliteChunks(db), clock, every)
            await keeper.level()
            yield Recollection(store, clock, resolve=keeper.resolve)


def _shown(talk: retrieval.Talk, chunks: Iterable[Chunk], hit: Hit) -> object:
    """The hit as the conversations' own code scores it."""
    own = hit.chunk
    parts = [
        chunk.text
        for chunk in chunks
        if chunk.path == own.path and own.start_line <= chunk.start_line <= own.end_line
    ]
    return talk.core.Hit(
        text="\n".join(parts), path=own.path, start_line=own.start_line, end_line=own.end_line
    )


def _p95(taken: Sequence[float]) -> float:
    return quantiles(taken, n=20)[-1]


def _times(taken: Sequence[float]) -> str:
    if len(taken) < 2:
        return "-"
    cuts = quantiles(taken, n=20)
    return f"{cuts[9]:.2f} / {cuts[-1]:.2f}"


async def tables() -> None:
    """Print every figure of every graph."""
    async for what, effect in effects(FEEDS):
        print(
            f"\n| | {' | '.join([*effect.off, 'followed', 'changed', 'ms, nothing named', 'ms'])} |"
        )
        print(f"|---|{'---|' * (len(effect.off) + 4)}")
        print(effect.row(what), flush=True)


if __name__ == "__main__":
    asyncio.run(tables())
