from datetime import timedelta

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from agentd.core.errors import GraphError
from agentd.core.graph import Record
from agentd.zero.delta import Delta, StateHash, apply, checkpoint, diff, read_delta, write_delta
from agentd.zero.formats.records import canonical
from agentd.zero.formats.seal import plain, seal_lines
from tests.graph.formats.records import NOON, concept, context, grown, records, relation

NOTHING = Record()
AGENT, MEMORY, LONE = concept("agent", aliases=("bot",)), concept("memory"), concept("lone")
SAID = context()
NEEDS = relation(AGENT, "needs", MEMORY, SAID, refs=("f1",))
STATE = canonical(Record((AGENT, MEMORY), (SAID,), (NEEDS,)))
LATER = NOON + timedelta(days=1)


def with_concept(**changes):
    return canonical(replace(STATE, concepts=(replace(AGENT, **changes), MEMORY)))


def with_relation(**changes):
    return replace(STATE, relations=(replace(NEEDS, **changes),))


CHANGED = {
    "a concept's confidence": with_concept(confidence=0.5),
    "its aliases": with_concept(aliases=()),
    "its first time": with_concept(created=LATER),
    "its last time": with_concept(updated=LATER),
    "an episode's confidence": with_relation(confidence=0.1),
    "its time": with_relation(created=LATER),
    "its denial": with_relation(denied=True),
    "its refs": with_relation(refs=()),
    "a concept more": canonical(replace(STATE, concepts=(AGENT, MEMORY, LONE))),
    "a context more": canonical(replace(STATE, contexts=(SAID, context(agent="a")))),
    "an episode less": replace(STATE, relations=()),
    "nothing left": NOTHING,
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_checkpoint_and_a_delta_cover(what):
    new = CHANGED[what]
    assert checkpoint(new).hash != checkpoint(STATE).hash
    for old, after in ((STATE, new), (new, STATE)):
        delta = read_delta(write_delta(diff(old, after)))
        assert delta.base != delta.target
        assert apply(old, delta) == after


def test_a_checkpoint_counts_and_does_not_mind_the_order():
    backwards = replace(STATE, concepts=STATE.concepts[::-1])
    assert checkpoint(backwards) == checkpoint(STATE)
    found = checkpoint(STATE)
    assert (found.concepts, found.contexts, found.relations) == (2, 1, 1)
    zero = with_concept(confidence=0.0), with_concept(confidence=-0.0)
    assert checkpoint(zero[0]) == checkpoint(zero[1])


@settings(max_examples=60, deadline=None)
@given(records(), records())
def test_a_delta_leads_from_any_state_to_any_other(old, new):
    delta = diff(old, new)
    assert read_delta(write_delta(delta)) == delta
    assert apply(old, delta) == new


def test_equal_states_differ_in_nothing():
    delta = diff(STATE, STATE)
    assert delta.base == delta.target
    assert delta.record == NOTHING
    assert apply(STATE, delta) == STATE


def test_a_small_change_of_a_large_graph_is_small():
    old = grown(300)
    one = replace(old.relations[7], confidence=0.01)
    new = canonical(replace(old, relations=(*old.relations[:7], one, *old.relations[8:])))
    delta = diff(old, new)
    assert delta.record.relations == (one,)
    assert len(delta.record.concepts) <= 2
    assert len(write_delta(delta)) < 700


def test_changes_for_another_state_are_refused():
    delta = diff(NOTHING, STATE)
    with pytest.raises(GraphError, match="the changes are for the state"):
        apply(STATE, delta)
    with pytest.raises(GraphError, match="the changes are for the state"):
        apply(CHANGED["its refs"], delta)


def test_changes_that_lead_elsewhere_than_they_say_are_refused():
    delta = diff(NOTHING, STATE)
    weaker = replace(NEEDS, confidence=0.2)
    for wrong in (
        replace(delta, target=StateHash(bytes(32))),
        replace(delta, record=replace(delta.record, relations=(weaker,))),
        replace(delta, record=replace(delta.record, concepts=(MEMORY,))),
        replace(delta, record=replace(delta.record, relations=())),
    ):
        with pytest.raises(GraphError):
            apply(NOTHING, wrong)


def test_a_delta_that_leaves_a_fact_without_its_concept_is_refused():
    new = replace(STATE, concepts=(AGENT,))
    wrong = Delta(checkpoint(STATE).hash, checkpoint(new).hash, NOTHING, concepts=(MEMORY.hash,))
    with pytest.raises(GraphError, match="is not there"):
        apply(STATE, wrong)


def test_states_that_are_not_what_their_hashes_say_are_not_compared():
    with pytest.raises(GraphError, match="has the hash"):
        diff(NOTHING, with_concept(label="another"))


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "line 2, column 1: these are no changes"),
        (["C:1:a:t=2026-02-18T12:00:00Z"], "line 2, column 1: these are no changes"),
        (["D:12>34"], "line 2, column 3: '12' is no hash"),
        (["D:" + "0" * 64], "line 2, column 67: between the two states"),
        ([f"D:{'0' * 64}>{'1' * 64}x"], "line 2, column 68"),
        ([f"D:{'0' * 64}>{'1' * 64}", "-R:12345678"], "line 3, column 4"),
        ([f"D:{'0' * 64}>{'1' * 64}", f"-C:{'2' * 64}>"], "line 3, column 68"),
        ([f"D:{'0' * 64}>{'1' * 64}", "D:"], "line 3, column 1: a line begins"),
    ],
)
def test_a_text_that_says_no_changes_is_refused_with_its_place(lines, why):
    with pytest.raises(GraphError, match=why):
        read_delta(seal_lines(["0M:1.0", *lines]))


def test_a_delta_needs_its_seal():
    lines = write_delta(diff(NOTHING, STATE)).splitlines()[:-1]
    with pytest.raises(GraphError, match="no last line H:"):
        read_delta(plain(lines))
