"""Blocking work that is not left half done."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from agentd.core.offloading import to_the_end


async def test_a_failure_that_nobody_waits_for_any_more_is_not_logged() -> None:
    logged: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: logged.append(told["message"]))
    begun, go = threading.Event(), threading.Event()

    def fail() -> None:
        begun.set()
        go.wait()
        raise FileNotFoundError

    waiting = asyncio.create_task(to_the_end(fail))
    while not begun.is_set():
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    del waiting
    gc.collect()
    await asyncio.sleep(0)
    assert logged == []
