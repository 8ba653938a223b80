"""Which facts hang on which."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentd.core.fact import Category, Fact, FactSource, Triple
from agentd.memory.facts.links import FactLinks, terms

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def fact(fact_id, subject, relation, value, text="") -> Fact:
    said = text or f"{subject}, {relation}: {value}."
    source = FactSource.EXPLICIT
    triple = Triple(subject, relation, value)
    return Fact(fact_id, said, Category.PERSONAL, source, 0.9, NOW, NOW, triple=triple)


SISTER = fact("sister", "user", "sister", "Klara Voss")
JOB = fact("job", "Klara Voss", "employer", "Testo")
CITY = fact("city", "Testo", "city", "Titisee")
TEA = fact("tea", "Klara Voss", "drinks", "tea")
DOG = fact("dog", "user", "dog name", "Rex")
FOOD = fact("food", "user's dog", "eats", "fish")
ALL = (SISTER, JOB, CITY, TEA, DOG, FOOD)


def ids(facts) -> set[str]:
    return {fact.id for fact in facts}


def best(links: FactLinks, question: str, found=(), cosines=None) -> tuple[str, ...]:
    way = links.ways(question, found, links.named(question), cosines or {})[0]
    return tuple(fact.id for fact in way.facts)


def test_what_is_said_of_a_value_hangs_on_the_fact() -> None:
    links = FactLinks(ALL)
    assert ids(links.around([SISTER], steps=1)) == {"sister", "job", "tea"}
    assert ids(links.around([SISTER], steps=2)) == {"sister", "job", "tea", "city"}


def test_what_else_is_said_of_the_subject_hangs_on_the_fact() -> None:
    assert ids(FactLinks(ALL).around([TEA], steps=1)) == {"tea", "job"}


def test_no_step_goes_through_the_user() -> None:
    of_user = [fact(f"u{n}", "user", f"thing {n}", f"name {n}") for n in range(5)]
    back = fact("back", "Klara Voss", "brother", "the user")
    manual = fact("manual", "Klara Voss", "reads", "user manual")
    links = FactLinks([*of_user, SISTER, back, manual])
    assert ids(links.around([SISTER])) == {"sister", "back", "manual"}
    assert ids(links.around([back, manual])) == {"back", "manual"}


@pytest.mark.parametrize(
    "subject", ["user's sister", "the user’s sister", "my sister", "My Sister"]
)
def test_a_relation_with_one_value_names_it(subject) -> None:
    mood = fact("mood", subject, "mood", "good")
    links = FactLinks([SISTER, JOB, mood])
    assert "mood" in ids(links.around([SISTER], steps=1))
    assert ids(links.around([mood], steps=1)) == {"mood", "job"}


def test_a_relation_with_two_values_names_none_of_them() -> None:
    mood = fact("mood", "user's sister", "mood", "good")
    other = fact("other", "user", "sister", "Berta")
    links = FactLinks([SISTER, JOB, mood, other])
    assert ids(links.around([mood])) == {"mood"}
    links.remove("other")
    assert ids(links.around([mood], steps=1)) == {"mood", "job"}


def test_the_name_of_something_is_a_name_of_it() -> None:
    assert ids(FactLinks([DOG, FOOD]).around([DOG])) == {"dog", "food"}


def test_a_name_may_be_shorter_or_longer_elsewhere_while_it_is_clear_who_is_meant() -> None:
    short, long = fact("short", "Klara", "drinks", "tea"), fact("long", "Klara Voss", "home", "Ulm")
    assert ids(FactLinks([SISTER, short]).around([SISTER])) == {"sister", "short"}
    brief = fact("sister", "user", "sister", "Klara")
    assert ids(FactLinks([brief, long]).around([brief])) == {"sister", "long"}
    other = fact("other", "Klara Bohm", "home", "Bonn")
    assert ids(FactLinks([brief, long, other]).around([brief])) == {"sister"}
    assert ids(FactLinks([SISTER, long, short]).around([SISTER])) == {"sister", "long"}


def test_names_are_joined_over_several_relations() -> None:
    far = fact("far", "my sister's employer", "parking", "lot 7")
    links = FactLinks([SISTER, JOB, CITY, far])
    assert ids(links.around([far], steps=1)) == {"far", "city"}
    assert "far" in ids(links.around([JOB], steps=1))


def test_names_that_stand_for_each_other_in_a_ring_end() -> None:
    ring = [
        fact("a", "user", "friend", "user's mate"),
        fact("b", "user", "mate", "user's friend"),
        fact("c", "user's friend", "home", "Ulm"),
    ]
    assert FactLinks(ring).around(ring)


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("How is my sister?", {"sister"}),
        ("Has Klara called?", {"sister", "job", "tea"}),
        ("Wie geht es meiner SISTERS?", {"sister"}),
        ("Who works at Testo?", {"job", "city"}),
        ("Is the weather good?", set()),
        ("", set()),
    ],
)
def test_a_question_calls_facts_by_their_names(question, found) -> None:
    assert ids(FactLinks((SISTER, JOB, CITY, TEA)).named(question)) == found


def test_scripts_without_blanks_have_names_too() -> None:
    sister = fact("s", "user", "妹妹", "小红", "用户的妹妹叫小红。")
    job = fact("j", "小红", "公司", "华星", "小红在华星工作。")
    links = FactLinks([sister, job])
    assert ids(links.named("我妹妹在哪里工作？")) == {"s"}
    assert best(links, "我妹妹在哪里工作？") == ("s", "j")


def test_the_way_whose_facts_say_most_of_the_question_is_the_best() -> None:
    links = FactLinks(ALL)
    assert best(links, "In which city is the employer of my sister?") == ("sister", "job", "city")
    assert best(links, "What does my sister drink?") == ("sister", "tea")


def test_nearness_in_meaning_decides_where_words_do_not() -> None:
    question = "Where does my sister earn a living?"
    links = FactLinks(ALL)
    near = {"job": 0.6, "tea": 0.1, "sister": 0.4}
    assert best(links, question, cosines=near) == ("sister", "job")
    assert best(links, question, cosines=near | {"tea": 0.8}) == ("sister", "tea")


def test_a_way_may_begin_with_what_the_index_found() -> None:
    question = "What is the town like?"
    assert best(FactLinks(ALL), question, [JOB], {"job": 0.1, "city": 0.9}) == ("job", "city")


def test_a_name_that_stands_in_a_question_by_chance_begins_no_way() -> None:
    watch = fact("watch", "user", "watch", "a Junghans")
    links, question = (
        FactLinks([watch, *ALL]),
        "Who painted the picture of that famous night watch?",
    )
    named = links.named(question)
    assert ids(named) == {"watch"}
    assert links.ways(question, (), named, {"watch": 0.1}) == []
    assert links.ways(question, (), named, {"watch": 0.5})
    assert links.ways(question, (), named, {}) == []
    assert best(links, "What watch does the user wear?") == ("watch",)
    assert links.ways(question, [TEA], named, {"watch": 0.1})[0].facts[0] is TEA


def test_no_fact_stands_twice_in_a_way() -> None:
    ring = [fact("a", "Ann", "likes", "Bob"), fact("b", "Bob", "likes", "Ann")]
    ways = FactLinks(ring).ways("Ann or Bob?", ring, (), {})
    assert all(len(ids(way.facts)) == len(way.facts) for way in ways)
    assert max(len(way.facts) for way in ways) == 2


def test_a_fact_without_a_triple_is_held_and_joined_to_nothing() -> None:
    bare = replace(SISTER, triple=None)
    links = FactLinks([bare, JOB])
    assert len(links) == 2
    assert ids(links.around([bare])) == {"sister"}
    assert links.ways("x", [bare], (), {})[0].facts == (bare,)


def test_what_is_looked_at_for_one_question_is_bounded() -> None:
    crowd = [fact(f"c{n}", "Klara Voss", f"thing {n}", f"value {n}") for n in range(900)]
    links = FactLinks([SISTER, *crowd])
    assert len(links.around([SISTER], most=100)) == 100
    assert len(links.named("Klara", most=100)) == 100


NAMES = st.sampled_from(["user", "Ann", "Ann Lee", "Bob", "user's aunt", "Ann's boss", "my aunt"])
FACTS = st.builds(
    fact,
    st.sampled_from("abcdef"),
    NAMES,
    st.sampled_from(["aunt", "boss", "home"]),
    NAMES,
)


@given(st.lists(FACTS, max_size=12), st.sets(st.sampled_from("abcdef")))
def test_facts_that_come_and_go_leave_what_a_fresh_start_would_have(said, gone) -> None:
    links = FactLinks(said)
    for fact_id in gone:
        links.remove(fact_id)
    left = {one.id: one for one in said if one.id not in gone}
    fresh = FactLinks(left.values())
    question = "Ann's boss and my aunt at home"
    assert len(links) == len(fresh)
    assert ids(links.named(question)) == ids(fresh.named(question))
    starts = list(left.values())
    ways = {(w.facts, round(w.score, 6)) for w in links.ways(question, starts, (), {})}
    assert ways == {(w.facts, round(w.score, 6)) for w in fresh.ways(question, starts, (), {})}


def test_two_forms_of_a_word_share_its_first_letters() -> None:
    assert terms("works") & terms("work")
    assert terms("Arbeitgeber") & terms("arbeitet")
    assert not terms("cat") & terms("car")
