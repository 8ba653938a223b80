"""In what near sentences differ."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.statements.differences import differs, is_denial, is_exchanged
from tests.growth import QUADRATIC, growth

NONE: set[str] = set()
ROWS = [
    ("The user's flight is on May 3.", "The user's flight is on May 4.", {"numbers"}),
    ("The user's flight is on May 3.", "The user's flight is on June 3.", {"dates"}),
    ("Flight on May 3", "Flight on 3 May", NONE),
    ("Flight on May 3rd", "Flight on May 3", NONE),
    ("Flight on 2026-05-03", "Flight on 2026-05-04", {"numbers"}),
    ("Flight on 2026-05-03", "Flight on 3.5.2026", NONE),
    ("Flight on 3. Mai", "Flight on 3. Juni", {"dates"}),
    ("Meeting on Monday", "Meeting on Tuesday", {"dates"}),
    ("Meeting on Monday", "Meeting on montag", NONE),
    ("Meeting at 3 pm", "Meeting at 15:00", NONE),
    ("Meeting at 3 pm", "Meeting at 3 am", {"numbers"}),
    ("Meeting at 15 Uhr", "Meeting at 15:00", NONE),
    ("Meeting tomorrow", "Meeting today", {"dates"}),
    ("The user may be late", "The user is late in May", {"dates"}),
    ("The user is allergic to nuts.", "The user is no longer allergic to nuts.", {"negation"}),
    ("The user likes tea.", "The user does not like tea.", {"negation"}),
    ("The user likes tea.", "The user doesn't like tea.", {"negation"}),
    ("The user likes tea.", "The user dislikes tea.", {"negation"}),
    ("The user likes tea.", "The user loves tea.", NONE),
    ("The user smokes.", "The user never smokes.", {"negation"}),
    ("The user smokes.", "The user stopped smoking.", {"negation"}),
    ("Use tabs.", "Don't use tabs.", {"negation"}),
    ("Use tabs.", "dont use tabs", {"negation"}),
    ("Ich mag Tee.", "Ich mag keinen Tee.", {"negation"}),
    ("Ich rauche.", "Ich rauche nicht.", {"negation"}),
    ("The user prefers dark mode.", "The user prefers light mode.", {"negation"}),
    ("Backups are enabled.", "Backups are disabled.", {"negation"}),
    ("The user's dog is called Max.", "The user's dog is called Rex.", {"names"}),
    ("the user's dog is called max", "the user's dog is called rex", {"names"}),
    ("The user's dog is called Rex.", "The user's dog is called rex.", NONE),
    ("The user lives in Berlin.", "The user lives in Hamburg.", {"names"}),
    ("i live in berlin", "i live in hamburg", {"names"}),
    ("Rex is the user's dog.", "Max is the user's dog.", {"names"}),
    ("Tim and Lea are the user's children.", "The user's children are Tim and Lea.", NONE),
    ("The user uses vim", "The user uses emacs", {"names"}),
    ("Atlas uses PostgreSQL.", "Atlas uses MySQL.", {"names"}),
    ("The user's blood type is A-.", "The user's blood type is A.", {"names"}),
    ("The user's blood type is A-.", "The user's blood type is A+.", {"names"}),
    ("The user's flat is small - and old.", "The user's flat is small and old.", NONE),
    ("Project Atlas uses port 80.", "The port of Atlas is 80.", NONE),
    ("Atlas is at version 2.1.", "Atlas is at version 2.2.", {"numbers"}),
    ("Atlas is at v2.1", "Atlas is at v2.1.0", {"numbers"}),
    ("The user runs 10 km.", "The user runs 10 mi.", {"numbers"}),
    ("The user runs 10 km.", "The user runs 10 kilometers.", NONE),
    ("It costs $5.", "It costs 5 dollars.", NONE),
    ("It costs $5.", "It costs €5.", {"numbers"}),
    ("It costs 1,500 euros.", "It costs 1500 euros.", NONE),
    ("The user has two dogs.", "The user has 2 dogs.", NONE),
    ("The user has two dogs.", "The user has three dogs.", {"numbers"}),
    ("The port is 8080.", "The port is 9090.", {"numbers"}),
    ("The code is 007.", "The code is 7.", NONE),
    ("The user's phone is 555-1234.", "The user's phone is 555-9876.", {"numbers"}),
    ("The user plays the piano.", "The user plays piano.", NONE),
    ("", "", NONE),
]


@pytest.mark.parametrize(("one", "other", "kinds"), ROWS)
def test_the_kinds_of_difference_are_found_both_ways(one: str, other: str, kinds: set[str]) -> None:
    assert differs(one, other) == kinds
    assert differs(other, one) == kinds


@pytest.mark.parametrize(
    ("one", "other", "denies"),
    [
        ("The user is allergic to nuts.", "The user is no longer allergic to nuts.", True),
        ("The user likes tea.", "The user does not like tea.", True),
        ("The user uses Vim.", "The user no longer uses Vim.", True),
        ("The user smokes.", "The user never smokes.", True),
        ("The user is allergic to nuts.", "The user is no longer allergic to cats.", False),
        ("The user likes tea.", "The user likes coffee.", False),
        ("The user likes tea.", "The user likes tea.", False),
        ("The user does not like tea.", "The user does not like milk.", False),
    ],
)
def test_a_denial_is_the_same_but_for_a_not(one: str, other: str, denies: bool) -> None:
    assert is_denial(one, other) is denies
    assert is_denial(other, one) is denies


@pytest.mark.parametrize(
    ("one", "other", "exchanged"),
    [
        ("The user prefers tea over coffee.", "The user prefers coffee over tea.", True),
        ("The key is in the top drawer.", "The key is in the bottom drawer.", True),
        ("The user drinks coffee every morning.", "Every morning the user drinks coffee.", False),
        ("The user plays the piano.", "The user plays piano.", False),
        ("The user likes tea.", "The user likes tea", False),
    ],
)
def test_an_exchanged_word_is_seen(one: str, other: str, exchanged: bool) -> None:
    assert is_exchanged(one, other) is exchanged


@given(st.text(max_size=300), st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_no_texts_raise_and_order_does_not_matter(one: str, other: str) -> None:
    assert differs(one, other) == differs(other, one)
    assert differs(one, one) == frozenset()
    is_denial(one, other)
    is_exchanged(one, other)


@pytest.mark.parametrize("piece", ["1.", "not ", "Rex ", "may ", "in a ", "3 pm "])
def test_time_grows_with_the_texts_and_no_faster(piece: str) -> None:
    def work(size: int) -> object:
        return differs(piece * (size // len(piece)), piece * (size // len(piece)) + "x")

    assert growth(work, 8_000) < QUADRATIC
