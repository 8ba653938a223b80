from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentd.core.errors import GraphError
from agentd.core.graph import Record
from agentd.memory.graph.transfer import (
    NOTHING,
    as_told_by,
    message,
    read_message,
    sender_of,
    shared_part,
)
from agentd.zero import parse
from agentd.zero.decompiler import decompile
from agentd.zero.delta import apply, diff, merge_records, read_delta, write_delta
from agentd.zero.formats.records import verify
from agentd.zero.formats.seal import seal_lines
from agentd.zero.record_graph import emit
from tests.graph.formats.records import NOON, concept, context, relation

HOME = "space:household"
NOW = NOON + timedelta(days=2)
AGENT, SALT = "0123456789abcdef", "5a" * 16


def saying(scope=HOME, source="shared", agent=AGENT, session=SALT, at=NOON):
    return context(at, source, scope, agent, session)


SHARED = saying()
SECRET = context(scope="main", source="diary", agent="ada", session="main")
CAT, MILK, DOCTOR = (
    concept("cat", aliases=("secret-nickname",), created=NOON - timedelta(days=9)),
    concept("milk"),
    concept("doctor-who-is-secret"),
)
LIKES = relation(CAT, "likes", MILK, SHARED, 0.8, refs=("secret-ref",))
SICK = relation(CAT, "sees", DOCTOR, SECRET, 0.9)
HATES = relation(CAT, "secretly_hates", MILK, SECRET, 1.0)
STATE = merge_records([Record((CAT, MILK, DOCTOR), (SHARED, SECRET), (LIKES, SICK, HATES))])
PRIVATE = ("secret", "doctor", "diary", DOCTOR.hash.hex[:8], SECRET.hash.hex[:8], "main")


def words(text):
    return [word for word in PRIVATE if word in text]


def arrived(text, scopes=(HOME,)):
    return read_message(text, scopes, NOW)


def test_what_has_a_private_scope_never_leaves():
    text = message(STATE, [HOME])
    assert "likes" in text
    assert words(text) == []


def test_the_look_for_private_words_finds_them_where_they_are():
    assert words(write_delta(diff(NOTHING, STATE))) == list(PRIVATE)


def test_neither_do_the_times_and_the_confidence_of_what_is_private():
    told = {one.label: one for one in shared_part(STATE, [HOME]).concepts}
    assert told.keys() == {"cat", "milk"}
    assert told["cat"].confidence == 0.8
    assert told["cat"].created == told["cat"].updated == NOON


def test_what_became_private_or_known_of_it_changes_no_message():
    less = merge_records([Record((CAT, MILK), (SHARED,), (LIKES,))])
    assert message(STATE, [HOME]) == message(less, [HOME])


def test_each_space_is_told_its_own():
    work = saying("space:work")
    both = merge_records(
        [STATE, Record((CAT, MILK), (work,), (relation(CAT, "eats", MILK, work),))]
    )
    assert "eats" not in message(both, [HOME])
    assert "likes" not in message(both, ["space:work"])
    assert shared_part(both, []) == NOTHING


@pytest.mark.parametrize("scope", ["main", "", "group:family", "space:", "chat:space:x"])
def test_a_private_scope_is_no_space(scope):
    for asked in ([scope], [HOME, scope]):
        with pytest.raises(GraphError, match="is private"):
            message(STATE, asked)
        with pytest.raises(GraphError, match="is private"):
            arrived(message(STATE, [HOME]), asked)
    with pytest.raises(GraphError, match="is private"):
        shared_part(STATE, HOME)  # a text is no list of spaces


def test_a_message_is_a_change_from_nothing_that_names_what_is_taken_back():
    text = message(STATE, [HOME], [SICK.episode])
    assert apply(NOTHING, read_delta(text)) == shared_part(STATE, [HOME])
    said = arrived(text)
    assert (said.sender, said.record) == (AGENT, shared_part(STATE, [HOME]))
    assert said.withdrawn == {SICK.episode}
    assert arrived(message(NOTHING, [HOME], [SICK.episode])).sender == ""


def test_what_is_told_is_kept_as_said_by_its_sender_and_believed_in_part():
    here = as_told_by(arrived(message(STATE, [HOME])), "ada", 0.5)
    verify(here)
    (said,), (where,) = here.relations, here.contexts
    assert said.confidence == pytest.approx(0.4)
    assert said.refs == (LIKES.episode.hex,)
    assert (where.agent, where.scope, where.source) == ("ada", HOME, "shared")
    assert sender_of(where) == AGENT
    assert {one.confidence for one in here.concepts} == {0.4}


def test_the_owner_of_the_sender_is_not_the_owner_here():
    user = concept("user")
    state = Record((user, CAT), (SHARED,), (relation(user, "has", CAT, SHARED),))
    here = as_told_by(arrived(message(state, [HOME])), "ada", 1)
    verify(here)
    assert {one.label for one in here.concepts} == {"ada", "cat"}
    assert "user" in message(state, [HOME])


def test_the_sender_may_speak_of_itself_by_the_name_it_has_here():
    user, ada = concept("user", 0.5), concept("ada")
    said = relation(user, "is_called", ada, SHARED)
    here = as_told_by(arrived(message(Record((user, ada), (SHARED,), (said,)), [HOME])), "ada", 1)
    verify(here)
    assert [one.label for one in here.concepts] == ["ada"]


def with_said(subject=CAT, predicate="likes", where=SHARED, **more):
    said = relation(subject, predicate, MILK, where, **more)
    ends = [replace(one, aliases=()) for one in (subject, MILK)]
    return write_delta(diff(NOTHING, merge_records([Record(tuple(ends), (where,), (said,))])))


def with_two_agents():
    other = saying(agent="f" * 16)
    several = Record((CAT, MILK), (other,), (relation(CAT, "likes", MILK, other),))
    return message(merge_records([STATE, several]), [HOME])


def leading_elsewhere():
    """A message without one of its lines, sealed anew."""
    lines = message(STATE, [HOME], [SICK.episode]).splitlines()[:-1]
    [gone] = [line for line in lines if line.startswith("R:")]
    lines.remove(gone)
    return seal_lines(lines)


def from_another_state():
    return write_delta(diff(Record((MILK,)), shared_part(STATE, [HOME])))


def taking_out_more():
    lines = message(STATE, [HOME]).splitlines()[:-1]
    return seal_lines([*lines, f"-X:{SECRET.hash.hex}", f"-C:{DOCTOR.hash.hex}"])


LATER = NOW + timedelta(days=2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (with_said(where=saying("main")), "it speaks of 'main'"),
        (with_said(where=saying("space:work")), "it speaks of 'space:work'"),
        (with_said(where=saying(source="consolidation")), "it brings a promotion"),
        (with_said(where=saying(source="facts")), "it brings what was read from 'facts'"),
        (with_said(where=saying(agent="ada")), "it does not say which agent"),
        (with_said(where=saying(session="")), "it does not say which agent"),
        (with_said(where=saying(at=LATER)), "it speaks of the future, 2026-02-22"),
        (with_said(created=LATER), "it speaks of the future"),
        (with_said(subject=replace(CAT, updated=LATER)), "it speaks of the future"),
        (with_two_agents(), "it speaks for several agents"),
        (with_said(subject=concept("Cat")), "its label 'Cat' is not in normal form"),
        (with_said(predicate="Likes it"), "its predicate 'Likes it' is not in normal form"),
        (with_said(refs=("f1",)), "it gives a fact refs"),
        (with_said(denied=True), "it denies a fact"),
        (write_delta(diff(NOTHING, Record((CAT,)))), "it gives 'cat' other names"),
        (with_said().replace("likes", "hates"), "the hash is not that of the lines above"),
        (leading_elsewhere(), "the changes do not lead to the state"),
        (from_another_state(), "it begins at the state"),
        (taking_out_more(), "it takes back what is no fact"),
        (with_said()[:-80], "the text has no last line H:"),
        ("", "a graph's text begins with"),
    ],
)
def test_an_unfit_message_is_refused(text, why):
    with pytest.raises(GraphError, match=why):
        arrived(text)


def test_the_message_that_those_are_made_of_is_fit():
    assert arrived(with_said()).record.relations


@pytest.mark.parametrize("trust", [0, -0.1, 1.01, float("nan")])
def test_trust_lies_above_nothing_and_at_most_at_all(trust):
    with pytest.raises(GraphError, match="the trust"):
        as_told_by(arrived(message(STATE, [HOME])), "ada", trust)


def test_promotions_are_not_told():
    drawn = context(source="consolidation", scope=HOME)
    more = Record((CAT, MILK), (drawn,), (relation(CAT, "likes", MILK, drawn, 0.99),))
    assert message(merge_records([STATE, more]), [HOME]) == message(STATE, [HOME])


LINES = message(
    merge_records([STATE, Record((CAT, MILK), (SHARED,), (relation(CAT, "eats", MILK, SHARED),))]),
    [HOME],
).splitlines()
PIECES = st.sampled_from(
    [*"\\:>,=|\u2028\u0301 -0aZ", "user", "X:", "C:", "R:", "-R:", "d=1", "main"]
)


@given(st.lists(st.tuples(st.integers(1, len(LINES) - 2), st.integers(0, 200), PIECES), max_size=4))
def test_whatever_is_sealed_is_refused_or_can_be_kept(edits):
    lines = LINES[:-1]
    for number, at, piece in edits:
        lines[number] = lines[number][:at] + piece + lines[number][at + 1 :]
    try:
        # Leads where it says.
        edited = write_delta(diff(NOTHING, read_delta(seal_lines(lines)).record))
        here = as_told_by(arrived(edited), "ada", 0.5)
    except GraphError:
        return
    verify(here)
    assert {one.scope for one in here.contexts} <= {HOME}
    assert decompile(parse(emit(here))).record == here


@given(st.binary(max_size=200))
def test_bytes_are_refused(data):
    with pytest.raises(GraphError):
        arrived(data.decode("utf-8", "replace"))


def test_the_edited_message_was_fit():
    assert len(arrived(seal_lines(LINES[:-1])).record.relations) == 2
