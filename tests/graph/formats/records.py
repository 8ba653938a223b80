"""Records to write: drawn by hypothesis from the worst of labels, and grown to a size."""

from datetime import UTC, datetime, timedelta, timezone
from random import Random

from hypothesis import strategies as st

from agentd.core.graph import Concept, ConceptContext, Record, Relation
from agentd.zero.formats.records import canonical
from agentd.zero.hashes import concept_hash, context_hash, episode_hash, fact_hash

NOON = datetime(2026, 2, 18, 12, 0, tzinfo=UTC)

_NASTY = st.sampled_from([*r""":>,=\|#{}[]"'`-+ nrtu0 """, "\n", "\r", "\t", "\x00", "\u2028"])
texts = st.text(_NASTY | st.characters(exclude_categories=["Cs"]), max_size=12)
sizes = st.integers(0, 3)
confidences = st.floats(0, 1)
times = st.datetimes(
    datetime(2, 1, 1),
    datetime(9998, 12, 31),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))]),
)


def context(at=NOON, source="facts", scope="main", agent="", session=""):
    digest = context_hash(at, source, scope, agent, session)
    return ConceptContext(digest, at, source, scope, agent, session)


def concept(label, confidence=1.0, created=NOON, updated=NOON, aliases=()):
    return Concept(concept_hash(label), label, confidence, created, updated, aliases)


def relation(subject, predicate, object_, where, confidence=0.9, created=NOON, **more):
    fact = fact_hash(subject.label, predicate, object_.label)
    episode = episode_hash(fact, where.hash)
    ends = subject.hash, predicate, object_.hash
    return Relation(fact, episode, where.hash, *ends, confidence, created, **more)


@st.composite
def records(draw):
    words = draw(st.lists(texts, max_size=5, unique=True))
    aliases = st.lists(texts, max_size=2).map(tuple)
    concepts = [
        concept(word, draw(confidences), draw(times), draw(times), draw(aliases)) for word in words
    ]
    said = st.tuples(times, texts, texts, texts, texts)
    contexts = {one.hash: one for one in (context(*draw(said)) for _ in range(draw(sizes)))}
    relations = {}
    if concepts and contexts:
        for _ in range(draw(st.integers(0, 6))):
            one, other = draw(st.sampled_from(concepts)), draw(st.sampled_from(concepts))
            where = draw(st.sampled_from(list(contexts.values())))
            when = draw(times | st.just(where.event_time))
            more = {"denied": draw(st.booleans()), "refs": draw(aliases)}
            made = relation(one, draw(texts), other, where, draw(confidences), when, **more)
            relations[made.episode] = made
    return canonical(Record(tuple(concepts), tuple(contexts.values()), tuple(relations.values())))


def grown(count, density=3, seed=7, scope="main"):
    """A record with so many concepts, and `density` facts for each, said on three days."""
    chance = Random(seed)
    where = [context(NOON + timedelta(days=day), scope=scope) for day in range(3)]
    concepts = [concept(f"thing-{number}", created=NOON) for number in range(count)]
    said = {}
    for one in concepts:
        for predicate in ("needs", "uses", "has_part", "knows")[:density]:
            day = chance.choice(where)
            made = relation(
                one,
                predicate,
                chance.choice(concepts),
                day,
                round(chance.uniform(0.3, 1), 2),
                day.event_time,
            )
            said[made.episode] = made
    return canonical(Record(tuple(concepts), tuple(where), tuple(said.values())))
