"""Counts the tokens that a service was sent today, against a daily limit."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from agentd.core.errors import EmbedderFault
from agentd.core.paths import read_regular, write_private
from agentd.core.ports import Clock


class DailyTokens:
    """A limit of tokens a day, in the owner's time zone; the count survives a restart. 0 means no
    limit.
    """

    def __init__(self, file: Path, limit: int, clock: Clock) -> None:
        self._file = file
        self._limit = limit
        self._clock = clock
        self._lock = asyncio.Lock()
        self._day = ""
        self._used = 0

    async def take(self, tokens: int) -> None:
        """Count tokens before they are sent. Raises EmbedderFault if they would exceed the limit,
        or if the count cannot be written.
        """
        if not self._limit:
            return
        async with self._lock:
            await self._begin()
            if self._used + tokens > self._limit:
                raise EmbedderFault(
                    f"The service of the embedder has been sent {self._used} tokens today; with "
                    f"{tokens} more it would be over the limit of {self._limit}.",
                    cure="It goes on tomorrow. Or raise daily_tokens in [memory_search.embedder].",
                )
            await self._keep(self._used + tokens)

    async def correct(self, tokens: int) -> None:
        """Add the difference between the tokens that the service reports and the estimate that was
        taken.
        """
        if self._limit and tokens:
            async with self._lock:
                await self._begin()
                await self._keep(max(0, self._used + tokens))

    async def _begin(self) -> None:
        today = self._clock.now().astimezone(self._clock.zone).date().isoformat()
        if self._day == today:
            return
        kept = {} if self._day else await asyncio.to_thread(_read, self._file)
        self._used = int(kept.get(today, 0))
        self._day = today

    async def _keep(self, tokens: int) -> None:
        self._used = tokens
        await asyncio.to_thread(_write, self._file, {self._day: tokens})


def _read(file: Path) -> dict[str, int]:
    try:
        found = json.loads(read_regular(file))
        return {str(day): int(tokens) for day, tokens in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _write(file: Path, used: dict[str, int]) -> None:
    try:
        write_private(file, json.dumps(used))
    except OSError as error:
        raise EmbedderFault(
            f"{file} cannot be written ({error.strerror}), so the limit on tokens cannot be kept.",
            cure="Make room on the disk, or correct the owner and mode of the state directory.",
        ) from error
