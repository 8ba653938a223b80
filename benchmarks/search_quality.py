"""How well search finds, on collections by several authors: `python -m benchmarks search_quality`.

Of each collection two columns: `fitted`, with the weights that ship, and `left out`, with those
that were fitted to the other authors' collections alone (`left_out.npz` beside this, written by
`benchmarks.fit`): what a stranger gets. On a clean clone the year of notes is there;
`AGENTD_MEMBENCH=DIR` adds the others, see `collections.py`. The embedder is that of a fresh
installation; `EMBEDDER=static` and others are measured too.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from math import log2
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.search import Fusion, Ranked, SearchOptions
from agentd.memory.index.search.words import count_tokens
from benchmarks import embedder
from benchmarks.collections import Collection, Question, collections
from benchmarks.fit import Fit, indexed, left_out, shipped
from benchmarks.homes import Home, Indexed, drawn
from benchmarks.row import Row

BUDGET = 1_000  # tokens
DEPTH = 60
# Homes of each size and author, and which: not those that weights are fitted to.
HOMES, UNSEEN = 40, 11
DEFAULT = SearchOptions(limit=DEPTH)
WAYS = {
    "default": DEFAULT,
    "rrf": replace(DEFAULT, fusion=Fusion.RRF),
    "weighted": replace(DEFAULT, fusion=Fusion.WEIGHTED),
}
GOALS: Mapping[tuple[str, str, str], float] = {  # of the fit that left the collection out
    ("life", "all", "within 1,000 tokens"): 0.80,
    ("life", "paraphrase", "hit@3"): 0.42,
    ("life", "paraphrase", "within 1,000 tokens"): 0.78,
    ("life", "multilingual", "within 1,000 tokens"): 0.55,
    ("life", "exact", "within 1,000 tokens"): 0.98,
    ("life", "typo", "within 1,000 tokens"): 0.98,
    ("life", "all", "newest first"): 0.65,
    ("life", "all", "AUROC"): 0.75,
    ("life", "few texts", "AUROC"): 0.8,
    ("year", "few texts", "AUROC"): 0.85,
    ("conversations", "few texts", "AUROC"): 0.7,
    ("conversations", "all", "within 1,000 tokens"): 0.86,
    ("conversations", "all", "nDCG@10"): 0.69,
}


class Marks(Struct, frozen=True):
    """What one answer is worth: every needed line among the first three hits, the share of them
    within 1,000 tokens, nDCG@10, and whether the current value stands above every stale one (None
    where none is).
    """

    kind: str
    hit3: float
    within: float
    ndcg: float
    newest: float | None


async def rows() -> AsyncIterator[Row]:
    """A line for every author, kind of question and figure, fitted and left out."""
    ways = WAYS if os.environ.get("DETAIL") else {"default": DEFAULT}
    async with embedder.opened() as made:
        model = "" if made is None else made.model
        some = [await indexed(one, made) for one in collections()]
    for author in dict.fromkeys(one.of.author for one in some):
        own = [one for one in some if one.of.author == author]
        homes = [home for home in drawn(some, HOMES, UNSEEN) if home.author == author]
        columns = {"fitted": shipped(model)}
        if (unseen := left_out(author, model)) is not None:
            columns["left out"] = unseen
        for way, options in ways.items():
            for column, fit in columns.items():
                found = figures(own, fit, options) | in_homes(homes, fit, options)
                for (kind, name), value in found.items():
                    goal = GOALS.get((author, kind, name)) if way == "default" else None
                    what = f"{author}, {kind}, {way}, {column}: {name}"
                    yield Row(what, [value], "share", least=goal if column == "left out" else None)


def figures(
    some: Sequence[Indexed], fit: Fit, options: SearchOptions = DEFAULT
) -> dict[tuple[str, str], float]:
    """The figures of collections of one author by kind of question (`all` among them) and name."""
    marks: list[Marks] = []
    sure: dict[bool, list[float]] = {True: [], False: []}
    for one in some:
        one.searcher.weights, one.searcher.kinds = fit.weights, fit.kinds
        tokens = [count_tokens(chunk.text) for chunk in one.of.chunks]
        for asked, vector in zip(one.of.questions, one.vectors, strict=True):
            ranking = one.searcher.search(asked.text, vector, replace(options, today=asked.today))
            sure[bool(asked.needed)].append(ranking.confidence if ranking.hits else 0.0)
            if asked.needed:
                marks.append(mark(one.of, asked, ranking.hits, tokens))
    found: dict[tuple[str, str], float] = {}
    for kind in ("all", *sorted({mark.kind for mark in marks})):
        found |= _means(kind, [mark for mark in marks if kind in ("all", mark.kind)])
    if sure[False]:
        found |= _told_apart("all", sure, options)
    return found


def in_homes(
    homes: Sequence[Home], fit: Fit, options: SearchOptions = DEFAULT
) -> dict[tuple[str, str], float]:
    """How well the confidence tells questions with an answer from others where there are few texts,
    by how many, and whatever their number.
    """
    sure: dict[int, dict[bool, list[float]]] = {}
    for home in homes:
        home.searcher.weights, home.searcher.kinds = fit.weights, fit.kinds
        asked = replace(options, today=home.question.today)
        ranking = home.searcher.search(home.question.text, home.vector, asked)
        found = sure.setdefault(home.size, {True: [], False: []})
        found[bool(home.question.needed)].append(ranking.confidence if ranking.hits else 0.0)
    told: dict[tuple[str, str], float] = {}
    for size, each in sure.items():
        told |= _told_apart(f"{size} texts", each, options)
    every = {
        known: [one for each in sure.values() for one in each[known]] for known in (True, False)
    }
    return told | {("few texts", "AUROC"): auroc(every[True], every[False])}


def _told_apart(
    kind: str, sure: Mapping[bool, Sequence[float]], options: SearchOptions
) -> dict[tuple[str, str], float]:
    """The figures of confidences, by whether there is an answer: their AUROC, and how often it is
    said of a question with an answer that nothing fits (`wrong`), and of another not (`missed`).
    """
    least = options.least_confidence
    return {
        (kind, "AUROC"): auroc(sure[True], sure[False]),
        (kind, "wrong nothing_fits"): fmean(one < least for one in sure[True]),
        (kind, "missed nothing_fits"): fmean(one >= least for one in sure[False]),
    }


def mark(of: Collection, asked: Question, hits: Iterable[Ranked], tokens: Sequence[int]) -> Marks:
    """What these hits are worth as an answer; `tokens` are by chunk."""
    groups = [frozenset(hit.slots) for hit in hits]
    needed = [of.holding(places) for places in asked.needed]
    ranks = [_rank(groups, chunks) for chunks in needed]
    left, inside = BUDGET, 0
    for group in groups:
        left -= sum(tokens[chunk] for chunk in group)
        if left < 0:
            break
        inside += 1
    newest = None
    if asked.stale:
        newest = float(min(ranks) < min(len(groups), _rank(groups, of.holding(asked.stale))))
    return Marks(
        asked.kind,
        float(all(rank < min(3, len(groups)) for rank in ranks)),
        fmean(rank < inside for rank in ranks),
        _ndcg(groups[:10], needed),
        newest,
    )


def auroc(known: Sequence[float], unknown: Sequence[float]) -> float:
    """The chance that a question with an answer has a higher figure than one without."""
    pairs = ((one > other) + (one == other) / 2 for one in known for other in unknown)
    return sum(pairs) / (len(known) * len(unknown))


def _means(kind: str, marks: Sequence[Marks]) -> dict[tuple[str, str], float]:
    found = {
        (kind, "hit@3"): fmean(mark.hit3 for mark in marks),
        (kind, "within 1,000 tokens"): fmean(mark.within for mark in marks),
        (kind, "nDCG@10"): fmean(mark.ndcg for mark in marks),
    }
    changed = [mark.newest for mark in marks if mark.newest is not None]
    if changed and kind == "all":
        found[kind, "newest first"] = fmean(changed)
    return found


def _rank(groups: Sequence[frozenset[int]], chunks: frozenset[int]) -> int:
    return next((rank for rank, group in enumerate(groups) if group & chunks), len(groups))


def _ndcg(groups: Sequence[frozenset[int]], needed: Sequence[frozenset[int]]) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002): each needed line counts
    once.
    """
    gain, seen = 0.0, set[int]()
    for rank, group in enumerate(groups):
        new = {at for at, chunks in enumerate(needed) if group & chunks} - seen
        seen |= new
        gain += len(new) / log2(rank + 2)
    ideal = sum(1 / log2(rank + 2) for rank in range(min(10, len(needed))))
    return min(1.0, gain / ideal)
