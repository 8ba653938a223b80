"""What everybody has: an OR query over SQLite FTS5, one row per line. The set must be hard for
it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence

from agentd.core.search import Chunk
from benchmarks.workspace_year.reading import Asked
from benchmarks.workspace_year.scoring import Span


class Fts5:
    """Chunks found by their words alone, with the porter stemmer and bm25()."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks = list(chunks)
        self._db = sqlite3.connect(":memory:")
        self._db.execute("create virtual table units using fts5(text, tokenize='porter unicode61')")
        self._db.executemany(
            "insert into units(rowid, text) values (?, ?)",
            ((number, chunk.text) for number, chunk in enumerate(self._chunks)),
        )

    def __call__(self, asked: Asked) -> Sequence[Span]:
        """The best 60 chunks that share a word with the question."""
        words = dict.fromkeys(re.findall(r"\w+", asked.query))
        query = " OR ".join(f'"{word}"' for word in words)
        found = self._db.execute(
            "select rowid from units where units match ? order by rank, rowid limit 60", (query,)
        )
        return [self._span(self._chunks[number]) for (number,) in found]

    @staticmethod
    def _span(chunk: Chunk) -> Span:
        return Span(chunk.path, chunk.start_line, chunk.end_line, len(chunk.text) // 4 + 1)
