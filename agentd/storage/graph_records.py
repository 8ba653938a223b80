"""What the concept graph cannot derive from facts, in SQLite: records, shares, program states."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from agentd.core.graph import EpisodeHash, KeptEpisode, Share
from agentd.core.text import well_formed
from agentd.storage.codec import moment, stamp
from agentd.storage.sqlite import Database

MOST_WITHDRAWN = 5_000  # names that are kept, the newest

_KEPT = "SELECT episode, teller, at, said, receipt FROM graph_records ORDER BY at, rowid"
_KEEP = "INSERT OR IGNORE INTO graph_records VALUES (?, ?, ?, ?, ?)"
_OUTDATED = """
DELETE FROM graph_withdrawn WHERE id <= (SELECT max(id) FROM graph_withdrawn) - ?
"""
_SHARES = "SELECT space, episode, fact, salt, is_sent FROM graph_shares ORDER BY position"
_SHARE = "INSERT INTO graph_shares (space, episode, fact, salt, is_sent) VALUES (?, ?, ?, ?, ?)"
_STATE = "INSERT OR REPLACE INTO graph_programs VALUES (?, ?, ?)"


class SqliteGraphRecords:
    """The GraphRecords, ShareStore and ProgramStates of the state database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def kept_episodes(self) -> Sequence[KeptEpisode]:
        """See GraphRecords."""

        def look(conn: sqlite3.Connection) -> list[KeptEpisode]:
            return [
                KeptEpisode(EpisodeHash(episode), teller, moment(at), said, receipt)
                for episode, teller, at, said, receipt in conn.execute(_KEPT)
            ]

        return await self._db.read(look)

    async def keep(self, episodes: Sequence[KeptEpisode]) -> None:
        """See GraphRecords."""
        await self._db.write(lambda conn: _keep(conn, episodes))

    async def drop(
        self,
        episodes: Collection[EpisodeHash],
        withdrawn: Collection[str] = (),
        *,
        traceless: bool = False,
    ) -> None:
        """See GraphRecords."""

        def change(conn: sqlite3.Connection) -> None:
            _withdraw(conn, sorted(withdrawn))
            gone = [(one.value,) for one in episodes]
            conn.executemany("DELETE FROM graph_records WHERE episode = ?", gone)

        await (self._db.erase(change) if traceless else self._db.write(change))

    async def withdrawn_names(self) -> frozenset[str]:
        """See GraphRecords."""
        query = "SELECT name FROM graph_withdrawn"
        return await self._db.read(lambda conn: frozenset(row[0] for row in conn.execute(query)))

    async def has_earlier(self) -> bool:
        """See GraphRecords."""
        query = "SELECT 1 FROM graph_earlier"
        return await self._db.read(lambda conn: conn.execute(query).fetchone() is not None)

    async def take_earlier(
        self,
        episodes: Sequence[KeptEpisode],
        withdrawn: Sequence[str],
        shares: Sequence[Share],
        at: datetime,
    ) -> None:
        """See GraphRecords."""

        def change(conn: sqlite3.Connection) -> None:
            _keep(conn, episodes)
            _withdraw(conn, withdrawn)
            _put_shares(conn, shares)
            conn.execute("INSERT INTO graph_earlier VALUES (?)", (stamp(at),))

        await self._db.write(change)

    async def shares(self) -> Sequence[Share]:
        """See ShareStore."""

        def look(conn: sqlite3.Connection) -> list[Share]:
            return [
                Share(space, EpisodeHash(episode), fact, salt, bool(is_sent))
                for space, episode, fact, salt, is_sent in conn.execute(_SHARES)
            ]

        return await self._db.read(look)

    async def put_shares(self, shares: Sequence[Share], *, traceless: bool = False) -> None:
        """See ShareStore."""

        def change(conn: sqlite3.Connection) -> None:
            conn.execute("DELETE FROM graph_shares")
            _put_shares(conn, shares)

        await (self._db.erase(change) if traceless else self._db.write(change))

    async def program_state(self, name: str) -> str:
        """See ProgramStates."""
        query = "SELECT state FROM graph_programs WHERE name = ?"

        def look(conn: sqlite3.Connection) -> str:
            found = conn.execute(query, (name,)).fetchone()
            return found[0] if found else ""

        return await self._db.read(look)

    async def keep_program_state(self, name: str, state: str, at: datetime) -> None:
        """See ProgramStates."""
        if state:
            await self._db.execute(_STATE, (name, state, stamp(at)))
        else:
            await self._db.execute("DELETE FROM graph_programs WHERE name = ?", (name,))


def _keep(conn: sqlite3.Connection, episodes: Iterable[KeptEpisode]) -> None:
    rows = [
        (one.episode.value, well_formed(one.teller), stamp(one.at), one.said, one.receipt)
        for one in episodes
    ]
    conn.executemany(_KEEP, rows)


def _withdraw(conn: sqlite3.Connection, names: Iterable[str]) -> None:
    rows = [(name,) for name in names]
    conn.executemany("INSERT OR IGNORE INTO graph_withdrawn (name) VALUES (?)", rows)
    conn.execute(_OUTDATED, (MOST_WITHDRAWN,))


def _put_shares(conn: sqlite3.Connection, shares: Iterable[Share]) -> None:
    rows = [(s.space, s.episode.value, s.fact, s.salt, s.is_sent) for s in shares]
    conn.executemany(_SHARE, rows)
