"""The daily look at the facts: what one request says of them, what age and number ask for, and that
nothing is erased.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from agentd.core.errors import ProviderError
from agentd.core.fact import Category, Evidence, FactSource, FactStatus, Triple
from agentd.core.turn import MAIN, Origin
from agentd.memory.facts.changes import LISTED, REVIEW, merged_lately
from agentd.memory.facts.daily import Review
from agentd.memory.facts.fact_settings import FactsSettings
from agentd.testing import ScriptedProvider
from tests.memory.facts.books import CHAT

EXPLICIT, FILE, EXTRACTED = FactSource.EXPLICIT, FactSource.FILE, FactSource.EXTRACTED
BOAT, SAME_BOAT = "The user owns a sailing boat.", "A sailing boat is owned by the user."
TRIPLE = Triple("user", "owns", "boat")


class House:
    """A talk that nobody leads, and who looks after its facts."""

    def __init__(self, home, most=10_000):
        self.home = home
        self.clock, self.book, self.store = home.clock, home.book, home.store
        self.settings = FactsSettings.model_construct(
            enabled=True,
            max_facts=most,
            extraction_timeout=timedelta(minutes=1),
            extraction_model="",
        )
        self.review = self.again()

    def again(self):
        return Review(self.book, self.store, self.home.calls, self.clock, self.settings)

    def says(self, *items):
        self.home.provider.say(json.dumps(items))

    async def put(self, text, source=EXPLICIT, days=0, category=Category.PROJECT, **fields):
        """A fact that was said so many days ago; its id."""
        at = self.clock.now() - timedelta(days=days)
        fields.setdefault("triple", TRIPLE)
        evidence = (Evidence(at, MAIN, next(self.home.rows), 0, 9),)
        said = self.home.said(
            text, at=at, source=source, category=category, evidence=evidence, **fields
        )
        [learned] = await self.book.learn([said])
        return learned.fact.id

    async def status(self, fact_id):
        return (await self.home.fact(fact_id)).status

    async def look(self, *, dry_run=False):
        return await self.review.validate(dry_run=dry_run)


@pytest.fixture
async def house(talk):
    return House(talk())


async def test_without_facts_there_is_nothing_to_do_and_nobody_is_asked(house):
    assert await house.look() == {
        "checked": 0,
        "duplicates": [],
        "conflicts": [],
        "triples": [],
        "stale": [],
        "evicted": [],
        "dry_run": False,
    }
    assert house.home.provider.prompts == []


async def test_what_says_the_same_is_joined_and_can_be_taken_apart(house):
    one, other = await house.put(BOAT), await house.put(SAME_BOAT)
    house.says({"op": "same", "ids": [one, other]})
    found = await house.look()
    assert found["duplicates"] == [{"id": other, "of": one}]
    assert await house.home.texts() == [BOAT]
    assert len(await house.home.evidence(one)) == 2
    [prompt] = house.home.provider.prompts
    assert f"[{one} since 2026-11-2" in prompt.messages[0].text
    assert (prompt.tools, prompt.origin) == ((), Origin.EXTRACTION)
    await house.home.check()
    await house.book.undo()
    assert len(await house.home.texts()) == 2
    house.says({"op": "same", "ids": [other, one]}, {"op": "replace", "ids": [other, one]})
    assert (await house.look())["duplicates"] == [], "the user has said that they are two"
    assert len(await house.home.texts()) == 2


async def test_what_the_last_review_merged_is_told_for_a_week_or_until_it_is_undone(house):
    async def told() -> int:
        return merged_lately(await house.book.changes(LISTED), house.clock.now())

    assert await told() == 0
    facts = [await house.put(text) for text in (BOAT, SAME_BOAT, "The user has a boat, in Kiel.")]
    house.says({"op": "same", "ids": facts})
    await house.look()
    assert await told() == 2
    assert {one.session for one in await house.book.changes(2)} == {REVIEW}
    await house.book.undo()
    assert await told() == 1
    house.clock.jump(timedelta(days=7))
    assert await told() == 0


async def test_what_the_owner_merges_himself_is_not_told_as_a_reviews(house):
    one, other = await house.put(BOAT), await house.put(SAME_BOAT)
    await house.book.merge(one, [other])
    assert merged_lately(await house.book.changes(LISTED), house.clock.now()) == 0


async def test_what_a_later_fact_makes_untrue_goes_for_it(house):
    old, new = await house.put("Lives in Kassel.", days=9), await house.put("Lives in Fulda.")
    house.says({"op": "replace", "ids": [new, old]})
    assert (await house.look())["conflicts"] == [{"id": old, "by": new}]
    assert await house.home.texts() == ["Lives in Fulda."]
    assert (await house.home.fact(old)).superseded_by == new


async def test_an_earlier_fact_replaces_no_later_one(house):
    old, new = await house.put("Lives in Kassel.", days=9), await house.put("Lives in Fulda.")
    house.says({"op": "replace", "ids": [old, new]})
    assert (await house.look())["conflicts"] == []
    assert len(await house.home.texts()) == 2


async def test_a_triple_that_is_missing_is_taken(house):
    bare = await house.put(BOAT, triple=None)
    described = await house.put("The user likes tea.")
    part = {"subject": "user", "relation": "boat", "value": "sailing"}
    house.says({"op": "same", "ids": [bare], **part}, {"op": "same", "ids": [described], **part})
    assert (await house.look())["triples"] == [bare]
    assert (await house.home.fact(bare)).triple == Triple("user", "boat", "sailing")
    assert (await house.home.fact(described)).triple == TRIPLE
    assert (await house.home.fact(bare)).confidence == 0.9
    assert "(no triple)" in house.home.provider.prompts[0].messages[0].text


@pytest.mark.parametrize(
    "items",
    [
        ['not json {"'],
        [{"op": "same", "ids": ["f001", "nobody"]}],
        [{"op": "same", "ids": ["f001"]}],
        [{"op": "forget", "ids": ["f001", "f002"]}],
        [{"op": "same", "ids": "f001 f002"}],
        [{"op": "same", "ids": [{"f001": "f002"}, 7]}],
        [{"op": "same", "ids": ["f001", "f001"], "subject": 3}],
    ],
    ids=str,
)
async def test_a_bad_answer_changes_nothing(house, items):
    await house.put(BOAT)
    await house.put(SAME_BOAT)
    before = await house.store.facts()
    house.says(*items)
    await house.look()
    assert await house.store.facts() == before


async def test_an_answer_that_contradicts_itself_loses_no_fact_altogether(house):
    ids = [await house.put(f"The user owns boat {n}.") for n in range(3)]
    one, two, three = ids
    house.says(
        {"op": "same", "ids": [one, two]},
        {"op": "same", "ids": [two, one]},
        {"op": "same", "ids": [three, one]},
        {"op": "same", "ids": [two, three]},
    )
    await house.look()
    assert await house.status(one) is FactStatus.ACTIVE
    assert await house.status(three) is FactStatus.ACTIVE
    assert await house.status(two) is FactStatus.SUPERSEDED


@pytest.mark.parametrize("error", [ProviderError("Down.", kind="overloaded"), TimeoutError()])
async def test_without_a_model_age_and_number_are_looked_at_all_the_same(talk, error):
    house = House(talk(error))
    old = await house.put("The user looks for a piano teacher.", EXTRACTED, days=300)
    await house.put(BOAT)
    assert (await house.look())["stale"] == [old]
    [problem] = house.review.problems()
    assert problem.code == "facts_unjudged"
    await house.look()
    assert house.review.problems() == ()


async def test_what_was_heard_once_and_long_ago_is_put_aside(house):
    old = await house.put("The user looks for a piano teacher.", EXTRACTED, days=226)
    await house.put("The user plays the cello.", EXTRACTED, days=224)
    await house.put("The user plays the flute.", EXPLICIT, days=900)
    for category in (Category.PERSONAL, Category.PREFERENCE, Category.INSTRUCTION):
        await house.put(f"The user has a {category} trait.", EXTRACTED, 900, category)
    again = "The user plays chess on Mondays."
    await house.put(again, EXTRACTED, days=900)
    await house.put(again, EXTRACTED, days=800)
    found = await house.look()
    assert found["stale"] == [old]
    fact = await house.home.fact(old)
    assert (fact.status, fact.superseded_by, fact.text != "") == (FactStatus.ENDED, "", True)
    assert house.home.forgotten.begun == []
    assert (await house.book.undo()).old == (old,), "it is in the list of changes"
    assert (await house.look())["stale"] == [], "the user wants to keep it"
    assert await house.status(old) is FactStatus.ACTIVE


async def test_the_question_before_it_does_not_make_a_word_two(house):
    at = house.clock.now() - timedelta(days=300)
    asked = (Evidence(at, CHAT, 1, 0, 9, is_context=True), Evidence(at, CHAT, 2, 0, 4))
    said = house.home.said("Tom.", at=at, evidence=asked, category=Category.PROJECT, triple=TRIPLE)
    [learned] = await house.book.learn([said])
    assert (await house.look())["stale"] == [learned.fact.id]


async def test_above_the_cap_the_least_important_go_in_one_step(talk):
    house = House(talk(), most=10)
    heard = [await house.put(f"The user met friend {n}.", EXTRACTED, days=n) for n in range(8)]
    asked = [await house.put(f"The user owns book {n}.", EXPLICIT, days=100 + n) for n in range(2)]
    written = await house.put("The user was born in a leap year.", FILE, days=400)
    saves = len(house.home.workspace.authors)
    found = await house.look()
    assert found["evicted"] == [heard[7], heard[6]]
    assert len(house.home.workspace.authors) == saves + 1
    active = {fact.id for fact in await house.book.all() if fact.is_active}
    assert active == {*heard[:6], *asked, written}
    assert (await house.look())["evicted"] == []


async def test_what_the_user_said_goes_last_and_the_older_word_first(talk):
    house = House(talk(), most=2)
    asked = [await house.put(f"The user owns book {n}.", EXPLICIT, days=n) for n in range(3)]
    heard = await house.put("The user met a friend.", EXTRACTED)
    found = await house.look(dry_run=True)
    assert found["evicted"] == [heard, asked[2], asked[1]]


async def test_a_dry_run_changes_nothing(house):
    one, other = await house.put(BOAT), await house.put(SAME_BOAT)
    house.says({"op": "same", "ids": [one, other]})
    page = house.home.page
    found = await house.look(dry_run=True)
    assert (found["dry_run"], len(found["duplicates"])) == (True, 1)
    assert house.home.page == page
    assert len(await house.home.texts()) == 2


async def test_facts_whose_lines_are_in_doubt_are_left_alone(house):
    ids = [await house.put(f"The user owns book {n}.", EXTRACTED, days=300) for n in range(8)]
    house.home.write("# Facts\n")
    assert len(await house.book.parked()) == 8
    found = await house.look()
    assert (found["checked"], found["stale"]) == (0, [])
    await house.book.restore_parked()
    assert (await house.look())["stale"] == ids


async def test_it_looks_by_itself_once_a_day_and_not_again_after_a_restart(house):
    old = await house.put("The user looks for a piano teacher.", EXTRACTED, days=300)
    await house.put(BOAT)
    for asked, days in ((1, 0), (1, 0), (2, 1)):
        house.clock.jump(timedelta(days=days))
        house.review = house.again()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(house.review.run())
            await house.home.pass_(599)
            await house.home.pass_(1)
            running.cancel()
        assert len(house.home.provider.prompts) == asked
        assert await house.status(old) is FactStatus.ENDED
    assert house.review.problems() == ()


async def test_it_does_nothing_when_facts_are_off(house):
    old = await house.put("The user looks for a piano teacher.", EXTRACTED, days=300)
    house.settings = FactsSettings(enabled=False)
    async with asyncio.timeout(20):
        await house.again().run()
    assert await house.status(old) is FactStatus.ACTIVE


async def test_a_model_of_its_own_is_asked(talk):
    home = talk(provider=ScriptedProvider(default="[]"))
    home.calls.cheap_model = "small-1"
    house = House(home)
    await house.put(BOAT)
    await house.look()
    assert house.home.provider.prompts[0].model == "small-1"
