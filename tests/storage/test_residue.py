"""Blanking touches no byte that SQLite uses, and leaves none that it does not use."""

import os
import random
import sqlite3
from contextlib import closing

import pytest

from agentd.storage.erasing import NotPlainError, PageShape, blank

WORD = b"zitronenfalter"


def made(path, page_size, seed, *, secure):
    """A database of every kind of page, from which half was deleted."""
    chance = random.Random(seed)
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute(f"PRAGMA page_size = {page_size}")
        conn.execute(f"PRAGMA secure_delete = {'ON' if secure else 'OFF'}")
        conn.executescript("""
            CREATE TABLE a (id INTEGER PRIMARY KEY, text TEXT); CREATE INDEX a_by ON a (text);
            CREATE TABLE b (name TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID;
            CREATE TABLE c (text); CREATE VIRTUAL TABLE d USING fts5 (text);
        """)
        conn.execute("BEGIN")
        for number in range(1200):
            word = WORD.decode() if number % 2 else "amsel"
            text = f"{word}{number} " + "y" * chance.choice((1, 30, 200, 900, 3 * page_size))
            conn.execute("INSERT INTO a VALUES (?, ?)", (chance.randrange(1 << 40), text))
            conn.execute("INSERT INTO b VALUES (?, ?)", (f"{chance.random()}", text))
            conn.execute("INSERT INTO c VALUES (?)", (text,))
            conn.execute("INSERT INTO d VALUES (?)", (word,))
        for table in "abcd":
            conn.execute(f"DELETE FROM {table} WHERE text LIKE 'zitronen%'")
        conn.execute("UPDATE a SET text = substr(text, 1, 20) WHERE id % 3 = 0")
        conn.execute("INSERT INTO d (d) VALUES ('optimize')")
        conn.execute("COMMIT")


def held(path):
    """All that the database says, and whether it is sound."""
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return list(conn.iterdump())


def blanked(path):
    descriptor = os.open(path, os.O_RDWR)
    try:
        return blank(descriptor, PageShape.of(descriptor))
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("page_size", [512, 1024, 4096, 65536])
def test_only_what_nothing_uses_is_blanked(tmp_path, page_size):
    path = tmp_path / "some.db"
    made(path, page_size, page_size, secure=False)
    before, size = held(path), path.stat().st_size
    assert WORD in path.read_bytes(), "the test could not fail"
    assert blanked(path) > 0
    assert held(path) == before
    assert path.stat().st_size == size
    assert WORD not in path.read_bytes()
    assert blanked(path) == 0
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("PRAGMA secure_delete = ON")
        conn.execute("INSERT INTO c SELECT text FROM a")
        conn.commit()
    held(path)


def test_what_secure_delete_leaves_is_blanked(tmp_path):
    path = tmp_path / "some.db"
    made(path, 4096, 1, secure=True)
    assert WORD in path.read_bytes(), "the test could not fail"
    before = held(path)
    assert blanked(path) > 0
    assert held(path) == before
    assert WORD not in path.read_bytes()


def test_a_damaged_file_is_left_alone(tmp_path):
    path = tmp_path / "some.db"
    made(path, 4096, 2, secure=True)
    whole = bytearray(path.read_bytes())
    for at in (3 * 4096 + 3, 32, 52):
        bad = whole.copy()
        bad[at : at + 4] = b"\xff\xff\xff\xff"
        path.write_bytes(bad)
        with pytest.raises(NotPlainError):
            blanked(path)
    path.write_bytes(b"short")
    with pytest.raises(NotPlainError):
        blanked(path)


def test_a_file_that_moves_its_pages_is_not_understood(tmp_path):
    path = tmp_path / "some.db"
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("PRAGMA auto_vacuum = FULL")
        conn.execute("CREATE TABLE a (b)")
    with pytest.raises(NotPlainError):
        blanked(path)
