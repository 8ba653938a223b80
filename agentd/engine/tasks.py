"""Tasks that belong to the engine, not to whoever asked for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import structlog

from agentd.engine.submission import INTERNAL, TAKES_NO_MORE, reject
from agentd.errors import AgentdError, ShuttingDown

log = structlog.get_logger()
T = TypeVar("T")

_LAST_WORDS = 1  # seconds that cancelled tasks have to put their work aside


class Tasks:
    """Runs work to its end even if whoever asked for it leaves, until a stop."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        """Whether anything may begin."""
        return self._group is not None

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs."""
        return not self._tasks

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Let work begin during the block, which must `close` and `finish` before it ends."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            yield

    def close(self) -> None:
        """Begin nothing more."""
        self._group = None

    async def finish(self, seconds: float) -> None:
        """Give what runs so long to end, then cancel it."""
        if self._tasks and seconds > 0:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_WORDS)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin work that nobody waits for; it tells of its failures itself."""
        assert self._group is not None
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def owned(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work that goes on even if whoever asked for it leaves.

        Raises ShuttingDown, and what the work raises.
        """
        if not self.is_open:
            work.close()
            raise ShuttingDown(TAKES_NO_MORE)
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                done.set_result(await work)
            except AgentdError as error:
                done.set_exception(error)
            except Exception:
                # The boundary of an errand: its owner is told, everything else goes on.
                log.exception("errand_crashed")
                done.set_exception(AgentdError(INTERNAL.message, cure=INTERNAL.cure))

        def leave(_: object) -> None:
            work.close()  # a stop may come before it has begun
            reject(done, ShuttingDown(TAKES_NO_MORE))

        self.spawn(run()).add_done_callback(leave)
        return await asyncio.shield(done)
