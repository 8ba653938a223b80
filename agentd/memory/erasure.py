"""Deleting a session everywhere it is kept."""

from __future__ import annotations

from agentd.domain.turn import SessionKey
from agentd.engine.sessions import Sessions
from agentd.memory.indexer import Indexer


class Erasure:
    """Deletes in the order in which a crash in between is made good: the index follows the store."""

    def __init__(self, sessions: Sessions, indexer: Indexer) -> None:
        self._sessions = sessions
        self._indexer = indexer

    async def delete(self, session: SessionKey) -> None:
        """Erase the session and what search knows of it; `main` is emptied and stays.

        When this returns, neither database holds a byte of it. Notes that were made from it are the
        user's and stay. Raises NotFound, Busy, ShuttingDown, StorageError.
        """
        await self._sessions.delete(session)
        await self._indexer.forget(session)
