"""What becomes of a statement among the facts that are there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.domain.fact import (
    Category,
    Fact,
    FactSource,
    FactStatus,
    Neighbour,
    Statement,
    Triple,
)
from agentd.embedders.static import load
from agentd.facts.judge import MINILM, STATIC, Bands, Judgement, bands, judge, slot
from agentd.statements.claims import triple_of

DAY = timedelta(days=1)
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
EXPLICIT, EXTRACTED = FactSource.EXPLICIT, FactSource.EXTRACTED


def fact(text: str, name: str = "old", *, source=EXPLICIT, at=NOON - DAY, triple=None) -> Fact:
    return Fact(
        id=name,
        text=text,
        category=Category.PERSONAL,
        source=source,
        confidence=source.confidence,
        valid_from=at,
        noted_at=at,
        triple=triple or triple_of(text),
    )


def statement(text: str, *, source=EXPLICIT, at=NOON, triple=None) -> Statement:
    return Statement(text, Category.PERSONAL, source, at, triple=triple or triple_of(text))


def judged(said: Statement, *facts: Fact, cosine: float = 0.8, limits: Bands = MINILM) -> Judgement:
    """As it is asked for: the facts of the same slot, and all of them as near as `cosine`."""
    related = [f for f in facts if said.triple and f.triple and slot(f.triple) == slot(said.triple)]
    near = [Neighbour(f, cosine) for f in facts]
    return judge(said, related, near, lambda _: False, limits)


REPLACED = [
    ("The user's dog is called Max.", "The user's dog is called Rex."),
    ("The user lives in Berlin.", "The user lives in Hamburg."),
    ("The user lives in Berlin.", "The user moved to Hamburg."),
    ("The user lives in Berlin.", "The user no longer lives in Berlin."),
    ("The user works at Siemens.", "The user works at Bosch."),
    ("The user works at Siemens.", "The user no longer works at Siemens."),
    ("The user is allergic to nuts.", "The user is no longer allergic to nuts."),
    ("The user is no longer allergic to nuts.", "The user is allergic to nuts."),
    ("The user's flight to Rome is on May 3.", "The user's flight to Rome is on May 4."),
    ("The user prefers tea over coffee.", "The user prefers coffee over tea."),
    ("The user's favourite colour is blue.", "The user's favourite colour is green."),
    ("The user likes tea.", "The user does not like tea."),
    ("The user likes tea.", "The user dislikes tea."),
    ("The user uses Vim.", "The user no longer uses Vim."),
    ("The deadline of Atlas is June 1.", "The deadline of Atlas is June 15."),
    ("The port of staging server is 8080.", "The port of staging server is 9090."),
    ("The status of Atlas is blocked.", "The status of Atlas is done."),
    ("The user's phone number is 555 1234.", "The user's phone number is 555 9876."),
    ("The user is vegetarian.", "The user is vegan."),
    ("The user is vegan.", "The user is no longer vegan."),
    ("The user's car is a Golf.", "The user's car is a Tesla."),
    ("The user is 34 years old.", "The user is 35 years old."),
    ("The boiler code is 4417", "The boiler code is 5523."),
    ("The user's monitor is a Dell.", "The user's monitor is an LG."),
    ("The user's sister Klara lives in Oslo.", "The user's sister Klara moved to Bonn."),
    ("The user's brother Tom works at Bosch.", "The user's brother Tom works at Siemens."),
    ("The user is vegetarian.", "The user eats meat."),
    ("The user eats fish.", "The user is vegan."),
    ("The user does not eat meat.", "The user eats meat."),
    ("The user has given up smoking.", "The user smokes."),
    ("The user is a smoker.", "The user is a non-smoker."),
]
BOTH = [
    ("The meeting is at 5", "The meeting is at 3"),
    ("The meeting is 5pm", "The meeting is Monday"),
    ("The train is 704", "The train is 812"),
    ("The boiler code is 4417", "The door code is 5523"),
    ("The user's monitor is a Dell.", "The user's second monitor is an LG."),
    ("The user's sister is Klara.", "The user's sister is Anna."),
    ("The user's sister Klara lives in Oslo.", "The user's sister Anna lives in Bonn."),
    ("The user's dog is Rex.", "The user's dog is a Beagle."),
    ("The user's flat is quiet.", "The user's flat is small."),
    ("The user is vegetarian.", "The user eats cheese."),
    ("The user is vegetarian.", "The user is coeliac."),
    ("The user is vegetarian.", "The user is a non-smoker."),
    ("The user is pescatarian.", "The user eats fish."),
    ("The user likes tea.", "The user likes coffee."),
    ("The user likes tea.", "The user dislikes coffee."),
    ("The user is allergic to nuts.", "The user is allergic to cats."),
    ("The user is allergic to nuts.", "The user is no longer allergic to cats."),
    ("The user speaks German.", "The user speaks French."),
    ("The user uses Vim.", "The user uses Firefox."),
    ("The user's dog is called Max.", "The user's cat is called Mia."),
    ("The user's dog is called Max.", "The user has two dogs, Max and Rex."),
    ("The user has two dogs, Max and Rex.", "The user's dog is called Rex."),
    ("The user's son is called Tim.", "The user's son is called Ben."),
    ("The user works on Atlas.", "The user works on Hermes."),
    ("The user lives in Berlin.", "The user was born in Hamburg."),
    ("The user works at Siemens.", "The user no longer works at Bosch."),
    ("The deadline of Atlas is June 1.", "The deadline of Hermes is July 1."),
    ("The user prefers tea over coffee.", "The user prefers tea over milk."),
    ("The user's flight to Rome is on May 3.", "The user's flight to Oslo is on May 9."),
]
REPEATED = [
    ("The user's dog is called Rex.", "the user's dog is called rex"),
    ("The user's dog is called Rex.", "The user’s dog is called Rex!"),
    ("The user likes tea.", "The user loves tea."),
    ("The user is allergic to peanuts.", "The user is allergic to peanut."),
    ("The user lives in Berlin.", "The user moved to Berlin."),
    ("The user's car is a Golf.", "The user's car is Golf."),
]


@pytest.mark.parametrize(("old", "new"), REPLACED)
@pytest.mark.parametrize("cosine", [0.65, 0.8, 0.99])
def test_what_changed_supersedes_whatever_the_cosine(old: str, new: str, cosine: float) -> None:
    assert judged(statement(new), fact(old), cosine=cosine) == Judgement("new", supersedes=("old",))


@pytest.mark.parametrize(("old", "new"), BOTH)
@pytest.mark.parametrize("cosine", [0.65, 0.8, 0.99])
def test_what_holds_side_by_side_is_kept(old: str, new: str, cosine: float) -> None:
    verdict = judged(statement(new), fact(old), cosine=cosine)
    assert (verdict.kind, verdict.supersedes, verdict.superseded_by) == ("new", (), "")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("My uncle Karl likes chess", "My uncle Karl owns a boat"),
        ("My uncle Karl owns a boat", "The user's uncle is called Karl."),
        ("The user's dog is called Max.", "My dog Max snores loudly"),
    ],
)
def test_what_is_told_of_somebody_whose_name_is_known_is_kept(old: str, new: str) -> None:
    assert judged(statement(new), fact(old), cosine=0.8).kind == "new"


@pytest.mark.parametrize(("old", "new"), REPEATED)
def test_what_was_said_before_is_a_duplicate(old: str, new: str) -> None:
    assert judged(statement(new), fact(old)) == Judgement("duplicate", duplicate_of="old")


def test_a_second_dog_named_beside_the_first_supersedes_neither() -> None:
    both = fact("The user has two dogs, Max and Rex.", "both")
    verdict = judged(
        statement("The user's dog is called Rex."), fact("The user's dog is called Max."), both
    )
    assert verdict.supersedes == ()


@pytest.mark.parametrize(
    ("cosine", "kind"), [(0.95, "duplicate"), (0.91, "duplicate"), (0.9, "new"), (0.5, "new")]
)
def test_above_the_band_free_words_are_the_same(cosine: float, kind: str) -> None:
    old = fact("Mornings begin with a long walk by the river.")
    new = statement("A long walk by the river is how mornings begin for the user.")
    assert judged(new, old, cosine=cosine).kind == kind


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The rent of the flat is due on the 3rd.", "The rent of the flat is due on the 5th."),
        ("The spare key hangs in the top drawer.", "The spare key hangs in the bottom drawer."),
        ("Backups of the NAS run on Monday.", "Backups of the NAS run on Tuesday."),
        ("The team meets without Anna.", "The team meets with Anna."),
        ("Anna looks after the cat.", "Petra looks after the cat."),
        ("The loop around the lake has 10 km.", "The loop around the lake has 10 mi."),
    ],
)
def test_a_difference_that_matters_is_no_duplicate_however_near(old: str, new: str) -> None:
    verdict = judged(statement(new), fact(old), cosine=0.99)
    assert verdict.kind == "new"
    assert verdict.supersedes or verdict.unsure == ("old",)


def test_near_facts_without_a_rule_stay_and_are_told() -> None:
    old = fact("Mornings begin with a walk.")
    verdict = judged(statement("Mornings begin with a swim in the lake."), old, cosine=0.8)
    assert verdict == Judgement("new", unsure=("old",))
    assert judged(statement("Evenings end with music."), old, cosine=0.69).unsure == ()


def test_a_denial_without_a_triple_supersedes() -> None:
    old = fact("The garage door is locked at night.")
    new = statement("The garage door is no longer locked at night.")
    assert new.triple is None
    assert judged(new, old, cosine=0.9).supersedes == ("old",)


def test_what_a_model_called_the_relation_matters_little() -> None:
    old = fact("Rex is the dog.", triple=Triple("user", "dog's name", "Rex"))
    new = statement("The dog is Max now.", triple=Triple("The User", "Dog_name", "Max"))
    assert judged(new, old).supersedes == ("old",)


def test_a_triple_of_equal_words_but_another_detail_is_kept_beside() -> None:
    old = fact("The user is allergic to nuts.", triple=Triple("user", "allergic to", "nuts"))
    new = statement(
        "The user is allergic to nuts since 2019.", triple=Triple("user", "allergic to", "nuts")
    )
    assert judged(new, old) == Judgement("new")


def test_a_facts_missing_triple_is_read_from_its_words() -> None:
    old = Fact(
        "old",
        "The user's dog is called Max.",
        Category.PERSONAL,
        FactSource.FILE,
        0.9,
        NOON - DAY,
        NOON,
    )
    verdict = judge(
        statement("The user's dog is called Rex."), [], [Neighbour(old, 0.66)], lambda _: False
    )
    assert verdict.supersedes == ("old",)


def test_what_is_older_and_arrives_late_becomes_history() -> None:
    late = statement("The user lives in Berlin.", at=NOON - 9 * DAY)
    assert judged(late, fact("The user lives in Hamburg.")) == Judgement("new", superseded_by="old")


def test_the_first_newer_fact_is_the_successor() -> None:
    late = statement("The user lives in Berlin.", at=NOON - 9 * DAY)
    verdict = judged(
        late,
        fact("The user lives in Hamburg.", "second", at=NOON - DAY),
        fact("The user lives in Rome.", "first", at=NOON - 3 * DAY),
    )
    assert verdict.superseded_by == "first"


def test_said_in_the_same_instant_the_one_that_comes_last_holds() -> None:
    old = fact("The user lives in Berlin.", at=NOON)
    assert judged(statement("The user lives in Rome.", at=NOON), old).supersedes == ("old",)


def test_what_was_overheard_never_replaces_what_was_asked_for() -> None:
    old = fact("The user lives in Berlin.", source=EXPLICIT)
    new = statement("The user lives in Rome.", source=EXTRACTED)
    assert judged(new, old) == Judgement("refused", reason="authority")


@pytest.mark.parametrize("at", [NOON, NOON - 9 * DAY])
def test_what_was_asked_for_replaces_what_was_overheard_in_any_order(at: datetime) -> None:
    old = fact("The user lives in Berlin.", source=EXTRACTED)
    assert judged(statement("The user lives in Rome.", at=at), old).supersedes == ("old",)


def test_what_was_overheard_long_ago_is_history_beside_what_was_asked_for() -> None:
    old = fact("The user lives in Berlin.", source=EXPLICIT)
    new = statement("The user lives in Rome.", source=EXTRACTED, at=NOON - 9 * DAY)
    assert judged(new, old).superseded_by == "old"


def test_what_was_forgotten_is_refused_even_when_it_is_known() -> None:
    said = statement("The user's dog is called Rex.")
    verdict = judge(said, [fact("The user's dog is called Rex.")], [], lambda s: s is said)
    assert verdict == Judgement("refused", reason="forgotten")


def test_a_statement_without_words_is_refused() -> None:
    assert judged(statement(" … ")) == Judgement("refused", reason="empty")


def test_superseded_facts_are_no_rivals() -> None:
    gone = fact("The user lives in Berlin.")
    gone = Fact(
        gone.id, gone.text, gone.category, gone.source, 0.9, NOON, NOON, FactStatus.SUPERSEDED
    )
    assert judged(statement("The user lives in Berlin."), gone, cosine=1.0) == Judgement("new")


def test_each_family_of_models_has_its_bands() -> None:
    assert bands("static-minilm-256-378b73054b5c") is STATIC
    assert bands("all-MiniLM-L6-v2") is MINILM
    assert bands("something-else") is MINILM


async def test_the_packaged_model_finds_all_that_changed_and_repeats_nothing_wrongly() -> None:
    """The figures beside the bands, measured again with the pairs of this page."""
    pairs = [*REPLACED, *BOTH]
    model = load()
    vectors = [np.frombuffer(v, "<f4") for v in await model.embed([t for p in pairs for t in p])]
    for at, (old, new) in enumerate(pairs):
        cosine = float(vectors[2 * at] @ vectors[2 * at + 1])
        verdict = judged(statement(new), fact(old), cosine=cosine, limits=bands(model.model))
        assert verdict.kind == "new"
        assert bool(verdict.supersedes) is ((old, new) in REPLACED)


@given(st.text(max_size=120), st.text(max_size=120), st.floats(-1, 1), st.booleans())
@settings(max_examples=100, deadline=None)
def test_every_pair_is_judged_and_nothing_is_both_old_and_new(one, other, cosine, is_late) -> None:
    said = statement(one, at=NOON - 9 * DAY if is_late else NOON)
    verdict = judged(said, fact(other), cosine=cosine)
    assert not (verdict.supersedes and verdict.superseded_by)
    assert (verdict.kind == "duplicate") == bool(verdict.duplicate_of)
    assert (verdict.kind == "refused") == bool(verdict.reason)
