from dataclasses import replace
from datetime import timedelta

import pytest

from agentd.domain.concept import Record
from agentd.errors import GraphError
from agentd.graph.delta import apply, checkpoint, diff, merged
from agentd.graph.formats.changes import read_delta, write_delta
from agentd.graph.stores import snapshot
from agentd.graph.transfer import NOTHING, discounted, message, shared, take
from agentd.testing.graph import InMemoryGraph
from tests.graph.formats.records import NOON, concept, context, relation

HOME = "space:household"
SHARED = context(scope=HOME, agent="ada")
SECRET = context(scope="main", source="diary", agent="ada", session="main")
CAT, MILK, DOCTOR = (
    concept("cat", aliases=("secret-nickname",), created=NOON - timedelta(days=9)),
    concept("milk"),
    concept("doctor-who-is-secret"),
)
LIKES = relation(CAT, "likes", MILK, SHARED, 0.8, refs=("secret-ref",))
SICK = relation(CAT, "sees", DOCTOR, SECRET, 0.9)
HATES = relation(CAT, "secretly_hates", MILK, SECRET, 1.0)
STATE = merged([Record((CAT, MILK, DOCTOR), (SHARED, SECRET), (LIKES, SICK, HATES))])
PRIVATE = ("secret", "doctor", "diary", DOCTOR.hash.hex[:8], SECRET.hash.hex[:8], "main")


def words(text):
    return [word for word in PRIVATE if word in text]


async def taken(store, text, **more):
    return await take(store, text, **{"sender": "ada", "trust": 0.5, "spaces": [HOME], **more})


def test_what_has_a_private_scope_never_leaves():
    text = message(STATE, [HOME])
    assert "likes" in text
    assert words(text) == []


def test_the_look_for_private_words_finds_them_where_they_are():
    assert words(write_delta(diff(NOTHING, STATE))) == list(PRIVATE)


def test_neither_do_the_times_and_the_confidence_of_what_is_private():
    told = {one.label: one for one in shared(STATE, [HOME]).concepts}
    assert told.keys() == {"cat", "milk"}
    assert told["cat"].confidence == 0.8
    assert told["cat"].created == told["cat"].updated == NOON


def test_what_became_private_or_known_of_it_changes_no_message():
    less = merged([Record((CAT, MILK), (SHARED,), (LIKES,))])
    assert message(STATE, [HOME]) == message(less, [HOME])


def test_each_space_is_told_its_own():
    work = context(scope="space:work")
    both = merged([STATE, Record((CAT, MILK), (work,), (relation(CAT, "eats", MILK, work),))])
    assert "eats" not in message(both, [HOME])
    assert "likes" not in message(both, ["space:work"])
    assert shared(both, []) == NOTHING


@pytest.mark.parametrize("scope", ["main", "", "group:family", "space:", "chat:space:x"])
async def test_a_private_scope_is_no_space(scope):
    for asked in ([scope], [HOME, scope]):
        with pytest.raises(GraphError, match="is private"):
            message(STATE, asked)
        with pytest.raises(GraphError, match="is private"):
            await taken(InMemoryGraph(), message(STATE, [HOME]), spaces=asked)
    with pytest.raises(GraphError, match="is private"):
        shared(STATE, HOME)  # a text is no list of spaces


async def test_what_is_told_is_believed_in_part():
    store = InMemoryGraph()
    done = await taken(store, message(STATE, [HOME]))
    assert (done.inserted.concepts, done.inserted.episodes, done.withdrawn) == (2, 1, 0)
    assert await snapshot(store) == discounted(shared(STATE, [HOME]), 0.5)
    (episode,) = await store.episodes()
    assert episode.confidence == pytest.approx(0.4)
    assert episode.episode == LIKES.episode


async def test_twice_is_as_good_as_once():
    store = InMemoryGraph()
    text = message(STATE, [HOME])
    await taken(store, text)
    before = await snapshot(store)
    again = await taken(store, text)
    assert (again.inserted.concepts, again.inserted.episodes, again.inserted.known) == (0, 0, 1)
    assert checkpoint(await snapshot(store)) == checkpoint(before)


async def test_ones_own_word_come_back_changes_nothing():
    here, there = InMemoryGraph(), InMemoryGraph()
    await here.insert([STATE])
    await taken(there, message(STATE, [HOME]))
    await taken(here, message(await snapshot(there), [HOME]), sender="bob", trust=1)
    assert await snapshot(here) == STATE


async def test_only_what_is_new_is_told_and_the_order_does_not_matter():
    day = context(NOON + timedelta(days=1), scope=HOME, agent="ada")
    fresh = relation(CAT, "likes", MILK, day, 0.6, day.event_time)
    later = merged([STATE, Record((CAT, MILK), (day,), (fresh,))])
    first, second = message(STATE, [HOME]), message(later, [HOME], since=STATE)
    assert [one.episode for one in read_delta(second).record.relations] == [fresh.episode]
    one, other = InMemoryGraph(), InMemoryGraph()
    for text in (first, second):
        await taken(one, text)
    for text in (second, first):
        await taken(other, text)
    assert await snapshot(one) == await snapshot(other)
    assert read_delta(message(later, [HOME], since=later)).is_empty


async def test_what_faded_at_the_sender_is_not_taken_back_unless_it_says_so():
    store = InMemoryGraph()
    await taken(store, message(STATE, [HOME]))
    less = replace(STATE, relations=(SICK, HATES))
    assert (await taken(store, message(less, [HOME], since=STATE))).withdrawn == 0
    assert (await store.counts()).episodes == 1
    gone = message(less, [HOME], since=STATE, withdrawn=[LIKES.episode])
    assert apply(shared(STATE, [HOME]), read_delta(gone)) == NOTHING
    assert (await taken(store, gone)).withdrawn == 1
    assert (await store.counts()).episodes == 0
    assert (await taken(store, gone)).withdrawn == 0


async def test_nobody_takes_back_what_another_said_or_what_is_private():
    store = InMemoryGraph()
    await store.insert([STATE])
    wish = diff(STATE, NOTHING)
    assert len(wish.episodes) == 3
    for sender in ("bob", ""):
        assert (await taken(store, write_delta(wish), sender=sender)).withdrawn == 0
    assert (await taken(store, write_delta(wish), sender="ada")).withdrawn == 1
    assert [one.episode for one in await store.episodes()] == sorted([SICK.episode, HATES.episode])


def with_said(subject=CAT, predicate="likes", where=SHARED, **more):
    said = relation(subject, predicate, MILK, where, **more)
    ends = [replace(one, aliases=()) for one in (subject, MILK)]
    return write_delta(diff(NOTHING, merged([Record(tuple(ends), (where,), (said,))])))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (with_said(where=context(scope="main")), "it speaks of 'main'"),
        (with_said(where=context(scope="space:work")), "it speaks of 'space:work'"),
        (with_said(where=context(source="consolidation", scope=HOME)), "it brings a promotion"),
        (with_said(subject=concept("Cat")), "its label 'Cat' is not in normal form"),
        (with_said(predicate="Likes it"), "its predicate 'Likes it' is not in normal form"),
        (with_said(refs=("f1",)), "it gives a fact refs"),
        (write_delta(diff(NOTHING, Record((CAT,)))), "it gives 'cat' other names"),
        (with_said().replace("likes", "hates"), "the hash is not that of the lines above"),
        (with_said()[:-80], "the text has no last line H:"),
        ("", "a graph's text begins with"),
    ],
)
async def test_an_unfit_message_is_refused_and_changes_nothing(text, why):
    store = InMemoryGraph()
    await store.insert([STATE])
    with pytest.raises(GraphError, match=why):
        await taken(store, text)
    assert await snapshot(store) == STATE


@pytest.mark.parametrize("trust", [0, -0.1, 1.01, float("nan")])
async def test_trust_lies_above_nothing_and_at_most_at_all(trust):
    with pytest.raises(GraphError, match="the trust"):
        await taken(InMemoryGraph(), message(STATE, [HOME]), trust=trust)


async def test_full_trust_believes_all():
    store = InMemoryGraph()
    await taken(store, message(STATE, [HOME]), trust=1)
    assert await snapshot(store) == shared(STATE, [HOME])


def test_promotions_are_not_told():
    drawn = context(source="consolidation", scope=HOME)
    more = Record((CAT, MILK), (drawn,), (relation(CAT, "likes", MILK, drawn, 0.99),))
    assert message(merged([STATE, more]), [HOME]) == message(STATE, [HOME])
