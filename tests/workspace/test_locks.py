"""Locks in the process and between processes."""

import asyncio
import fcntl
import os
from pathlib import Path

import pytest

from agentd.core.errors import WorkspaceError
from agentd.testing import FakeClock
from agentd.workspace.locks import Locks
from agentd.workspace.resolver import ConfinedFolder


async def test_one_path_has_one_holder_and_others_go_on(tmp_path: Path) -> None:
    locks = Locks(ConfinedFolder(tmp_path), FakeClock())
    order = []

    async def hold(path: str, name: str, until: asyncio.Event) -> None:
        async with locks.hold(path):
            order.append(name)
            await until.wait()

    first, second = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(hold("a", "a1", first))
        group.create_task(hold("a", "a2", second))
        group.create_task(hold("b", "b1", second))
        await FakeClock.settle()
        assert order == ["a1", "b1"]
        first.set()
        await FakeClock.settle()
        assert order == ["a1", "b1", "a2"]
        second.set()


async def test_a_program_that_flocks_the_workspace_keeps_us_out_until_it_ends(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    locks = Locks(ConfinedFolder(tmp_path), clock)
    held = asyncio.Event()

    async def hold() -> None:
        async with locks.hold("a"):
            held.set()

    fd = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    async with asyncio.TaskGroup() as group:
        group.create_task(hold())
        await clock.advance(5)
        assert not held.is_set()
        os.close(fd)
        await clock.advance(1)
        assert held.is_set()


async def test_while_we_hold_a_path_no_other_program_gets_the_workspace(tmp_path: Path) -> None:
    locks = Locks(ConfinedFolder(tmp_path), FakeClock())
    fd = os.open(tmp_path, os.O_RDONLY)
    async with locks.hold("a"), locks.hold("b"):
        with pytest.raises(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)


async def test_waiting_for_another_program_ends_with_a_cure(tmp_path: Path) -> None:
    clock = FakeClock()
    fd = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    locks = Locks(ConfinedFolder(tmp_path), clock)
    errors = []

    async def hold() -> None:
        try:
            async with locks.hold("a"):
                pass
        except WorkspaceError as error:
            errors.append(error)

    async with asyncio.TaskGroup() as group:
        group.create_task(hold())
        await clock.advance(31)
    os.close(fd)
    assert "another program" in errors[0].message
    assert errors[0].cure
    async with locks.hold("a"):
        pass
