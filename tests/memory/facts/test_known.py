"""Facts in memory: what they are found by, and what stands for what."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentd.core.fact import Category, Fact, FactSource, FactStatus
from agentd.memory.facts.known import Digests, Known, comparable, fold_text
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
    assert (Known.of([a_fact(text=one)]).saying(other) is not None) is same


@given(st.text())
def test_what_is_compared_is_compared_alike_again(text):
    assert comparable(comparable(text)) in (comparable(text), comparable(text).strip())
    assert len(Digests(b"k").of(text)) == 32


def test_hashes_are_useless_without_the_key():
    assert Digests(b"one").of(REX) != Digests(b"two").of(REX)


def test_what_holds_is_found_by_its_words_rather_than_what_is_proposed():
    waits = a_fact("bbbb", status=FactStatus.PROPOSED)
    known = Known.of([waits])
    assert known.saying(REX) == waits
    both = known.after([a_fact()])
    assert both.saying(REX).id == "aaaa"
    for status in (FactStatus.SUPERSEDED, FactStatus.ENDED):
        assert Known.of([a_fact(status=status)]).saying(REX) is None
    assert both.after(removed=["aaaa"]).saying(REX) == waits
    other = known.after([replace(waits, text=MAX)])
    assert other.saying(REX) is None
    assert other.saying(MAX) is not None


def test_in_the_place_of_a_fact_stands_the_last_of_those_that_came_for_it():
    known = Known.of([over("a", "b"), over("b", "c"), a_fact("c")])
    assert [known.current(i).id for i in "abc"] == ["c", "c", "c"]
    known = known.after([a_fact("c", status=FactStatus.ENDED)])
    assert known.current("a") is None
    known = known.after([Fact.tombstone("c", NOW)])
    assert (known.current("a"), known.alive("c"), known.get("c").text) == (None, None, "")
    assert known.current("nobody") is None


def test_a_circle_of_successors_has_no_end_and_comes_to_one():
    known = Known.of([over("a", "b"), over("b", "a"), over("c", "c")])
    assert [known.current(i) for i in "abc"] == [None, None, None]
    assert {fact.id for fact in known.chain("a")} == {"a", "b"}


def test_the_history_of_a_fact_is_all_that_led_to_it_and_came_of_it():
    day = timedelta(days=1)
    known = Known.of(
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
    known = Known.of([a_fact(), plan])
    assert known.ended(NOW) == ()
    assert known.ended(NOW + timedelta(hours=1)) == (plan,)
    known = known.after([replace(plan, status=FactStatus.ENDED)])
    assert known.ended(NOW + timedelta(days=1)) == ()


def test_all_facts_are_one_tuple():
    known = Known.of([a_fact()])
    assert known.all is known.all
    assert len(known) == len(list(known)) == 1


def test_the_id_of_a_forgotten_fact_stays_dead():
    known = Known.of([a_fact(), a_fact("bbbb", MAX)]).after([Fact.tombstone("aaaa", NOW)])
    assert known.after([a_fact()]).alive("aaaa") is None
    assert known.after([a_fact()]).saying(REX) is None


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_letters_are_folded_like_all_others(text):
    assert fold_text(text + "x é") == f"{fold_text(text + 'x')} é"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["aaaa", "bbbb", "cccc", "dddd"]),
        st.integers(0, 3),
        st.sampled_from([*FactStatus, None]),  # None: it is removed
        st.sampled_from([REX, MAX]),
    )
)


@given(STEPS)
def test_each_state_is_as_if_made_at_once_and_stays_as_it_was(steps):
    known, states = Known(), []
    expected: dict[str, Fact] = {}
    for fact_id, days, status, text in steps:
        at = NOW + timedelta(days=days)
        fact = a_fact(fact_id, text, status=status, noted_at=at, valid_to=at)
        if status is None:
            known = known.after(removed=[fact_id])
            expected.pop(fact_id, None)
        elif fact_id not in expected or expected[fact_id].is_alive:
            known = known.after([fact])
            expected[fact_id] = fact
        states.append((known, dict(expected)))
    for state, facts in states:
        made = Known.of(facts.values())
        assert {fact.id: fact for fact in state.all} == facts
        assert state.active == made.active
        assert list(state.active) == sorted(state.active, key=lambda f: (f.noted_at, f.id))
        for text in (REX, MAX):
            assert set(state.worded(text)) == set(made.worded(text))
        for days in range(4):
            now = NOW + timedelta(days=days)
            assert state.ended(now) == made.ended(now)
