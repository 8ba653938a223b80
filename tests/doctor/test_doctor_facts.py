"""The check of facts finds what is wrong with them, and says well once it is cured."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agentd.app.doctor.examine import examine
from agentd.app.doctor.memory_checks import FactsCheck
from agentd.core.errors import ProviderError, StorageFull
from agentd.core.turn import MAIN
from agentd.memory.facts.forgetting import Forgetting, ForgottenPlace
from agentd.storage.erasures import SqliteErasures
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from tests.memory.facts.talks import Talk


class House(Talk):
    """Ten facts and all that keeps, reads and forgets them; `full` is a place that cannot be
    erased.
    """

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.full = False
        self.forgotten = Forgetting(
            SqliteErasures(db),
            [ForgottenPlace("transcripts", self.erase)],
            self.clock,
            ask=None,
            texts=(),
            said=self.nothing,
            copies=self.no_copies,
        )
        self.started()
        self.check_of_facts = FactsCheck(self.problems)

    async def nothing(self, *_) -> None:
        return None

    async def no_copies(self, *_) -> tuple[str, ...]:
        return ()

    async def erase(self, erasure) -> int:
        if self.full:
            raise StorageFull("the disk is full", cure="make room")
        return 1

    def problems(self):
        parts = (self.book, self.forgotten, self.learning)
        return tuple(problem for part in parts for problem in part.problems())

    async def found(self):
        await self.book.sync()
        [finding] = await examine([self.check_of_facts])
        return finding


@pytest.fixture
async def house(tmp_path):
    async with Database.open(tmp_path / "state.db", STATE) as db:
        house = House(db)
        await house.add(*(f"The user owns book {n}." for n in range(10)))
        yield house


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
    bad = "- The user owns a boat. <!-- fact id=odd0 confidence=lots -->"
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
    assert (finding.level, "make room" in finding.cure) == ("fail", True)
    assert "still to be erased from transcripts" in finding.text
    house.full = False
    await house.forgotten.carry_out()
    assert (await house.found()).level == "ok"


async def test_conversations_that_cannot_be_read_are_told_until_they_were(house):
    await house.say("My dog is called Rex.")
    house.provider.say(ProviderError("Overloaded.", kind="overloaded", retryable=True))
    async with house.running():
        house.clock.jump(timedelta(hours=1))
        house.learning.touch(MAIN)
        await house.pass_(360)
        finding = await house.found()
        assert (finding.level, "main" in finding.text, finding.cure != "") == ("warn", True, True)
        await house.pass_(400)
        assert (await house.found()).level == "ok"


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
