"""What leaves the graph for others: the state of all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agentd.domain.concept import Record
from agentd.graph.delta import Checkpoint, checkpoint
from agentd.graph.formats.writing import write
from agentd.graph.keeper import GraphKeeper
from agentd.graph.stores import snapshot
from agentd.ports import GraphStore


@dataclass(frozen=True, slots=True)
class State:
    """The graph as it is at a moment, and as `.0c`."""

    checkpoint: Checkpoint
    text: str


class Exchange:
    """What the owner takes out of the graph. Methods raise WorkspaceError, StorageError."""

    def __init__(self, keeper: GraphKeeper, store: GraphStore) -> None:
        self._keeper = keeper
        self._store = store
        self._refresh: Callable[[], Awaitable[object]] | None = None

    def refresh_with(self, refresh: Callable[[], Awaitable[object]]) -> None:
        """Await this before each answer: facts take in then what was done to their page."""
        self._refresh = refresh

    async def state(self) -> State:
        """All that the owner may see, level with facts and text."""
        await self._level()
        record = await snapshot(self._store)
        return State(*await asyncio.to_thread(_told, record))

    async def _level(self) -> None:
        if self._refresh is not None:
            await self._refresh()
        await self._keeper.level()


def _told(record: Record) -> tuple[Checkpoint, str]:
    return checkpoint(record), write(record)
