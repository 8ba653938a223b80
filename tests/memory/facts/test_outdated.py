"""A search of the owner's, between what was found and what is shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from agentd.core.errors import StorageError
from agentd.core.fact import (
    Category,
    Evidence,
    Fact,
    FactSource,
    FactStatus,
    FactWrite,
    Provenance,
)
from agentd.core.search import OWNERS, Chunk, Hit, SearchQuery, SearchResult, Source
from agentd.core.turn import MAIN, SessionKey, SessionKind
from agentd.core.workspace import FACTS_PATH, Reader
from agentd.memory.facts.outdated import Outdated
from agentd.memory.facts.page import parse
from agentd.storage.fact_store import SqliteFacts
from agentd.testing import FakeClock, MemoryWorkspace

NOW = datetime(2026, 11, 20, tzinfo=UTC)
OWNER = Reader(MAIN, SessionKind.OWNER)
GUEST = Reader(SessionKey("group:tea"), SessionKind.GROUP)
ASKED = SearchQuery("what is my dog called?")
CHAT = "sessions/main.jsonl"
ROWS = {
    3: "Listen, our puppy goes by the name of Rex, after the king.",
    4: "Rex",
    9: "He is Max from today on.",
}


def fact(fact_id, text, by="", status=None, seq=0) -> Fact:
    status = status or (FactStatus.SUPERSEDED if by else FactStatus.ACTIVE)
    return Fact(
        fact_id,
        text,
        Category.PERSONAL,
        FactSource.EXPLICIT,
        0.9,
        NOW,
        NOW,
        status,
        None if status is FactStatus.ACTIVE else NOW,
        by,
        Provenance(MAIN, seq) if seq else Provenance(),
    )


REX = fact("aaaa", "The user's dog is called Rex.", "bbbb", seq=3)
MAX = fact("bbbb", "The user's dog is called Max.", seq=9)
JUDO = fact("cccc", "The user does judo on Mondays.", status=FactStatus.ENDED)


def evidence(of, seq, words, **more) -> Evidence:
    start = ROWS[seq].index(words)
    return Evidence(NOW, MAIN, seq, start, start + len(words), fact_id=of.id, **more)


SAID = (
    evidence(REX, 3, "our puppy goes by the name of Rex"),
    evidence(MAX, 9, "He is Max from today on"),
)


def hit(text, line=1, path="memory/2026-11-02.md", last=0) -> Hit:
    source = Source.SESSIONS if path.startswith("sessions/") else Source.NOTES
    return Hit(Chunk(path, line, last or line, text, source, OWNERS), 0.5)


OLD = hit("[user] " + ROWS[3], 3, CHAT)


class Finding:
    """Finds the same for all."""

    def __init__(self, *hits: Hit) -> None:
        self.found = SearchResult(hits, "" if hits else "no_match")

    async def search(self, query, reader):
        return self.found

    async def read(self, path, reader):
        raise NotImplementedError


class House:
    """The facts, their page, their rows and what was said."""

    def __init__(self, db) -> None:
        self.store = SqliteFacts(db)
        self.workspace = MemoryWorkspace({}, FakeClock())
        self.facts: tuple[Fact, ...] = ()
        self.asked = 0

    async def know(self, *facts: Fact, said=SAID) -> None:
        self.facts = facts
        await self.store.write(FactWrite(facts, evidence=said))
        page = parse("").edited(facts).render()
        self.workspace.files[FACTS_PATH] = page.encode()

    def line(self, text: str) -> int:
        lines = self.workspace.text(FACTS_PATH).split("\n")
        return next(number for number, line in enumerate(lines, 1) if text in line)

    def place(self, text: str) -> str:
        return f"{FACTS_PATH}:{self.line(text)}"

    async def all(self) -> tuple[Fact, ...]:
        self.asked += 1
        return self.facts

    async def said(self, session, seq) -> str:
        return ROWS.get(seq, "")

    def around(self, *hits: Hit, **more) -> Outdated:
        return Outdated(Finding(*hits), self, self.store, self.workspace, self.said, **more)

    async def search(self, *hits, query=ASKED, reader=OWNER, **more) -> SearchResult:
        return await self.around(*hits, **more).search(query, reader)


class Broken(House):
    """Cannot say what it knows."""

    async def all(self):
        raise StorageError("the disk is gone", cure="put it back")


def texts(found: SearchResult) -> list[str]:
    return [hit.chunk.text for hit in found.hits]


def newer(found: SearchResult) -> list[str]:
    return [hit.newer for hit in found.hits]


@pytest.fixture
async def house(facts_db):
    house = House(facts_db)
    await house.know(REX, MAX, JUDO)
    return house


async def test_a_row_that_an_old_fact_was_said_in_stands_behind_the_fact_that_holds(house) -> None:
    found = await house.search(OLD)
    assert texts(found) == [MAX.text, OLD.chunk.text]
    assert newer(found) == ["", house.place("Max")]
    assert found.hits[0].chunk.path == FACTS_PATH
    assert found.hits[0].chunk.start_line == house.line("Max")


async def test_a_part_of_a_conversation_is_outdated_if_such_a_row_is_in_it(house) -> None:
    before, after = hit("[user] hello", 1, CHAT, last=2), hit("[user] and so on", 1, CHAT, last=5)
    found = await house.search(before, after)
    assert texts(found) == [before.chunk.text, MAX.text, after.chunk.text]
    assert newer(found) == ["", "", house.place("Max")]


async def test_the_same_rows_of_another_conversation_are_not_outdated(house) -> None:
    other = hit("[user] hello", 3, "sessions/chat:2.jsonl")
    assert (await house.search(other)).hits == (other,)


@pytest.mark.parametrize(
    "text",
    [
        "- noted: The user’s dog is called REX!",
        "he said that our puppy goes by the name of Rex, after a king",
    ],
)
async def test_a_copy_of_the_sentence_or_of_the_words_that_said_it_is_outdated(house, text) -> None:
    found = await house.search(hit(text))
    assert newer(found) == ["", house.place("Max")]


@pytest.mark.parametrize(
    "text", ["Rex fixed the printer", "my dog is called Rex", "the user's dog is called rexy"]
)
async def test_what_only_sounds_like_it_is_not_outdated(house, text) -> None:
    assert (await house.search(hit(text))).hits == (hit(text),)


async def test_a_short_answer_counts_where_it_was_given_and_nowhere_else(house) -> None:
    answer = evidence(REX, 4, "Rex")
    await house.store.write(FactWrite(evidence=(answer,)))
    found = await house.search(hit("[user] Rex", 4, CHAT), hit("Rex is a king"))
    assert newer(found) == ["", house.place("Max"), ""]


async def test_the_question_that_an_answer_belongs_to_is_not_outdated_with_it(house) -> None:
    asked = replace(evidence(REX, 4, "Rex"), seq=2, is_context=True)
    await house.store.write(FactWrite(evidence=(asked,)))
    question = hit("[assistant] What is your dog called?", 2, CHAT)
    assert (await house.search(question)).hits == (question,)


async def test_the_line_of_the_old_fact_on_the_page_is_outdated(house) -> None:
    old, both = hit(REX.text, house.line("Rex"), FACTS_PATH), hit("…", 1, FACTS_PATH, last=99)
    assert newer(await house.search(old)) == ["", house.place("Max")]
    assert (await house.search(both)).hits == (both,)


async def test_what_tells_of_the_change_is_not_outdated_but_the_fact_answers_first(house) -> None:
    rows = hit("[user] … [user] …", 3, CHAT, last=9)
    note = hit(f"{REX.text} No longer: {MAX.text}")
    found = await house.search(rows, note)
    assert texts(found) == [MAX.text, rows.chunk.text, note.chunk.text]
    assert newer(found) == ["", "", ""]


async def test_a_hit_for_something_else_in_the_same_row_that_still_holds_is_not_outdated(
    house,
) -> None:
    king = fact("dddd", "The user admires the king of Thailand.", seq=3)
    await house.know(REX, MAX, king)
    asked = SearchQuery("which king do I admire?")
    assert (await house.search(OLD, query=asked)).hits == (OLD,)
    assert newer(await house.search(OLD)) == ["", house.place("Max")]


async def test_what_has_only_ended_names_the_line_that_says_so(house) -> None:
    found = await house.search(hit(JUDO.text))
    assert texts(found) == [JUDO.text]
    assert newer(found) == [house.place("judo")]


async def test_any_words_beside_it_leave_it_ended(house) -> None:
    found = await house.search(hit(f'{JUDO.text} A text in C ends with "\\0".'))
    assert newer(found) == [house.place("judo")]


async def test_what_holds_moves_up_and_never_down(house) -> None:
    now = hit(MAX.text, house.line("Max"), FACTS_PATH)
    assert texts(await house.search(OLD, now)) == [MAX.text, OLD.chunk.text]
    assert texts(await house.search(now, OLD)) == [MAX.text, OLD.chunk.text]


async def test_others_learn_nothing_of_the_facts(house) -> None:
    found = await house.search(OLD, reader=GUEST)
    assert found.hits == (OLD,)
    assert house.asked == 0


@pytest.mark.parametrize("facts", [(), (MAX,)])
async def test_without_anything_past_a_search_is_as_it_was_found(facts_db, facts) -> None:
    house = House(facts_db)
    await house.know(*facts)
    recall = Finding(OLD, hit("a cat", 2))
    outdated = Outdated(recall, house, house.store, house.workspace, house.said)
    assert await outdated.search(ASKED, OWNER) is recall.found


async def test_without_a_page_a_search_is_as_it_was_found(facts_db) -> None:
    assert (await House(facts_db).search(OLD)).hits == (OLD,)


async def test_facts_are_not_asked_for_where_nothing_was_found(house) -> None:
    assert (await house.search()).reason == "no_match"
    assert house.asked == 0


async def test_the_limit_is_kept(house) -> None:
    several = [OLD, *(hit(f"a dog {n}", n) for n in range(2, 5))]
    found = await house.search(*several, query=replace(ASKED, limit=4))
    assert texts(found) == [MAX.text, OLD.chunk.text, "a dog 2", "a dog 3"]
    assert texts(await house.search(OLD, query=replace(ASKED, limit=1))) == [MAX.text]


@pytest.mark.parametrize("by_query", [True, False])
async def test_the_budget_of_tokens_is_kept(house, by_query) -> None:
    long = hit("dog " * 40, 2)
    if by_query:
        found = await house.search(OLD, long, query=replace(ASKED, max_tokens=30))
    else:
        found = await house.search(OLD, long, max_tokens=30)
    assert texts(found) == [MAX.text, OLD.chunk.text]


async def test_a_search_of_conversations_alone_shows_no_line_of_a_note(house) -> None:
    query = replace(ASKED, sources=frozenset({Source.SESSIONS}))
    found = await house.search(OLD, query=query)
    assert texts(found) == [OLD.chunk.text]
    assert newer(found) == [house.place("Max")]


async def test_a_change_of_the_facts_counts_at_once(house) -> None:
    outdated = house.around(OLD)
    assert texts(await outdated.search(ASKED, OWNER))[0] == MAX.text
    later = replace(MAX, text="The user's dog is called Maximilian.")
    await house.know(REX, later)
    assert texts(await outdated.search(ASKED, OWNER))[0] == later.text


async def test_of_a_row_of_changes_the_last_one_holds(facts_db) -> None:
    house = House(facts_db)
    first = replace(REX, superseded_by="eeee", noted_at=NOW - timedelta(days=9))
    middle = fact("eeee", "The user's dog is called Tim.", "bbbb")
    await house.know(first, middle, MAX)
    assert texts(await house.search(OLD)) == [MAX.text, OLD.chunk.text]


async def test_a_search_answers_without_facts_that_cannot_be_read(facts_db) -> None:
    house = Broken(facts_db)
    await house.know(REX, MAX)
    assert (await house.search(OLD)).hits == (OLD,)
