"""What is passed over without being read holds nothing of what is looked for."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.domain.concept import Concept, Context, Record, Relation
from agentd.domain.erasure import Needles
from agentd.graph.emitter import emit
from agentd.graph.hashing import concept_hash, context_hash, episode_hash, fact_hash
from agentd.graph.pieces import read_pieces
from agentd.graph.sighting import MOST, Sighting

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
CONTEXT = Context(context_hash(NOW, "talk", "main"), NOW, "talk", "main")
PLAIN = ["rex", "Rex", "bern", "straße", "ｆｕｌｌ", "née", "ne\u0301e", "犬", "𠮷", "𝐁old", "c#"]
ODD = ["12", "345", "6", "2024-zaragoza", "ana_lee"]
ESCAPED = ["a\\b", "x|y", "tab\there", 'q"uote']
WORDS = st.sampled_from([*PLAIN * 3, *ODD * 3, *ESCAPED])
PHRASES = st.lists(WORDS, min_size=1, max_size=2).map(" ".join)


def concept(label, *aliases):
    return Concept(concept_hash(label), label, 0.5, NOW, NOW, aliases)


def said(subject, predicate, target):
    fact = fact_hash(subject.label, predicate, target.label)
    episode = episode_hash(fact, CONTEXT.hash)
    ends = subject.hash, predicate, target.hash
    return Relation(fact, episode, CONTEXT.hash, *ends, 0.5, NOW)


@st.composite
def records(draw):
    labels = draw(st.lists(PHRASES, min_size=2, max_size=3, unique=True))
    concepts = [concept(label, *draw(st.lists(PHRASES, max_size=1))) for label in labels]
    ends = st.sampled_from(concepts)
    relations = {
        one.episode: one
        for one in [
            said(draw(ends), draw(PHRASES), draw(ends)) for _ in range(draw(st.integers(0, 2)))
        ]
    }
    return Record(tuple(concepts), (CONTEXT,), tuple(relations.values()))


def escaped(text, chance):
    """The text with some of its strings written in ASCII."""

    def written(found):
        return json.dumps(json.loads(found[0])) if chance.random() < 0.5 else found[0]

    return re.sub(r'"(?:[^"\\\n]|\\.)*"', written, text)


@st.composite
def texts(draw):
    record, beside = draw(records()), draw(st.dictionaries(PHRASES, PHRASES, max_size=1))
    text = emit(record, utterance=draw(st.just("") | PHRASES), metadata=beside)
    if draw(st.booleans()):
        text = escaped(text, draw(st.randoms(use_true_random=False)))
    if draw(st.integers(0, 5)) == 0:
        text = text[: draw(st.integers(0, len(text)))]
    return record, text


NEEDLES = st.builds(
    lambda phrases, values: Needles(tuple(phrases), tuple((value, ()) for value in values)),
    st.lists(PHRASES, max_size=2),
    st.lists(PHRASES, min_size=1, max_size=2),
)


def taken(piece, gone, says):
    """Whether anything of the piece goes when it is read."""
    return piece.without(gone | set(piece.saying(says)), says) != piece


@settings(max_examples=100, deadline=None)
@given(texts(), NEEDLES)
def test_whatever_says_it_is_seen(made, needles):
    for piece in read_pieces(made[1]):
        if taken(piece, set(), needles.stand_in):
            assert Sighting((), needles).may_be_in(piece.raw)


@settings(max_examples=100, deadline=None)
@given(texts(), st.data())
def test_every_episode_is_seen_where_it_stands(made, data):
    record, text = made
    relations = {one.episode: one for one in record.relations}
    if not relations:
        return
    chosen = {data.draw(st.sampled_from(sorted(relations)))}
    concepts = {one.hash: one for one in record.concepts}
    sighting = Sighting.of(chosen, relations, concepts, None)
    for piece in read_pieces(text):
        if taken(piece, chosen, lambda _: False):
            assert sighting.may_be_in(piece.raw)


@pytest.mark.parametrize("word", ["rex", "𠮷", "straße"])
def test_what_is_escaped_is_seen_although_it_does_not_stand_there(word):
    ends = concept(word), concept("bern")
    one = said(ends[0], "home", ends[1])
    text = emit(Record(ends, (CONTEXT,), (one,)))
    hidden = text.replace(word, "".join(f"\\u{unit:04x}" for unit in units(word)))
    assert word not in hidden
    needles = Needles((), ((word, ()),))
    [piece] = read_pieces(hidden)
    assert taken(piece, set(), needles.stand_in)
    assert Sighting((), needles).may_be_in(hidden)
    known = Sighting.of([one.episode], {one.episode: one}, {c.hash: c for c in ends}, None)
    assert known.may_be_in(hidden)
    if word == "𠮷":  # the needles alone would pass it over
        assert not needles.conceivable(hidden)


def units(word):
    raw = word.encode("utf-16-be")
    return [int.from_bytes(raw[at : at + 2]) for at in range(0, len(raw), 2)]


def test_other_texts_are_passed_over():
    ends = concept("klara"), concept("bern"), concept("oslo")
    here, there = said(ends[0], "home", ends[1]), said(ends[0], "home", ends[2])
    text = emit(Record((ends[0], ends[2]), (CONTEXT,), (there,)))
    concepts = {one.hash: one for one in ends}
    needles = Needles(("Klara lives in Bern.",), (("Bern", ()),))
    sighting = Sighting.of([here.episode], {here.episode: here}, concepts, needles)
    assert not sighting.may_be_in(text)
    [piece] = read_pieces(text, sighting.may_be_in)
    assert piece.raw == text
    assert piece.said == ()
    assert piece.damage is None


def test_all_is_read_where_it_is_not_known_what_an_episode_says():
    ends = concept("klara"), concept("bern")
    one = said(ends[0], "home", ends[1])
    concepts = {end.hash: end for end in ends}
    other = said(ends[1], "home", ends[0])
    assert Sighting.of([one.episode], {}, concepts, None).may_be_in("Graph {}")
    assert Sighting.of([one.episode], {one.episode: one}, {}, None).may_be_in("Graph {}")
    assert Sighting.of([one.episode], {one.episode: other}, concepts, None).may_be_in("Graph {}")
    assert not Sighting.of([one.episode], {one.episode: one}, concepts, None).may_be_in("Graph {}")
    many = [episode_hash(fact_hash("a", "b", str(n)), CONTEXT.hash) for n in range(MOST + 1)]
    assert Sighting.of(many, {}, concepts, None).may_be_in("Graph {}")


def test_words_that_stand_apart_are_seen():
    needles = Needles(("klara home bern",))
    raw = 'Graph {"nodes": [{"value": "bern"}, {"value": "klara"}, {"value": "home"}]}'
    assert not needles.glimpsed(raw)
    assert Sighting((), needles).may_be_in(raw)
