"""Names that mean the same thing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.fact import Triple
from agentd.memory.graph.derive import Names
from agentd.zero.naming import Aliases, normal_label

KNOWN = [
    Triple("user", "sister", "Klara"),
    Triple("user's sister", "employer", "Brandt Optik"),
    Triple("user", "sister's employer's city", "Jena"),
    Triple("user", "dog name", "Rex"),
    Triple("user", "Schwager", "Jonas"),
    Triple("user", "likes", "tea"),
    Triple("user", "likes", "jazz"),
]


def names(*triples, **own):
    return Names(Aliases(own), triples or KNOWN)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("my sister", "klara"),
        ("sister", "klara"),
        ("the user's sister", "klara"),
        ("user's sister", "klara"),
        ("sister Klara", "klara"),
        ("Schwager", "jonas"),
        ("my dog", "rex"),
        ("dog Rex", "rex"),
        ("my sister’s employer", "brandt-optik"),
        ("Klara's employer", "brandt-optik"),
        ("my sister's employer's city", "jena"),
        ("my brother", "user's-brother"),
        ("likes", "likes"),
        ("Klara's city", "klara's-city"),
    ],
)
def test_what_the_owner_has_one_of_names_it(name, label):
    assert names().resolve(name) == label


def test_a_relation_of_the_owner_may_be_spoken_as_one_of_his_things():
    spoken = names(
        Triple("user", "sister name", "Klara"), Triple("user", "sister employer", "Bosch")
    )
    for name in ("my sister's employer", "the user's sister's employer", "sister's employer"):
        assert spoken.resolve(name) == "bosch"


def test_two_of_a_kind_share_no_name():
    two = names(Triple("user", "sister", "Klara"), Triple("user", "sister", "Pia"))
    assert two.resolve("my sister") == "user's-sister"
    assert two.resolve("sister Klara") == "sister-klara"


def test_the_owners_table_wins():
    assert names(sister="Agathe").resolve("sister") == "agathe"
    assert names(kl="Klara").resolve("KL") == "klara"
    assert names(Klara="Klara Vogt").resolve("my sister") == "klara-vogt"


def test_a_fact_is_said_of_whom_it_is_about():
    told = names().triple(Triple("user", "sister's employer", "Brandt Optik"))
    assert told == Triple("klara", "employer", "brandt-optik")
    assert names().triple(Triple("my sister", "home", "Ulm")) == Triple("klara", "home", "ulm")


def test_a_word_in_a_value_is_only_a_word():
    told = names().triple(Triple("Tom", "is", "sister"))
    assert told.value == "sister"
    assert names().triple(Triple("Tom", "married to", "my sister")).value == "klara"


def test_the_order_of_facts_makes_no_difference():
    there, back = names(*KNOWN), names(*reversed(KNOWN))
    for name in ("my sister's employer's city", "dog", "Schwager"):
        assert there.resolve(name) == back.resolve(name)


WORDS = st.text("abö 's-", min_size=1, max_size=12).filter(lambda one: one.strip(" -'s"))


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=6), WORDS)
def test_any_facts_give_normal_labels_and_end(said, name):
    known = Names(Aliases({}), [Triple(*one) for one in said])
    found = known.resolve(name)
    assert normal_label(found) == found
