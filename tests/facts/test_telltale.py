"""What a forgotten fact is recognised by."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentd.domain.erasure import MASK, Needles
from agentd.domain.fact import Category, Fact, FactSource, FactStatus, Triple
from agentd.facts.telltale import joined, needles_of

AT = datetime(2026, 11, 22, tzinfo=UTC)


def fact(text, triple=None, id_="a", **more):
    source = FactSource.EXPLICIT
    of = Triple(*triple) if triple else None
    return Fact(id_, text, Category.PERSONAL, source, 0.9, AT, AT, triple=of, **more)


REX = fact("The user's dog is called Rex.", ("user", "dog name", "Rex"))


def needles(about, said=(), others=(), **more):
    return needles_of(about, said, others, **more)


@pytest.mark.parametrize(
    ("about", "alone"),
    [
        (REX, "Rex barks"),
        (fact("The user's cat is Quastelina."), "where is quastelina?"),
        (fact("The user's number is 0660 5550142."), "dial 06605550142"),
        (fact("The user's badge is XK-77-Z."), None),
        (fact("The user's badge is XK-777-Z."), "xk-777-z?"),
        (fact("Mail goes to kim.quast@example.org."), "kim.quast@example.org wrote"),
        (fact("The user was born in 1984.", ("user", "birth year", "1984")), None),
        (fact("The user's flight is in May.", ("user", "flight", "May")), None),
        (fact("The user likes blue.", ("user", "favourite colour", "blue")), None),
        (fact("The user is allergic to peanuts.", ("user", "allergy", "peanuts")), None),
        (fact("Die Katze des Nutzers mag Zahnbürsten."), None),
    ],
)
def test_only_a_distinctive_word_counts_alone(about, alone):
    found = needles(about)
    lone = [value for value, near in found.values if not near]
    if alone is None:
        assert lone == []
    else:
        assert lone
        assert found.masked(f"Yes. {alone}. No.") == f"Yes. {MASK} No."
    assert found.masked(about.text) == MASK
    assert not found.stand_in("In May 1984 a blue car had peanuts. The user likes tea.")


def test_a_common_word_needs_another_of_the_fact():
    found = needles(fact("The user is allergic to peanuts.", ("user", "allergy", "peanuts")))
    assert found.masked("Allergic to nuts? Only peanuts. An allergy to Peanuts!").startswith(
        "Allergic to nuts? Only peanuts. "
    )
    assert found.stand_in("An allergy to Peanuts!")
    vegan = needles(fact("The user is vegan.", ("user", "diet", "vegan")))
    assert vegan.stand_in("Noted: you are vegan.")
    assert not vegan.stand_in("Vegan food was invented long ago.")


def test_a_word_that_another_active_fact_has_does_not_count_alone():
    friend = fact("Rex is the name of a friend.", id_="b")
    assert needles(REX, others=[REX]).stand_in("Rex barks")
    assert not needles(REX, others=[friend]).stand_in("Rex sings")
    assert needles(REX, others=[friend]).stand_in("The dog Rex sings")
    gone = fact("Rex is the name of a friend.", id_="b", status=FactStatus.SUPERSEDED)
    assert needles(REX, others=[gone]).stand_in("Rex barks")


def test_the_sentences_in_which_it_was_said_count_as_they_are():
    said = "Hi. By the way my hound answers to Rex, you know. What else is new?"
    taken = fact("Rex is the name of a friend.", id_="b")
    found = needles(REX, [said], [taken])
    assert found.masked(said) == f"Hi. {MASK} What else is new?"
    assert found.masked("What else is new?") == "What else is new?"


def test_words_of_grammar_tell_nothing_even_together():
    about = ("user", "place of passport", "in the Quastel drawer")
    found = needles(fact("The user keeps the passport in the Quastel drawer.", about))
    assert found.stand_in("Which drawer has my passport?")
    assert found.stand_in("Quastel, again.")
    for other in (
        "I have kept that in this conversation, without a note of it.",
        "One of the trains was late in the morning.",
        "What do you keep in the shed?",
    ):
        assert not found.stand_in(other), other


def test_a_verb_is_known_in_the_first_person_too():
    pickles = fact("The user likes goripsop pickles.", ("user", "likes", "goripsop pickles"))
    assert needles(pickles).masked("I really like goripsop pickles.") == MASK
    assert not needles(pickles).stand_in("Alike are all goripsop pickles.")


def test_a_subject_that_is_somebody_else_is_not_forgotten_with_what_was_said_of_him():
    found = needles(fact("Anna's birthday is on 1990-05-12.", ("Anna", "birthday", "1990-05-12")))
    assert not found.stand_in("Anna called.")
    assert found.stand_in("Something happened on 1990-05-12.")


def test_a_value_of_several_words_counts_with_others_of_the_fact():
    about = ("user", "favourite breakfast", "peanut butter toast")
    found = needles(fact("The user's favourite breakfast is peanut butter toast.", about))
    assert found.stand_in("For breakfast: peanut butter toast.")
    assert not found.stand_in("Peanut butter toast costs 3 euros.")


def test_who_knows_more_words_finds_the_rare_ones():
    about = fact("The user collects zylophones.")
    assert not needles(about).stand_in("zylophones are loud")
    assert needles(about, common=lambda word: word == "collects").stand_in("Zylophones are loud")


def test_several_are_joined_once_each():
    one, two = Needles(("a b c",), (("x", ()),)), Needles(("a b c", "d e f"), (("x", ("y",)),))
    assert joined([one, two]) == Needles(("a b c", "d e f"), (("x", ()), ("x", ("y",))))


def test_a_forgotten_fact_has_nothing_left_to_be_recognised_by():
    assert needles(Fact.grave("a", AT)) == Needles(())


@pytest.mark.parametrize(
    "asked",
    ["Forget what I told you about quoumbekin", "/forget quoumbekin", "Vergiss quoumbekin!"],
)
def test_the_wish_to_forget_is_erased_with_what_it_names(asked):
    socks = fact("The user likes quoumbekin socks.", ("user", "likes", "quoumbekin socks"))
    found = needles(socks, ["I really like quoumbekin socks."])
    assert "quoumbekin" not in found.masked(asked)
    assert found.masked("Forget the rest.") == "Forget the rest."
