"""Deleting a session everywhere it is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from agentd.domain.turn import SessionKey
from agentd.engine.sessions import Sessions
from agentd.memory.indexer import Indexer


class Erasure:
    """Deletes in the order in which a crash in between is made good: the index follows the store.

    `drop_images` erases images that nothing refers to any more, `forget_typed` what was typed in the
    session, `deleted` tells those who know where words came from.
    """

    def __init__(
        self,
        sessions: Sessions,
        indexer: Indexer,
        drop_images: Callable[[], Awaitable[object]],
        forget_typed: Callable[[SessionKey], Awaitable[None]],
        deleted: Callable[[SessionKey], Awaitable[object]],
    ) -> None:
        self._sessions = sessions
        self._indexer = indexer
        self._drop_images = drop_images
        self._forget_typed = forget_typed
        self._deleted = deleted

    async def delete(self, session: SessionKey) -> None:
        """Erase the session, what search knows of it and what was typed in it; `main` is emptied and stays.

        When this returns, no file of the daemon's state holds a byte of it. Notes that were made from
        it are the user's and stay. Raises NotFound, Busy, ShuttingDown, StorageError.
        """
        await self._sessions.delete(session)
        await self._drop_images()
        await self._indexer.forget(session)
        await self._forget_typed(session)
        await self._deleted(session)
