"""What facts and their evidence say to the graph."""

from __future__ import annotations

from datetime import timedelta

from agentd.core.evidence import ENDED, FACTS, SAID
from agentd.core.fact import Evidence, Fact, FactStatus
from agentd.core.turn import SessionKey
from agentd.memory.graph.derive import derive
from agentd.zero.naming import Aliases
from tests.graph.home import NOW, fact

DAY = timedelta(days=1)
OWN = Aliases({})


def said(*facts, **evidence):
    return derive(facts, evidence, OWN)


def sources(found):
    return sorted(one.source for one in found.sayings.values())


def test_a_fact_without_evidence_is_said_once_since_when_it_holds():
    (one,) = said(fact("a", "home", "Ulm", valid_from=NOW - DAY)).sayings.values()
    assert (one.at, one.source, one.refs, one.confidence) == (NOW - DAY, FACTS, ("a",), 0.9)


def test_each_time_it_was_said_is_an_episode_and_the_first_one_stands():
    main, other = SessionKey("main"), SessionKey("chat:x")
    told = [
        Evidence(NOW + DAY, other, 4),
        Evidence(NOW, main, 2),
        Evidence(NOW, main, 2, 3, 9),
        Evidence(NOW, main, 1, is_context=True),
    ]
    found = said(fact("a", "home", "Ulm"), a=told)
    by_source = {one.source: (one.at, one.session) for one in found.sayings.values()}
    assert by_source == {FACTS: (NOW, main), SAID: (NOW + DAY, other)}


def test_what_holds_no_longer_is_history():
    old = fact("a", "home", "Ulm", status=FactStatus.SUPERSEDED, valid_to=NOW + DAY)
    found = said(old, fact("b", "home", "Bonn"))
    assert sources(found) == [ENDED, FACTS, FACTS]
    (denial,) = [one for one in found.sayings.values() if one.is_denial]
    assert (denial.at, denial.triple.value, denial.refs) == (NOW + DAY, "ulm", ("a",))
    assert denial.record().relations[0].denied
    assert found.holding.keys() == {"b"}


def test_what_holds_again_is_denied_by_nothing():
    old = fact("a", "home", "Ulm", status=FactStatus.ENDED, valid_to=NOW)
    assert ENDED not in sources(said(old, fact("b", "home", "Ulm", valid_from=NOW + DAY)))


def test_the_forgotten_and_the_proposed_say_nothing():
    assert not said(
        Fact.tombstone("a", NOW), fact("b", "home", "Ulm", status=FactStatus.PROPOSED)
    ).sayings


def test_a_fact_whose_words_are_no_labels_is_named():
    found = said(fact("a", "home", "__"), fact("b", "home", "Ulm"))
    assert found.unfit == ("a",)
    assert len(found.sayings) == 1


def test_two_facts_that_say_the_same_at_the_same_time_are_one_episode():
    (one,) = said(
        fact("a", "home", "Ulm", confidence=0.6), fact("b", "home", "ULM")
    ).sayings.values()
    assert (one.refs, one.confidence) == (("a", "b"), 0.9)


def test_episodes_have_the_names_that_the_compiler_gives_them():
    found = said(fact("a", "sister", "Klara"), fact("b", "home", "Ulm", "my sister"))
    for name, one in found.sayings.items():
        (relation,) = one.record().relations
        assert relation.episode == name
