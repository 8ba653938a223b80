"""What a search found, once it is known what holds now and what no longer does."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime

import pytest

from agentd.domain.fact import Category, Fact, FactSource, FactStatus, Provenance, Triple
from agentd.domain.memory import OWNERS, Chunk, Hit, Source
from agentd.domain.turn import MAIN
from agentd.domain.workspace import FACTS_PATH
from agentd.facts.page import parse
from agentd.facts.succession import Succession

THEN, NOW = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 20, tzinfo=UTC)
CHAT = "sessions/main.jsonl"
ASKED = "what is my dog called?"


def fact(fact_id, text, by="", *, value=None, seq=0, status=None) -> Fact:
    triple = Triple(*value) if value else None
    status = status or (FactStatus.SUPERSEDED if by else FactStatus.ACTIVE)
    until = None if status is FactStatus.ACTIVE else NOW
    since = THEN if by else NOW
    origin = Provenance(MAIN, seq) if seq else Provenance()
    return Fact(
        fact_id.ljust(8, "0"),
        text,
        Category.PERSONAL,
        FactSource.EXPLICIT,
        0.9,
        since,
        since,
        status,
        until,
        by.ljust(8, "0") if by else "",
        origin,
        triple,
    )


REX = fact("rex", "The user's dog is called Rex.", "max", value=("user", "dog name", "Rex"), seq=1)
MAX = fact("max", "The user's dog is called Max.", value=("user", "dog name", "Max"), seq=5)


def succession(*facts, rows=None) -> Succession:
    return Succession(facts, parse("").edited(facts).render(), rows)


def hit(text, path="memory/2026-11-02.md", line=1, score=0.9, day=None, last=0, newer="") -> Hit:
    source = Source.SESSIONS if path.startswith("sessions/") else Source.NOTES
    chunk = Chunk(path, line, last or line, text, source, OWNERS, day)
    return Hit(chunk, score, {}, newer)


def told(hits) -> list[tuple[str, int, str]]:
    return [(h.chunk.path, h.chunk.start_line, h.superseded_by) for h in hits]


def line_of(*facts, text) -> int:
    lines = parse("").edited(facts).render().split("\n")
    return next(number for number, line in enumerate(lines, 1) if text in line)


MAX_LINE = line_of(REX, MAX, text="Max")
REX_LINE = line_of(REX, MAX, text="Rex")
PLACE = f"{FACTS_PATH}:{MAX_LINE}"


def test_what_holds_stands_before_a_note_that_says_the_old_value() -> None:
    note = hit("Walked Rex, my dog", score=0.9)
    now = hit("The user's dog is called Max.", FACTS_PATH, MAX_LINE, 0.4)
    found = succession(REX, MAX).arranged([note, now], ASKED, {})
    assert told(found) == [(FACTS_PATH, MAX_LINE, ""), ("memory/2026-11-02.md", 1, PLACE)]
    assert [h.score for h in found] == [0.9, 0.9]


def test_of_a_switch_what_is_used_now_holds_and_not_the_denial() -> None:
    old = fact("vim", "The user uses Vim.", "novim", value=("user", "uses", "Vim"), seq=1)
    denial = fact(
        "novim", "The user no longer uses Vim.", value=("user", "no longer uses", "Vim"), seq=5
    )
    new = fact("emacs", "The user uses Emacs.", value=("user", "uses", "Emacs"), seq=5)
    note = hit("[user] I use Vim.", CHAT, 1)
    found = succession(old, denial, new).arranged([note], "what do I use?", {})
    assert [h.chunk.text for h in found] == ["The user uses Emacs.", "[user] I use Vim."]
    elsewhere = fact("emacs", "The user uses Emacs.", value=("user", "uses", "Emacs"), seq=6)
    found = succession(old, denial, elsewhere).arranged([note], "what do I use?", {})
    assert [h.chunk.text for h in found] == ["The user no longer uses Vim.", "[user] I use Vim."]


def test_what_holds_is_put_in_front_if_it_was_not_found() -> None:
    other, note = hit("a dog was called at noon", line=3), hit("my dog is called Rex", score=0.5)
    found = succession(REX, MAX).arranged([other, note], ASKED, {})
    assert told(found) == [
        ("memory/2026-11-02.md", 3, ""),
        (FACTS_PATH, MAX_LINE, ""),
        ("memory/2026-11-02.md", 1, PLACE),
    ]
    assert found[1].chunk.text == MAX.text
    assert (found[1].score, found[1].scores) == (0.5, {"current": 1.0})
    unwanted = succession(REX, MAX).arranged([note], ASKED, {}, adds=False)
    assert told(unwanted) == [("memory/2026-11-02.md", 1, PLACE)]


def test_what_holds_is_not_moved_down_and_names_nothing_newer() -> None:
    now = hit(MAX.text, FACTS_PATH, MAX_LINE, newer=f"{CHAT}:1")
    note = hit("[user] my dog is called Rex", CHAT)
    found = succession(REX, MAX).arranged([now, note], ASKED, {})
    assert told(found) == [(FACTS_PATH, MAX_LINE, ""), (CHAT, 1, PLACE)]


def test_the_line_of_the_old_fact_on_the_page_is_past() -> None:
    old = hit("Until 2026-11-20: The user's dog is called Rex.", FACTS_PATH, REX_LINE)
    found = succession(REX, MAX).arranged([old], ASKED, {})
    assert told(found) == [(FACTS_PATH, MAX_LINE, ""), (FACTS_PATH, REX_LINE, PLACE)]


def test_a_row_that_a_fact_was_said_in_is_known_whatever_its_words_are() -> None:
    rows = {REX.id: [Provenance(MAIN, 9)]}
    first = hit("[user] we named the puppy after the king", CHAT, 1)
    again = hit("[user] hey, that is him", CHAT, 8, last=9)
    found = succession(REX, MAX, rows=rows).arranged([first, again], ASKED, {})
    assert [h.superseded_by for h in found] == ["", PLACE, PLACE]


@pytest.mark.parametrize(
    "text",
    [
        "Rex fixed the printer",
        "my dog is called often",
        "King Rex lived long ago",
    ],
)
def test_what_does_not_repeat_the_past_stays_as_it_is(text) -> None:
    hits = (hit(text),)
    assert succession(REX, MAX).arranged(hits, ASKED, {}) == hits


def test_what_tells_of_the_change_is_not_past_but_the_fact_answers_first() -> None:
    both = hit("my dog is not called Rex any more but Max")
    found = succession(REX, MAX).arranged([both], ASKED, {})
    assert told(found) == [(FACTS_PATH, MAX_LINE, ""), ("memory/2026-11-02.md", 1, "")]
    assert succession(REX, MAX).arranged([hit(MAX.text)], ASKED, {}) == (hit(MAX.text),)


def test_a_hit_found_for_what_else_it_says_stays_first() -> None:
    hits = (hit("my dog is called Rex and my cat is called Tom"),)
    assert succession(REX, MAX).arranged(hits, "what is my cat called?", {}) == hits


def test_another_fact_that_holds_is_not_past_for_its_words() -> None:
    third = fact("old", "The dog that the user had as a child was called Rex.")
    line = line_of(REX, MAX, third, text="child")
    hits = (hit(third.text, FACTS_PATH, line),)
    assert succession(REX, MAX, third).arranged(hits, ASKED, {}) == hits


def test_the_last_of_several_versions_counts() -> None:
    one = fact("one", "The user lives in Lisbon.", "two", value=("user", "home", "Lisbon"))
    two = fact("two", "The user lives in Porto.", "three", value=("user", "home", "Porto"))
    three = fact("three", "The user lives in Faro.", value=("user", "home", "Faro"))
    hits = [hit("I live in Lisbon"), hit("I live in Porto", line=2)]
    found = succession(one, two, three).arranged(hits, "where do I live?", {})
    assert [h.chunk.text for h in found] == [three.text, "I live in Lisbon", "I live in Porto"]


def test_what_came_to_be_so_again_is_not_past() -> None:
    again = fact("max2", MAX.text, value=("user", "dog name", "Max"))
    first = fact("max1", MAX.text, "rex1", value=("user", "dog name", "Max"))
    between = fact("rex1", REX.text, "max2", value=("user", "dog name", "Rex"))
    hits = (hit("my dog is called Max"),)
    assert succession(first, between, again).arranged(hits, ASKED, {}) == hits


@pytest.mark.parametrize("status", [FactStatus.FORGOTTEN, FactStatus.SUPERSEDED])
def test_where_nothing_holds_any_more_nothing_is_put_in_front(status) -> None:
    gone = fact("max", "", status=status)
    known = succession(REX, gone)
    hits = (hit("my dog is called Rex"),)
    assert known.arranged(hits, ASKED, {}) == hits
    assert not known


def test_a_value_that_grew_is_past_without_what_it_grew_by() -> None:
    old = fact("old", "The user lives in Berlin.", "new", value=("user", "home", "Berlin"))
    new = fact("new", "The user lives in Berlin Mitte.", value=("user", "home", "Berlin Mitte"))
    hits = [hit("I live in Berlin Mitte", line=2), hit("I live in Berlin")]
    found = succession(old, new).arranged(hits, "where do I live?", {})
    assert [h.chunk.text for h in found] == [new.text, hits[0].chunk.text, hits[1].chunk.text]
    assert [bool(h.superseded_by) for h in found] == [False, False, True]


def test_a_denial_does_not_make_its_own_words_past() -> None:
    old = fact("old", "The user likes coffee.", "new", value=("user", "likes", "coffee"), seq=1)
    new = fact(
        "new", "The user no longer likes coffee.", value=("user", "no longer likes", "coffee")
    )
    hits = [hit("I no longer like coffee"), hit("[user] I like coffee", CHAT, 1)]
    found = succession(old, new).arranged(hits, "do I like coffee?", {})
    assert [h.chunk.text for h in found] == [hits[0].chunk.text, new.text, hits[1].chunk.text]


def test_facts_without_a_triple_are_told_apart_by_their_words() -> None:
    old = fact("old", "The user's flight to Oslo leaves on May 3.", "new")
    new = fact("new", "The user's flight to Oslo leaves on May 14.")
    known = succession(old, new)
    oslo, rome = hit("flight to Oslo on May 3"), hit("flight to Rome on May 3")
    assert known.arranged([oslo], "flight", {})[1].superseded_by
    assert known.arranged([rome], "flight", {}) == (rome,)


@pytest.mark.parametrize(
    ("text", "line", "read", "is_past"),
    [
        ("[user] my dog is called Rex", 3, 0, True),
        ("[user] my dog is called Rex", 7, 0, False),
        ("[user] my dog is called Rex", 7, 7, True),
        ("[user] is my dog called Rex?", 7, 0, True),
        ("[assistant] your dog is called Rex", 7, 0, True),
    ],
)
def test_what_the_user_said_since_counts_until_facts_were_read_from_it(
    text, line, read, is_past
) -> None:
    [*_, last] = succession(REX, MAX).arranged([hit(text, CHAT, line)], ASKED, {CHAT: read})
    assert bool(last.superseded_by) is is_past


@pytest.mark.parametrize(("day", "is_past"), [(20, True), (21, False)])
def test_in_another_session_the_day_tells_what_was_said_since(day, is_past) -> None:
    said = hit("[user] my dog is called Rex", "sessions/other.jsonl", 7, day=date(2026, 11, day))
    [*_, last] = succession(REX, MAX).arranged([said], ASKED, {})
    assert bool(last.superseded_by) is is_past


def test_a_search_among_a_thousand_facts_takes_no_time_to_speak_of() -> None:
    facts = [REX, MAX]
    for n in range(500):
        what = ("user", f"thing{n} name", f"Old{n}")
        facts.append(fact(f"o{n}", f"The user's thing{n} is called Old{n}.", f"n{n}", value=what))
        facts.append(fact(f"n{n}", f"The user's thing{n} is called New{n}."))
    known = succession(*facts)
    hits = [hit(f"my dog is called Rex, and my thing{n} is old", line=n) for n in range(10)]
    best = min(_seconds(known, hits) for _ in range(5))
    assert best < 0.02, "far above what it takes, for a busy machine"


def _seconds(known, hits) -> float:
    began = time.perf_counter()
    assert known.arranged(hits, ASKED, {})[0].chunk.text == MAX.text
    return time.perf_counter() - began
