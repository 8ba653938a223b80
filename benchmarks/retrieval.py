"""Long conversations with known answers, for the benchmarks `outside` and `peers`: `MEMBENCH=DIR`.

DIR holds the conversations and the code that scores hits (`membench/core.py`); neither is part of
this repository. Each conversation is searched once as dated notes and once as transcripts.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.ports import Embedder
from agentd.core.search import Chunk, SearchOptions
from agentd.memory.index.ranking.kinds import kinds_of
from agentd.memory.index.search.searcher import Searcher
from agentd.memory.index.search.units import embedded_text
from benchmarks.collections import dated_notes, messages

DEPTH = 60
FORMS = ("notes", "sessions")
LEAST = {  # recall within 1,000 tokens
    "auto": 0.85, "static": 0.84, "none": 0.78, "onnx": 0.85, "sentence-transformers": 0.85,
}  # fmt: skip
LEAST_NDCG = 0.69
DEFAULT = SearchOptions(limit=DEPTH)
_BATCH = 64
FIGURES = ("recall@10", "ndcg@10", "recall@500tok", "recall@1000tok", "recall@2000tok", "tokens@10")


class Talk(Struct, frozen=True):
    """One conversation, indexed: its questions with their vectors, and the day after its last."""

    core: ModuleType
    conversation: Any
    searcher: Searcher
    chunks: Sequence[Chunk]
    vectors: Sequence[np.ndarray | None]
    today: date

    def marks(self, options: SearchOptions, every: int = 1) -> Iterator[dict[str, float]]:
        """What each question that has an answer scores, or each of so many."""
        options = replace(options, today=self.today)
        pairs = list(zip(self.conversation.queries, self.vectors, strict=True))
        for asked, vector in pairs[::every]:
            if asked["category"] != "adversarial":
                hits = self.searcher.search(asked["query"], vector, options)
                found = [self.hit(hit.slots) for hit in hits]
                yield self.core.score(self.conversation, asked, found)

    def hit(self, slots: Sequence[int]) -> Any:
        """Chunks that follow each other, as what scores hits takes them."""
        parts = [self.chunks[slot] for slot in slots]
        return self.core.Hit(
            text="\n".join(part.text for part in parts),
            path=parts[0].path,
            start_line=parts[0].start_line,
            end_line=parts[-1].end_line,
        )


async def talks(folder: Path, form: str, embedder: Embedder | None) -> list[Talk]:
    """Every conversation of a split, indexed in one form; `embedder` None leaves the keywords."""
    sys.path.insert(0, str(folder))
    core = importlib.import_module("membench.core")
    made = []
    for conversation in core.load_split(folder / "dev"):
        chunks = list(
            dated_notes(conversation.dir) if form == "notes" else messages(conversation.dir)
        )
        vectors: list[np.ndarray | None] = [None] * len(conversation.queries)
        if embedder is None:
            searcher = Searcher()
            searcher.add(chunks)
        else:
            texts = np.stack(await _embedded(embedder, map(embedded_text, chunks)))
            searcher = searcher_of(chunks, texts, embedder.model)
            questions = (asked["query"] for asked in conversation.queries)
            vectors = [*await _embedded(embedder, questions, query=True)]
        last = max(chunk.date for chunk in chunks if chunk.date)
        made.append(Talk(core, conversation, searcher, chunks, vectors, last + timedelta(days=1)))
    return made


def searcher_of(chunks: Sequence[Chunk], vectors: np.ndarray, model: str) -> Searcher:
    """A searcher that ranks as a daemon does that has the vectors of this model."""
    searcher = Searcher(vectors.shape[1])
    searcher.kinds = kinds_of(model)
    searcher.add(chunks, vectors)
    return searcher


def figures(some: Sequence[Talk], options: SearchOptions, every: int = 1) -> dict[str, float]:
    """The means of FIGURES over all questions, or over one of so many."""
    marks = [mark for talk in some for mark in talk.marks(options, every)]
    return {name: fmean(mark[name] for mark in marks) for name in FIGURES}


async def _embedded(
    embedder: Embedder, texts: Iterator[str], *, query: bool = False
) -> list[np.ndarray]:
    wanted = list(texts)
    return [
        np.frombuffer(row, "<f4")
        for first in range(0, len(wanted), _BATCH)
        for row in await embedder.embed(wanted[first : first + _BATCH], query=query)
    ]
