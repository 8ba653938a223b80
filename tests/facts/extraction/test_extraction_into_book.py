"""From what the user says to the page of facts, with the real book and without a model."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from agentd.domain.fact import ErasureReport, FactSource
from agentd.domain.message import Text
from agentd.domain.transcript import NewRow, RowRole
from agentd.domain.turn import MAIN, StopReason, Turn, TurnRequest
from agentd.domain.workspace import FACTS_PATH
from agentd.engine.sidecall import SideCall
from agentd.facts.book import FactBook
from agentd.facts.desk import Desk
from agentd.facts.extraction.extractor import Extractor
from agentd.facts.extraction.reader import Reader
from agentd.facts.settings import FactsSettings
from agentd.providers.offline.provider import OfflineProvider
from agentd.storage.facts import SqliteFacts
from agentd.storage.ledger import SqliteLedger
from agentd.storage.migrations import STATE
from agentd.storage.sessions import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.testing import FactIndexDouble, FakeClock, MemoryWorkspace


class Nothing:
    """Has nothing to erase."""

    async def begin(self, facts):
        return

    async def carry_out(self):
        return ErasureReport({})


class Home:
    """Real stores, the real book, the offline provider."""

    def __init__(self, db: Database) -> None:
        self.clock = FakeClock()
        self.sessions = SqliteSessions(db, self.clock)
        self.store = SqliteFacts(db)
        self.workspace = MemoryWorkspace(clock=self.clock)
        numbers = itertools.count(1)
        self.book = FactBook(
            self.store,
            FactIndexDouble({}),
            self.workspace,
            self.clock,
            new_id=lambda: f"f{next(numbers):07d}",
            key=b"k" * 32,
            forgetting=Nothing(),
        )
        ledger = SqliteLedger(db, self.clock)
        self.calls = SideCall(OfflineProvider(), ledger, self.clock, lambda model, used: 0.0)
        self.extractor = self.started()
        self.said = 0

    def started(self) -> Extractor:
        """An extractor, as after a start."""
        return Extractor(
            self.sessions, self.store, self.book, self.calls, self.clock, FactsSettings()
        )

    async def say(self, text: str) -> None:
        self.said += 1
        await self.clock.advance(60)
        receipt = await self.sessions.receive(TurnRequest(MAIN, text, f"m{self.said}"))
        await self.sessions.begin(receipt.turn_id)
        turn = Turn(MAIN, f"m{self.said}", receipt.seq, "Fine.", StopReason.END_TURN)
        await self.sessions.finish(
            receipt.turn_id, turn, [NewRow(RowRole.ASSISTANT, (Text("Fine."),))]
        )

    async def known(self) -> list[tuple[str, FactSource, bool]]:
        return [(fact.text, fact.source, fact.is_active) for fact in await self.book.all()]


@pytest.fixture
async def home(tmp_path: Path):
    async with Database.open(tmp_path / "state.db", STATE) as db:
        yield Home(db)


async def test_what_is_said_stands_on_the_page_and_the_newer_replaces_the_older(home) -> None:
    await home.say("My dog is called Max.")
    await home.say("thanks")
    await home.extractor.extract(MAIN)
    await home.say("No, sorry. My dog is called Rex.")
    await home.extractor.extract(MAIN)
    assert [(f.text.split()[-1], f.is_active) for f in await home.book.all()] == [
        ("Max.", False),
        ("Rex.", True),
    ]
    page = home.workspace.files[FACTS_PATH]
    assert b"Rex" in page
    assert (await home.store.marks())[MAIN] == 5


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("I work at Siemens.", "I quit Siemens and work at Bosch now.", ["Bosch"]),
        ("My sister Klara lives in Oslo.", "My sister Klara moved to Bonn.", ["Klara", "Bonn"]),
        ("I'm vegetarian.", "I eat meat again.", ["meat"]),
        ("I started eating fish again.", "I'm vegan now.", ["vegan"]),
        ("I stopped smoking.", "I started smoking again.", ["smokes"]),
        ("Remember that the boiler code is 4417.", "Remember: the boiler code is 5523.", ["5523"]),
        (
            "Remember that the user's scanner is a Canon.",
            "Remember: my scanner is an Epson.",
            ["Epson"],
        ),
        ("I'm vegetarian.", "I'm a non-smoker.", ["vegetarian", "non-smoker"]),
        ("I'm vegetarian.", "I eat cheese again.", ["vegetarian", "cheese"]),
        ("Remember: the meeting is at 5.", "Remember: the meeting is at 3.", ["5", "3"]),
    ],
)
async def test_the_newer_value_holds_by_words_alone(home, old, new, left) -> None:
    for said in (old, new):
        await home.say(said)
        await home.extractor.extract(MAIN)
    active = [text.rstrip(".").split()[-1] for text, _, holds in await home.known() if holds]
    assert sorted(active) == sorted(left)


async def test_what_is_forgotten_before_it_was_read_is_never_learnt(home) -> None:
    async def nobody_asks(session):
        return ()

    await home.say("My dog is called Rex.")
    desk = Desk(home.book, nobody_asks, home.clock, home.extractor.catch_up)
    (fact,) = (await desk.matching("Rex")).sure
    await desk.forget([fact.id])
    await home.say("Fine weather.")
    await home.extractor.extract(MAIN)
    assert [fact for fact in await home.book.all() if fact.is_active] == []


async def test_the_same_twice_is_one_fact_that_was_seen_twice(home) -> None:
    await home.say("My dog is called Rex.")
    await home.say("It is warm today. My dog is called Rex.")
    await home.extractor.extract(MAIN)
    (fact,) = await home.book.all()
    seen = (await home.store.sightings([fact.id]))[fact.id]
    assert [one.origin.seq for one in seen] == [1, 3]


async def test_what_was_asked_for_is_not_replaced_by_what_is_read(home) -> None:
    await home.say("Remember that my dog is called Rex.")
    await home.extractor.extract(MAIN)
    await home.say("My dog is called Max.")
    await home.extractor.extract(MAIN)
    active = [(text, source) for text, source, holds in await home.known() if holds]
    assert [(text.rstrip(".").split()[-1], source) for text, source in active] == [
        ("Rex", FactSource.EXPLICIT)
    ]


async def test_what_was_asked_for_is_kept_once_although_a_restart_hears_it_again(home) -> None:
    await home.say("Remember that my dog is called Rex.")
    for _ in range(2):
        reader = Reader(
            home.sessions, home.store, home.book, home.calls, home.clock, FactsSettings()
        )
        await reader.hear(MAIN)
    await home.started().extract(MAIN)
    (fact,) = await home.book.all()
    assert len((await home.store.sightings([fact.id]))[fact.id]) == 1
