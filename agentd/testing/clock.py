"""A clock that tests move."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo


class FakeClock:
    """A clock that stands still until a test moves it."""

    def __init__(
        self, now: datetime = datetime(2026, 11, 21, 12, 0, tzinfo=UTC), zone: str = "UTC"
    ) -> None:
        self._now = now
        self._monotonic = 1000.0
        self._zone = ZoneInfo(zone)
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._ids = itertools.count()

    @property
    def zone(self) -> ZoneInfo:
        return self._zone

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._ids), woken))
        await woken

    @property
    def sleeping(self) -> int:
        """How many tasks are asleep."""
        return sum(not f.done() for _, _, f in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Let time pass; each sleeper wakes in order, at its own time."""
        end = self._monotonic + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, woken = heapq.heappop(self._sleepers)
            self._move(max(0.0, at - self._monotonic))
            if not woken.done():
                woken.set_result(None)
            await self.settle()
        self._move(end - self._monotonic)
        await self.settle()

    def jump(self, delta: timedelta) -> None:
        """Move the wall clock alone: a suspend, an NTP step, a user with a screwdriver."""
        self._now += delta

    @staticmethod
    async def settle(rounds: int = 50) -> None:
        """Let all tasks that are ready run."""
        for _ in range(rounds):
            await asyncio.sleep(0)

    def _move(self, seconds: float) -> None:
        self._monotonic += seconds
        self._now += timedelta(seconds=seconds)
