"""What is asked to be remembered becomes the claim that it makes, if that leaves nothing out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentd.domain.fact import FactSource, Provenance, Triple
from agentd.facts.asked import explicit_besides, explicit_statement

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("my dog is called Rex", "The user's dog is called Rex."),
        ("I like tea", "The user likes tea."),
        ("My sister Klara lives in Bern", "The user's sister Klara lives in Bern."),
        ("my dog Max had surgery", "The user's dog Max had surgery"),
        ("my dog Max bit me", "my dog Max bit me"),
        ("I like tea and cake and jam\nand lines.", "I like tea and cake and jam\nand lines."),
        ("My aunt Berta, who is 90, lives in Ulm. Visit!", "My aunt Berta, who is 90, lives in Ulm. Visit!"),
    ],
)  # fmt: skip
def test_nothing_of_what_was_asked_is_left_out(asked: str, kept: str) -> None:
    assert explicit_statement(asked, NOW, NOW.date(), Provenance()).text == kept


def test_what_a_request_denies_is_told_too() -> None:
    asked = ("I switched from Vim to Helix for notes", NOW, NOW.date(), Provenance())
    (denied,) = explicit_besides(*asked)
    assert denied.text == "The user no longer uses Vim."
    kept = explicit_statement(*asked)
    assert kept.text == "The user switched from Vim to Helix for notes."
    assert kept.triple is not None
    assert kept.triple.value == "Helix"


def test_a_request_that_only_denies_is_told_once() -> None:
    asked = ("I no longer use Vim", NOW, NOW.date(), Provenance())
    assert explicit_besides(*asked) == ()
    assert explicit_statement(*asked).text == "The user no longer uses Vim."


def test_a_relative_is_told_with_what_is_said_of_her_and_her_name_beside() -> None:
    asked = ("My sister Klara lives in Bern", NOW, NOW.date(), Provenance())
    assert explicit_statement(*asked).triple == Triple("sister Klara", "home", "Bern")
    (name,) = explicit_besides(*asked)
    assert name.triple == Triple("user", "sister name", "Klara")
    assert name.source is FactSource.EXTRACTED


def test_a_name_in_passing_is_no_more_than_read_out_of_it() -> None:
    asked = ("my dog Max had surgery", NOW, NOW.date(), Provenance())
    assert explicit_statement(*asked).triple is None
    (name,) = explicit_besides(*asked)
    assert (name.text, name.source) == ("The user's dog is called Max.", FactSource.EXTRACTED)


@pytest.mark.parametrize(
    ("said", "before", "last"),
    [
        (
            "my sister is called Klara and lives in Bern",
            "The user's sister is called Klara.",
            "The user's sister Klara lives in Bern.",
        ),
        (
            "I work at Hasselblad and live in Gothenburg",
            "The user works at Hasselblad.",
            "The user lives in Gothenburg.",
        ),
    ],
)
def test_two_things_in_one_sentence_are_two_facts(said: str, before: str, last: str) -> None:
    asked = (said, NOW, NOW.date(), Provenance())
    (first,) = explicit_besides(*asked)
    assert (first.text, first.source) == (before, FactSource.EXPLICIT)
    kept = explicit_statement(*asked)
    assert kept.text == last
    assert kept.triple is not None


@pytest.mark.parametrize(
    "said",
    [
        "I am allergic to nuts and eggs",
        "I live in Bern and work at Siemens. The boiler hums.",
        "I live in Bern and work at Siemens, while the old boiler hums along quietly downstairs",
    ],
)
def test_a_list_or_more_than_the_two_things_is_kept_as_it_was_said(said: str) -> None:
    asked = (said, NOW, NOW.date(), Provenance())
    assert explicit_statement(*asked).text == said
    assert explicit_besides(*asked) == ()
