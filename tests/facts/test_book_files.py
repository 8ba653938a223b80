"""The book of facts on a real workspace, with others at its page."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from agentd.clock import SystemClock
from agentd.domain.fact import Category, ErasureReport, FactSource, Statement
from agentd.domain.workspace import FACTS_PATH
from agentd.facts.book import FactBook
from agentd.testing import FactIndexDouble, MemoryFactStore
from agentd.workspace.files import Files
from agentd.workspace.settings import WorkspaceSettings

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ROUNDS = 15


class Nobody:
    async def begin(self, facts):
        raise AssertionError("nothing is forgotten here")

    async def carry_out(self):
        return ErasureReport({})


def a_book(root: Path, name: str):
    clock, numbers = SystemClock("UTC"), itertools.count()
    files = Files(root, WorkspaceSettings(), clock, {}, root.parent / "versions")
    return FactBook(
        MemoryFactStore(),
        FactIndexDouble(),
        files,
        clock,
        new_id=lambda: f"{name}{next(numbers):07d}",
        key=b"k" * 32,
        forgetting=Nobody(),
    )


def said(text):
    return Statement(text, Category.PERSONAL, FactSource.EXPLICIT, NOW)


_APPENDER = """
import fcntl, os, sys
root = os.open(sys.argv[1], os.O_RDONLY)
for n in range(int(sys.argv[2])):
    fcntl.flock(root, fcntl.LOCK_EX)
    with open(sys.argv[1] + "/memory/facts.md", "a") as page:
        page.write(f"- The user has read book {n}.\\n")
    fcntl.flock(root, fcntl.LOCK_UN)
"""


async def test_two_daemons_and_a_script_at_one_page_lose_nothing(tmp_path):
    root = tmp_path / "ws"
    (root / "memory").mkdir(parents=True)
    one, other = a_book(root, "a"), a_book(root, "b")

    async def learn(book, name):
        for n in range(ROUNDS):
            await book.learn([said(f"The user knows {name} poem {n}.")])

    with subprocess.Popen([sys.executable, "-c", _APPENDER, str(root), str(ROUNDS)]) as script:
        async with asyncio.timeout(50), asyncio.TaskGroup() as tasks:
            tasks.create_task(learn(one, "first"))
            tasks.create_task(learn(other, "second"))
        assert await asyncio.to_thread(script.wait) == 0
    await one.sync()
    await other.sync()
    await one.sync()
    texts = sorted(fact.text for fact in await one.all() if fact.is_active)
    assert texts == sorted(
        [f"The user knows {name} poem {n}." for name in ("first", "second") for n in range(ROUNDS)]
        + [f"The user has read book {n}." for n in range(ROUNDS)]
    )
    assert {fact.id: fact for fact in await other.all()} == {
        fact.id: fact for fact in await one.all()
    }


async def test_the_page_is_private_and_its_versions_are_kept(tmp_path):
    root = tmp_path / "ws"
    root.mkdir()
    book = a_book(root, "a")
    await book.learn([said("The user likes tea.")])
    await book.learn([said("The user likes cake.")])
    assert (root / FACTS_PATH).stat().st_mode & 0o777 == 0o600
    files = Files(root, WorkspaceSettings(), SystemClock("UTC"), {}, root.parent / "versions")
    _, versions = await files.history(FACTS_PATH)
    assert [version.by.kind for version in versions] == ["facts", "facts"]
    assert files.is_owner_only(FACTS_PATH)
