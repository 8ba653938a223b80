"""The daily look at all facts: what goes, what stays for it, and that nothing is erased."""

from __future__ import annotations

import asyncio
import itertools
import struct
from datetime import timedelta

import pytest

from agentd.domain.fact import Category, ErasureReport, FactSource, FactStatus, Statement, Triple
from agentd.facts.book import FactBook
from agentd.facts.settings import FactsSettings
from agentd.facts.upkeep import Upkeep
from agentd.testing import FactIndexDouble, FakeClock, MemoryFactStore, MemoryWorkspace

EXPLICIT, FILE, EXTRACTED = FactSource.EXPLICIT, FactSource.FILE, FactSource.EXTRACTED


class NoForgetting:
    async def begin(self, facts):
        raise AssertionError("upkeep erases nothing")

    async def carry_out(self):
        return ErasureReport({})


class House:
    """A book whose index finds nothing near, so that upkeep has something to find."""

    def __init__(self, most=10_000):
        self.clock = FakeClock()
        self.store = MemoryFactStore()
        self.index = FactIndexDouble()
        self.workspace = MemoryWorkspace(clock=self.clock)
        self.numbers = itertools.count(1)
        self.book = FactBook(
            self.store,
            self.index,
            self.workspace,
            self.clock,
            new_id=lambda: f"f{next(self.numbers):07d}",
            key=b"k" * 32,
            forgetting=NoForgetting(),
        )
        settings = FactsSettings.model_construct(enabled=True, max_facts=most)
        self.upkeep = Upkeep(self.book, self.store, self.index, self.clock, settings)

    async def put(self, text, source=EXPLICIT, days=0, category=Category.PROJECT, **fields):
        """A fact as it may stand there, past the judge; its id."""
        at = self.clock.now() - timedelta(days=days)
        said = Statement(text, category, source, at, **fields)
        [learned] = await self.book.learn([said])
        return learned.fact.id

    async def near(self, **vectors):
        """Give facts vectors of a model."""
        self.index.model = "minilm"
        packed = {i: struct.pack(f"<{len(v)}f", *v) for i, v in vectors.items()}
        await self.store.put_vectors("minilm", packed)

    async def status(self, fact_id):
        return {fact.id: fact.status for fact in await self.book.all()}[fact_id]


@pytest.fixture
def house():
    return House()


def dog(name):
    return Triple("user", "dog name", name)


async def test_without_facts_there_is_nothing_to_do(house):
    assert await house.upkeep.validate(dry_run=False) == {
        "checked": 0,
        "duplicates": [],
        "conflicts": [],
        "stale": [],
        "evicted": [],
        "dry_run": False,
    }


async def test_of_two_that_mean_the_same_the_surer_one_stays(house):
    heard = await house.put("The user owns a sailing boat.", EXTRACTED)
    asked = await house.put("A sailing boat is owned by the user.")
    await house.near(**{heard: (1.0, 0.2), asked: (1.0, 0.25)})
    found = await house.upkeep.validate(dry_run=False)
    assert found["duplicates"] == [{"id": heard, "of": asked}]
    assert await house.status(heard) is FactStatus.SUPERSEDED
    assert [fact.id for fact in await house.book.history(heard)] == [heard, asked]
    assert "A sailing boat" in house.workspace.text("memory/facts.md").partition("## Earlier")[0]
    assert (await house.upkeep.validate(dry_run=False))["duplicates"] == []


async def test_how_often_a_duplicate_was_said_counts_for_the_one_that_stays(house):
    heard = await house.put("The user owns a sailing boat.", EXTRACTED, days=9)
    await house.put("The user owns a sailing boat.", EXTRACTED, days=5)
    asked = await house.put("A sailing boat is owned by the user.", days=1)
    await house.near(**dict.fromkeys((heard, asked), (1.0, 0.0)))
    await house.upkeep.validate(dry_run=True)
    assert len((await house.store.sightings([asked]))[asked]) == 1
    for _ in range(2):
        await house.upkeep.validate(dry_run=False)
    days = [(house.clock.now() - s.at).days for s in (await house.store.sightings([asked]))[asked]]
    assert days == [9, 5, 1]


@pytest.mark.parametrize(
    ("first", "second", "stays"),
    [
        ({"source": EXTRACTED}, {"source": FILE}, 1),
        ({"source": EXPLICIT, "confidence": 0.5}, {"source": FILE, "confidence": 0.9}, 1),
        ({"source": EXPLICIT}, {"source": FILE}, 0),
        ({"source": EXTRACTED, "confidence": 0.7}, {"source": EXTRACTED}, 0),
    ],
)
async def test_authority_counts_before_confidence_and_that_before_age(house, first, second, stays):
    texts = ("The user owns a sailing boat.", "A sailing boat is owned by the user.")
    days = (9, 3)
    ids = [
        await house.put(text, days=day, **fields)
        for text, day, fields in zip(texts, days, (first, second), strict=True)
    ]
    await house.near(**dict.fromkeys(ids, (1.0, 0.0)))
    found = await house.upkeep.validate(dry_run=True)
    assert found["duplicates"] == [{"id": ids[1 - stays], "of": ids[stays]}]


async def test_near_ones_that_differ_in_a_number_or_a_word_both_stay(house):
    ids = [
        await house.put(text)
        for text in (
            "The user's flight leaves on May 3.",
            "The user's flight leaves on May 4.",
            "The keys are in the top drawer.",
            "The keys are in the bottom drawer.",
        )
    ]
    await house.near(**dict.fromkeys(ids, (1.0, 0.0)))
    assert (await house.upkeep.validate(dry_run=False))["duplicates"] == []


async def conflicting(house, old, new):
    """Two values of one thing, as a file that somebody merged may have them."""
    text = "- The user's dog is called {name}. <!-- fact id={id} source={source} since={since}{more} -->"
    lines = [
        text.format(
            name=name,
            id=fact_id,
            source=source,
            since=f"2026-{month:02}-01T00:00:00Z",
            more=f' triple="user|dog name|{name}"',
        )
        for name, fact_id, source, month in (
            ("Max", "maxmaxma", old, 1),
            ("Rex", "rexrexre", new, 6),
        )
    ]
    house.workspace.files["memory/facts.md"] = ("# Facts\n\n" + "\n".join(lines) + "\n").encode()
    await house.book.sync()


async def test_of_two_values_the_newer_one_stays(house):
    await conflicting(house, "explicit", "file")
    found = await house.upkeep.validate(dry_run=False)
    assert found["conflicts"] == [{"id": "maxmaxma", "by": "rexrexre"}]
    [old, new] = await house.book.history("maxmaxma")
    assert (old.superseded_by, old.valid_to) == ("rexrexre", new.valid_from)


async def test_what_was_only_heard_never_takes_the_place_of_the_users_own_word(house):
    await conflicting(house, "explicit", "extracted")
    found = await house.upkeep.validate(dry_run=False)
    assert found["conflicts"] == [{"id": "rexrexre", "by": "maxmaxma"}]
    assert await house.status("maxmaxma") is FactStatus.ACTIVE


async def test_what_was_heard_once_and_long_ago_is_put_aside(house):
    old = await house.put("The user looks for a piano teacher.", EXTRACTED, days=226)
    await house.put("The user plays the cello.", EXTRACTED, days=224)
    await house.put("The user plays the flute.", EXPLICIT, days=900)
    for category in (Category.PERSONAL, Category.PREFERENCE, Category.INSTRUCTION):
        await house.put(f"The user has a {category} trait.", EXTRACTED, 900, category)
    again = "The user plays chess on Mondays."
    await house.put(again, EXTRACTED, days=900)
    await house.put(again, EXTRACTED, days=800)
    found = await house.upkeep.validate(dry_run=False)
    assert found["stale"] == [old]
    [fact] = await house.book.history(old)
    assert (fact.status, fact.superseded_by, fact.text != "") == (FactStatus.SUPERSEDED, "", True)


async def test_above_the_cap_the_least_important_go_in_one_step(house):
    house = House(most=10)
    heard = [await house.put(f"The user met friend {n}.", EXTRACTED, days=n) for n in range(8)]
    asked = [await house.put(f"The user owns book {n}.", EXPLICIT, days=100 + n) for n in range(2)]
    written = await house.put("The user was born in a leap year.", FILE, days=400)
    saves = house.workspace.authors.copy()
    found = await house.upkeep.validate(dry_run=False)
    assert found["evicted"] == [heard[7], heard[6]]
    assert len(house.workspace.authors) == len(saves) + 1
    active = {fact.id for fact in await house.book.all() if fact.is_active}
    assert active == {*heard[:6], *asked, written}
    assert (await house.upkeep.validate(dry_run=False))["evicted"] == []


async def test_what_the_user_said_goes_last_and_the_older_word_first():
    house = House(most=2)
    asked = [await house.put(f"The user owns book {n}.", EXPLICIT, days=n) for n in range(3)]
    heard = await house.put("The user met a friend.", EXTRACTED)
    found = await house.upkeep.validate(dry_run=True)
    assert found["evicted"] == [heard, asked[2], asked[1]]


async def test_a_dry_run_changes_nothing(house):
    await conflicting(house, "explicit", "file")
    page = house.workspace.text("memory/facts.md")
    found = await house.upkeep.validate(dry_run=True)
    assert (found["dry_run"], len(found["conflicts"])) == (True, 1)
    assert house.workspace.text("memory/facts.md") == page
    assert await house.status("maxmaxma") is FactStatus.ACTIVE


async def test_facts_whose_lines_are_in_doubt_are_left_alone(house):
    ids = [await house.put(f"The user owns book {n}.", EXTRACTED, days=300) for n in range(8)]
    house.workspace.files["memory/facts.md"] = b"# Facts\n"
    assert len(await house.book.parked()) == 8
    found = await house.upkeep.validate(dry_run=False)
    assert (found["checked"], found["stale"]) == (0, [])
    await house.book.restore_parked()
    assert (await house.upkeep.validate(dry_run=False))["stale"] == ids


async def test_chains_end_at_the_fact_that_stays(house):
    texts = ("The user owns a sailing boat.", "A sailing boat is owned by the user.",
             "The user is the owner of a sailing boat.")  # fmt: skip
    sources = (EXTRACTED, EXTRACTED, EXPLICIT)
    ids = [
        await house.put(text, source, days=9 - n)
        for n, (text, source) in enumerate(zip(texts, sources, strict=True))
    ]
    await house.near(**dict.fromkeys(ids, (1.0, 0.0)))
    await house.upkeep.validate(dry_run=False)
    active = [fact.id for fact in await house.book.all() if fact.is_active]
    assert active == [ids[2]]
    assert {f.superseded_by for f in await house.book.all() if not f.is_active} == {ids[2]}


async def test_it_looks_by_itself_some_minutes_after_the_start(house):
    old = await house.put("The user looks for a piano teacher.", EXTRACTED, days=300)
    done = asyncio.Event()
    put_aside = house.book.put_aside

    class Told:
        all, parked = house.book.all, house.book.parked

        @staticmethod
        async def put_aside(successors):
            result = await put_aside(successors)
            done.set()
            return result

    settings = FactsSettings()
    upkeep = Upkeep(Told(), house.store, house.index, house.clock, settings)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(upkeep.run())
        await house.clock.advance(599)
        assert await house.status(old) is FactStatus.ACTIVE
        await house.clock.advance(1)
        await done.wait()
        assert await house.status(old) is FactStatus.SUPERSEDED
        running.cancel()


async def test_it_does_nothing_when_facts_are_off(house):
    old = await house.put("The user looks for a piano teacher.", EXTRACTED, days=300)
    page, now = house.workspace.text("memory/facts.md"), house.clock.now()
    off = FactsSettings(enabled=False)
    async with asyncio.timeout(20):
        await Upkeep(house.book, house.store, house.index, house.clock, off).run()
    assert house.workspace.text("memory/facts.md") == page
    assert (await house.status(old), house.clock.now()) == (FactStatus.ACTIVE, now)
