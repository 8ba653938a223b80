"""The check of facts finds what is wrong with them, and says well once it is cured."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta

import pytest

from agentd.doctor.examine import examine
from agentd.doctor.facts import Learnt
from agentd.domain.fact import Category, FactSource, Statement
from agentd.domain.message import Text
from agentd.domain.transcript import NewRow, RowRole
from agentd.domain.turn import MAIN, StopReason, Turn, TurnRequest
from agentd.domain.workspace import FACTS_PATH
from agentd.engine.sidecall import SideCall
from agentd.errors import ProviderError, StorageFull
from agentd.facts.book import FactBook
from agentd.facts.extraction.extractor import Extractor
from agentd.facts.forgetting import Forgetting, Place
from agentd.facts.settings import FactsSettings
from agentd.testing import (
    FactIndexDouble,
    FakeClock,
    MemoryFactStore,
    MemoryLedger,
    MemorySessions,
    MemoryWorkspace,
    ScriptedProvider,
)


class House:
    """Ten facts and all that keeps, reads and forgets them; `full` is a place that cannot be erased."""

    def __init__(self):
        self.clock = FakeClock()
        self.workspace = MemoryWorkspace(clock=self.clock)
        self.store = MemoryFactStore()
        self.sessions = MemorySessions(self.clock)
        self.provider = ScriptedProvider(default="[]")
        self.full = False
        numbers = itertools.count(1)
        self.forgetting = Forgetting(
            self.store,
            [Place("transcripts", self.erase)],
            self.clock,
            said=self.nothing,
            kept=self.nothing,
            copies=self.nothing,
        )
        self.book = FactBook(
            self.store,
            FactIndexDouble(),
            self.workspace,
            self.clock,
            new_id=lambda: f"f{next(numbers):07d}",
            key=b"k" * 32,
            forgetting=self.forgetting,
        )
        price = MemoryLedger(self.clock)
        calls = SideCall(self.provider, price, self.clock, lambda model, usage: 0.0)
        settings = FactsSettings()
        self.extractor = Extractor(
            self.sessions, self.store, self.book, calls, self.clock, settings
        )
        self.check = Learnt(self.problems)

    async def nothing(self, *_):
        return ""

    async def erase(self, needles):
        if self.full:
            raise StorageFull("the disk is full", cure="make room")
        return 1

    def problems(self):
        parts = (self.book, self.forgetting, self.extractor)
        return tuple(problem for part in parts for problem in part.problems())

    async def found(self):
        await self.book.sync()
        [finding] = await examine([self.check])
        return finding

    @property
    def page(self):
        return self.workspace.text(FACTS_PATH)

    def write(self, text):
        self.workspace.files[FACTS_PATH] = text.encode()


@pytest.fixture
async def house():
    house = House()
    at = house.clock.now()
    said = [
        Statement(f"The user owns book {n}.", Category.PERSONAL, FactSource.EXPLICIT, at)
        for n in range(10)
    ]
    await house.book.learn(said)
    return house


async def test_facts_that_are_as_they_should_be_are_fine(house):
    assert (await house.found()).level == "ok"


async def test_lines_that_went_many_at_once_are_told_until_they_are_answered_for(house):
    house.write("# Facts\n\n" + "\n".join(house.page.splitlines()[-3:]) + "\n")
    finding = await house.found()
    assert (finding.level, "7 facts are gone" in finding.text) == ("warn", True)
    assert "agentd facts parked --accept" in finding.cure
    await house.book.restore_parked()
    assert (await house.found()).level == "ok"


async def test_lines_that_cannot_be_read_are_named_until_they_are_mended(house):
    good = house.page
    bad = "- The user owns a boat. <!-- fact id=odd0odd0 confidence=lots -->"
    house.write(f"{good}\n{bad}\n- and\x00 this\n")
    finding = await house.found()
    assert finding.level == "fail"
    assert finding.text.count("line ") == 2
    assert finding.cure
    assert bad in house.page, "it stays where it is"
    house.write(good)
    assert (await house.found()).level == "ok"


async def test_what_is_still_to_be_erased_is_told_until_it_is_gone(house):
    house.full = True
    [first, *_] = await house.book.all()
    await house.book.forget([first.id])
    finding = await house.found()
    assert (finding.level, finding.cure) == ("fail", "make room")
    assert "still to be erased from transcripts" in finding.text
    house.full = False
    await house.forgetting.carry_out()
    assert (await house.found()).level == "ok"


async def test_conversations_that_cannot_be_read_are_told_until_they_were(house):
    request = TurnRequest(MAIN, "My dog is called Rex.", "m1")
    receipt = await house.sessions.receive(request)
    await house.sessions.begin(receipt.turn_id)
    turn = Turn(MAIN, "m1", receipt.seq, "Hello.", StopReason.END_TURN)
    row = NewRow(RowRole.ASSISTANT, (Text("Hello."),))
    await house.sessions.finish(receipt.turn_id, turn, [row])
    house.provider.say(ProviderError("Overloaded.", kind="overloaded", retryable=True))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(house.extractor.run())
        house.clock.jump(timedelta(hours=1))
        house.extractor.touch(MAIN)
        await house.clock.advance(360)
        finding = await house.found()
        assert (finding.level, "main" in finding.text, finding.cure != "") == ("warn", True, True)
        await house.clock.advance(400)
        assert (await house.found()).level == "ok"
        running.cancel()


async def test_every_problem_is_named_with_its_cure(house):
    house.full = True
    [first, *_] = await house.book.all()
    await house.book.forget([first.id])
    house.write(f"{house.page}\n- and\x00 this\n")
    finding = await house.found()
    assert (finding.level, "transcripts" in finding.text, "line " in finding.text) == (
        "fail",
        True,
        True,
    )
    assert "make room; " in finding.cure or "; make room" in finding.cure
