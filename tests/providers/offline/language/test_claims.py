"""What sentences are read as; what must give nothing stands in the chatty corpus."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.domain.fact import Category
from agentd.providers.offline.language.claims import LONGEST, claims, claims_of, thing
from tests.growth import QUADRATIC, growth

SUNDAY = date(2026, 11, 22)
SAID = [
    ("My name is Anna Schmidt.", ["The user's name is Anna Schmidt."]),
    ("I'm 34 years old", ["The user is 34 years old."]),
    ("my birthday is on 3 May 1990", ["The user's birthday is 3 May 1990."]),
    ("my dog is called rex", ["The user's dog is called rex."]),
    ("our cat’s name is Mia", ["The user's cat is called Mia."]),
    ("I have two dogs, Max and Rex", ["The user has two dogs, Max and Rex."]),
    ("My bike is called Flash", ["The user's bike is called Flash."]),
    (
        "My dog is called Rex and my cat is called Mia.",
        ["The user's dog is called Rex.", "The user's cat is called Mia."],
    ),
    (
        "My sister is called Klara and works at Roche",
        ["The user's sister is called Klara.", "The user's sister Klara works at Roche."],
    ),
    ("I live in Rome and work for Fiat.", ["The user lives in Rome.", "The user works at Fiat."]),
    ("I want to quit and live in Rome", []),
    ("I work at Bosch in Bonn as an engineer", ["The user works at Bosch in Bonn."]),
    (
        "I speak German, English and a little French",
        ["The user speaks German.", "The user speaks English.", "The user speaks French."],
    ),
    ("I'm a software engineer at Siemens", ["The user is a software engineer at Siemens."]),
    ("My blood type is AB-.", ["The user's blood type is AB-."]),
    ("my email is anna@example.org", ["The user's email is anna@example.org."]),
    ("I really love hiking in the Alps.", ["The user likes hiking in the Alps."]),
    ("I prefer coffee to tea.", ["The user prefers coffee over tea."]),
    ("my favorite band is The Beatles", ["The user's favourite band is The Beatles."]),
    (
        "I am severely allergic to peanuts and shellfish",
        ["The user is allergic to peanuts.", "The user is allergic to shellfish."],
    ),
    ("I use Obsidian for my notes", ["The user uses Obsidian for their notes."]),
    ("Atlas deadline moved to June 15", ["The deadline of Atlas is June 15."]),
    ("We decided to use SQLite for the cache", ["The user decided to use SQLite for the cache."]),
    ("don't ever email my boss", []),
    ("please always use metric units", ["Always use metric units."]),
    ("From now on, push to main", ["From now on, push to main."]),
    ("My flight to Rome was moved to May 4", ["The user's flight to Rome is on May 4."]),
    ("Unsere Katze heißt Mia.", ["The user's cat is called Mia."]),
    (
        "Ich wohne in Ulm und arbeite bei Bosch",
        ["The user lives in Ulm.", "The user works at Bosch."],
    ),
    ("Ich bin allergisch gegen Nüsse", ["The user is allergic to nuts."]),
    ("Ich trinke keinen Kaffee mehr", ["The user does not drink coffee."]),
    ("Meine Lieblingsfarbe ist Blau", ["The user's favourite colour is Blau."]),
    ("My dog is called Rex, as I said.", ["The user's dog is called Rex."]),
    ("I like jazz, but my wife prefers rock", ["The user likes jazz."]),
]


@pytest.mark.parametrize(("said", "told"), SAID)
def test_a_statement_is_told_in_the_third_person(said, told):
    assert [claim.text for claim in claims(said, SUNDAY)] == told


@pytest.mark.parametrize("said", [said for said, _ in SAID])
def test_a_claim_told_is_read_back_as_the_same_triple(said):
    for claim in claims(said, SUNDAY):
        again = claims_of(claim.text)
        if claim.is_single:
            assert (claim.slot, claim.triple.value) in [(c.slot, c.triple.value) for c in again]


@pytest.mark.parametrize(
    ("said", "triple", "is_single", "is_denial", "category"),
    [
        ("I live in Berlin", ("user", "home", "Berlin"), True, False, Category.PERSONAL),
        ("My wife is called Ana", ("user", "wife name", "Ana"), True, False, Category.PERSONAL),
        ("My son is called Tim", ("user", "son name", "Tim"), False, False, Category.PERSONAL),
        ("My son is called Tim now", ("user", "son name", "Tim"), True, False, Category.PERSONAL),
        ("I like tea", ("user", "likes", "tea"), False, False, Category.PREFERENCE),
        ("I hate tea", ("user", "dislikes", "tea"), False, True, Category.PREFERENCE),
        ("Always use metric units", ("user", "instruction", "Always use metric units"), False, False, Category.INSTRUCTION),
        ("The deadline for Atlas is June 1", ("Atlas", "deadline", "June 1"), True, False, Category.PROJECT),
    ],
)  # fmt: skip
def test_a_claim_has_its_triple_and_its_kind(said, triple, is_single, is_denial, category):
    [claim] = claims(said)
    found = (claim.triple.subject, claim.triple.relation, claim.triple.value)
    assert (found, claim.is_single, claim.is_denial, claim.category) == (
        triple,
        is_single,
        is_denial,
        category,
    )


@pytest.mark.parametrize(
    "said", ["I live in Titisee-Neustadt.", "My boss is Petra.", "Ich arbeite bei Hasselblad"]
)
def test_what_is_meant_to_be_kept_is_believed_more_than_chatter(said):
    assert claims(said) == ()
    assert len(claims(said, is_meant=True)) == 1


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("the boiler code is 4417", ("user", "boiler code", "4417")),
        ("The user's wifi is FritzNest", ("user", "wifi", "FritzNest")),
        ("the headquarters of Testo is Titisee-Neustadt", None),
        ("the meeting is 4417", None),
        ("the sky is blue", None),
    ],
)
def test_the_one_thing_that_a_sentence_names(sentence, found):
    triple = thing(sentence)
    assert (triple and (triple.subject, triple.relation, triple.value)) == found


def test_a_span_is_where_the_sentence_stands():
    text = "Good morning!\n- btw, my dog is called Rex. Can you help?"
    [claim] = claims(text)
    assert text[claim.start : claim.end] == "btw, my dog is called Rex."


def test_what_follows_a_quote_or_code_is_read():
    text = "> I live in Rome\n\n```\nI live in Paris\n```\nI live in Berlin."
    assert [claim.text for claim in claims(text)] == ["The user lives in Berlin."]


@given(st.lists(st.sampled_from([s for s, _ in SAID] + ['"', "```", "> ", "\n", "(", "’", ": "])))
@settings(max_examples=60, deadline=None)
def test_spans_lie_in_the_text_whatever_stands_beside(parts):
    text = " ".join(parts)
    for claim in claims(text, SUNDAY):
        assert 0 <= claim.start < claim.end <= len(text)
        assert "\x00" not in claim.text


@given(st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_text_can_be_read(text):
    for claim in (*claims(text, SUNDAY), *claims_of(text)):
        assert claim.text


@pytest.mark.parametrize("piece", ["my dog is called Rex and ", "“", "my dog. ", "`", "'a "])
def test_time_grows_with_the_text_and_no_faster(piece):
    assert growth(lambda size: claims(piece * (size // len(piece))), LONGEST // 8) < QUADRATIC


def test_a_megabyte_is_read_as_far_as_anybody_types():
    found = claims("My dog is called Rex. " + "I live in Berlin. " * 60_000)
    assert found[0].text == "The user's dog is called Rex."
    assert found[-1].end <= LONGEST
