"""An API that is made late is made once, and again after it was closed."""

from __future__ import annotations

import asyncio
import contextlib
import gc

import pytest

from agentd.providers.remote import LazyApi


class Api:
    def __init__(self, made: list[Api]) -> None:
        made.append(self)
        self.is_closed = False

    async def aclose(self) -> None:
        self.is_closed = True


async def test_all_who_ask_at_once_get_the_same_one_and_nothing_is_made_before() -> None:
    made: list[Api] = []
    late = LazyApi(lambda: Api(made))
    assert made == []
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(late.ready()) for _ in range(3)]
    assert {task.result() for task in asked} == set(made)
    assert len(made) == 1


async def test_a_closed_one_is_made_anew_at_the_next_use() -> None:
    made: list[Api] = []
    late = LazyApi(lambda: Api(made))
    await late.aclose()
    first = await late.ready()
    await late.aclose()
    assert first.is_closed
    assert await late.ready() is not first


@pytest.mark.parametrize("works", [True, False])
async def test_no_garbage_is_looked_for_while_a_library_is_loaded_nor_in_it_later(works):
    seen = []

    def connect():
        seen.append(gc.isenabled())
        if not works:
            raise RuntimeError("no such library")
        return Api([])

    before = gc.get_freeze_count()
    try:
        with contextlib.nullcontext() if works else pytest.raises(RuntimeError):
            await LazyApi(connect).ready()
        assert (seen, gc.isenabled()) == ([False], True)
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()
