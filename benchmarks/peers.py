"""Other engines over the same pieces: SQLite's full-text search, and sqlite-vec where it is installed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from importlib import import_module, util
from typing import Any, Self

import numpy as np

TOP = 60


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
