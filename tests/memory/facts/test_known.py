"""Facts in memory: what they are found by, and what stands for what."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.fact import Category, Fact, FactSource, FactStatus
from agentd.memory.facts.known import Digests, Known, comparable, folded
from agentd.testing import FakeClock
from tests.memory.facts.books import MAX, REX

NOW = FakeClock().now()


def a_fact(fact_id="aaaa", text=REX, **fields):
    fact = Fact(fact_id, text, Category.PERSONAL, FactSource.EXTRACTED, 0.6, NOW, NOW)
    return replace(fact, **fields)


def over(fact_id, by, **fields):
    return a_fact(fact_id, f"{fact_id}.", status=FactStatus.SUPERSEDED, superseded_by=by, **fields)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (REX, " the  User’s dog is called “REX”!".replace("“", "").replace("”", ""), True),
        (REX, "User's dog is called Rex", True),
        ("Der Nutzer wohnt in Köln.", "der nutzer wohnt in Ko\u0308ln", True),
        ("ﬁve – or ５", "five - or 5", True),
        (REX, MAX, False),
        ("The user lent Paul 50 euros.", "Paul lent the user 50 euros.", False),
        ("The user is 4.", "The user is 4.5.", False),
        ("The user's age is -4", "The user's age is 4", False),
        ("用户的妹妹叫小红。", "用户的妹妹叫小明。", False),
    ],
)
def test_only_what_nobody_sees_makes_no_other_fact(one, other, same):
    assert (comparable(one) == comparable(other)) is same
    digests = Digests(b"k" * 32)
    assert (digests.of(one) == digests.of(other)) is same
    assert (Known([a_fact(text=one)]).saying(other) is not None) is same


@given(st.text())
def test_what_is_compared_is_compared_alike_again(text):
    assert comparable(comparable(text)) in (comparable(text), comparable(text).strip())
    assert len(Digests(b"k").of(text)) == 32


def test_hashes_are_useless_without_the_key():
    assert Digests(b"one").of(REX) != Digests(b"two").of(REX)


def test_what_holds_is_found_by_its_words_rather_than_what_is_proposed():
    waits = a_fact("bbbb", status=FactStatus.PROPOSED)
    known = Known([waits])
    assert known.saying(REX) == waits
    known.put(a_fact())
    assert known.saying(REX).id == "aaaa"
    for status in (FactStatus.SUPERSEDED, FactStatus.ENDED):
        assert Known([a_fact(status=status)]).saying(REX) is None
    known.remove("aaaa")
    assert known.saying(REX) == waits
    known.put(replace(waits, text=MAX))
    assert known.saying(REX) is None
    assert known.saying(MAX) is not None


def test_in_the_place_of_a_fact_stands_the_last_of_those_that_came_for_it():
    known = Known([over("a", "b"), over("b", "c"), a_fact("c")])
    assert [known.current(i).id for i in "abc"] == ["c", "c", "c"]
    known.put(a_fact("c", status=FactStatus.ENDED))
    assert known.current("a") is None
    known.put(Fact.tombstone("c", NOW))
    assert (known.current("a"), known.alive("c"), known.get("c").text) == (None, None, "")
    assert known.current("nobody") is None


def test_a_circle_of_successors_has_no_end_and_comes_to_one():
    known = Known([over("a", "b"), over("b", "a"), over("c", "c")])
    assert [known.current(i) for i in "abc"] == [None, None, None]
    assert {fact.id for fact in known.chain("a")} == {"a", "b"}


def test_the_history_of_a_fact_is_all_that_led_to_it_and_came_of_it():
    day = timedelta(days=1)
    known = Known(
        [
            a_fact("c", noted_at=NOW + 2 * day),
            over("b", "c", noted_at=NOW + day),
            over("a", "c"),
            a_fact("d"),
        ]
    )
    assert [fact.id for fact in known.chain("b")] == ["a", "b", "c"]
    assert known.chain("nobody") == ()


def test_what_has_come_to_its_end_is_known_by_the_time():
    plan = a_fact("plan", "A plan.", valid_to=NOW + timedelta(hours=1))
    known = Known([a_fact(), plan])
    assert known.ended(NOW) == ()
    assert known.ended(NOW + timedelta(hours=1)) == (plan,)
    known.put(replace(plan, status=FactStatus.ENDED))
    assert known.ended(NOW + timedelta(days=1)) == ()


def test_all_facts_are_one_tuple_as_long_as_none_changes():
    known = Known([a_fact()])
    assert known.all() is known.all()
    assert len(known) == len(list(known)) == 1
    before = known.all()
    known.put(a_fact("bbbb"))
    assert known.all() is not before


def test_to_put_in_what_is_held_already_changes_nothing():
    fact = a_fact()
    known = Known([fact])
    all_ = known.all()
    known.put(fact)
    assert known.all() is all_


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_letters_are_folded_like_all_others(text):
    assert folded(text + "x é") == f"{folded(text + 'x')} é"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["aaaa", "bbbb", "cccc", "dddd"]),
            st.integers(0, 3),
            st.sampled_from([FactStatus.ACTIVE, FactStatus.ENDED, None]),
        )
    )
)
def test_what_holds_comes_by_age_whatever_was_put_in_and_taken_out_before(steps):
    known = Known()
    for fact_id, days, status in steps:
        if status is None:
            known.remove(fact_id)
        else:
            known.put(a_fact(fact_id, status=status, noted_at=NOW + timedelta(days=days)))
    holding = [fact for fact in known if fact.status is FactStatus.ACTIVE]
    assert list(known.active()) == sorted(holding, key=lambda fact: (fact.noted_at, fact.id))
