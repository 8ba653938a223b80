"""The book of facts on a real workspace, with others at its page."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentd.core.clock import SystemClock
from agentd.core.fact import Evidence, FactOperation, FactSource, OperationKind
from agentd.core.workspace import FACTS_PATH
from agentd.memory.facts.book import FactBook
from agentd.storage.fact_store import SqliteFacts
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from agentd.testing import FactIndexDouble
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings
from tests.memory.facts.books import Forgotten

ROUNDS = 15


def files_of(root: Path) -> Files:
    return Files(root, WorkspaceSettings(), SystemClock("UTC"), {}, root.parent / "versions")


@asynccontextmanager
async def a_book(root: Path, name: str):
    numbers = itertools.count()
    async with Database.open(root.parent / name / "state.db", STATE) as db:
        yield FactBook(
            SqliteFacts(db),
            FactIndexDouble(),
            files_of(root),
            SystemClock("UTC"),
            new_id=lambda: f"{name}{next(numbers):07d}",
            key=b"k" * 32,
            forgetting=Forgotten(),
        )


def said(text: str, op: OperationKind = OperationKind.ADD, *ids: str) -> FactOperation:
    now = SystemClock("UTC").now()
    return FactOperation(op, now, FactSource.EXPLICIT, text, ids=ids, evidence=(Evidence(now),))


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

    async def learn(book: FactBook, name: str) -> None:
        for n in range(ROUNDS):
            await book.learn([said(f"The user knows {name} poem {n}.")])

    async with a_book(root, "a") as one, a_book(root, "b") as other:
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
            [
                f"The user knows {who} poem {n}."
                for who in ("first", "second")
                for n in range(ROUNDS)
            ]
            + [f"The user has read book {n}." for n in range(ROUNDS)]
        )
        assert {fact.id: fact for fact in await other.all()} == {
            fact.id: fact for fact in await one.all()
        }


async def test_the_page_is_private_and_its_versions_are_kept(tmp_path):
    root = tmp_path / "ws"
    root.mkdir()
    async with a_book(root, "a") as book:
        await book.learn([said("The user likes tea.")])
        await book.learn([said("The user likes cake.")])
    assert (root / FACTS_PATH).stat().st_mode & 0o777 == 0o600
    _, versions = await files_of(root).history(FACTS_PATH)
    assert [version.by.kind for version in versions] == ["facts", "facts"]
    assert files_of(root).is_owner_only(FACTS_PATH)


async def test_a_page_of_ten_thousand_lines_is_read_beside_the_loop(tmp_path):
    root = tmp_path / "ws"
    (root / "memory").mkdir(parents=True)
    lines = "".join(f"- The user owns book number {n}.\n" for n in range(10_000))
    (root / FACTS_PATH).write_text(f"# Facts\n\n{lines}")
    async with a_book(root, "a") as book:
        work = asyncio.create_task(book.sync())
        turns = 0
        while not work.done():
            await asyncio.sleep(0)
            turns += 1
        await work
        assert turns > 20
        facts = await book.all()
        assert len([fact for fact in facts if fact.is_active]) == 10_000
        [learned] = await book.learn(
            [said("The user owns no more books.", OperationKind.REPLACE, facts[0].id)]
        )
        assert [fact.id for fact in learned.gone] == [facts[0].id]


@pytest.mark.parametrize("op", [OperationKind.ADD, OperationKind.END])
async def test_an_edit_in_an_editor_that_was_open_meanwhile_loses_no_fact(tmp_path, op):
    root = tmp_path / "ws"
    root.mkdir()
    async with a_book(root, "a") as book:
        [tea, cake] = await book.learn([said("The user likes tea."), said("The user likes cake.")])
        opened = (root / FACTS_PATH).read_text()
        await book.learn(
            [said("The user likes jam." if op is OperationKind.ADD else "", op, tea.fact.id)]
        )
        (root / FACTS_PATH).write_text(opened.replace("likes cake", "loves cake"))
        await book.sync()
        texts = {fact.text for fact in await book.all() if fact.is_active}
        assert "The user loves cake." in texts
        assert "The user likes cake." not in texts
        assert (await book.history(cake.fact.id))[0].status == "superseded"


async def test_the_page_is_not_read_again_where_it_is_as_it_was_written(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    async with a_book(root, "one") as book:
        await book.learn([said("The user likes tea.")])
        page = root / FACTS_PATH
        digest = book._state._digest
        held = await book._state._keeping.page("nothing of it is looked at", digest)
        assert held.render() == page.read_text()
        page.write_text(page.read_text() + "- The user likes rye bread.\n")
        assert len(await book.all()) == 2
        assert (
            await book._state._keeping.page("", book._state._digest)
        ).render() == page.read_text()
