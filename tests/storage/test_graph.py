"""The contract of GraphStore, over every implementation."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, date, datetime, time, timedelta, timezone
from hashlib import sha256

import pytest
from msgspec.structs import replace

from agentd.core.errors import GraphError
from agentd.core.evidence import (
    CONSOLIDATION,
    FACTS,
    SAID,
    SHARED,
    Consolidated,
    belief,
    evidence,
    faded_confidence,
)
from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    EpisodeHash,
    FactHash,
    GraphCounts,
    InsertCounts,
    NeighbourQuery,
    Record,
    Relation,
    StoredEpisode,
)
from agentd.memory.graph.picture import histories
from agentd.storage.graph_store import SWEPT, SqliteGraph
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import InMemoryGraph

NOW = datetime(2026, 11, 22, 9, 30, 15, 123456, tzinfo=UTC)
DAY = timedelta(days=1)


def digest(*parts):
    return sha256("|".join(parts).encode()).digest()


def named(label):
    return ConceptHash(digest(label))


def fact(subject, predicate, thing):
    return FactHash(digest(subject, predicate, thing))


def said(
    subject="agent",
    predicate="needs",
    thing="memory",
    *,
    at=NOW,
    source="chat",
    scope="main",
    session="",
    agent="",
    confidence=0.5,
    aliases=(),
    **fields,
):
    """One statement as a record."""
    context = ConceptContext(
        ContextHash(digest("context", at.isoformat(), source, scope, session, agent)),
        at,
        source,
        scope,
        agent=agent,
        session=session,
    )
    name = fact(subject, predicate, thing)
    relation = Relation(
        name,
        EpisodeHash(sha256(name.value + context.hash.value).digest()),
        context.hash,
        named(subject),
        predicate,
        named(thing),
        confidence,
        at,
        **fields,
    )
    ends = (Concept(named(end), end, confidence, at, at) for end in sorted({subject, thing}))
    concepts = (replace(c, aliases=aliases) if c.label == subject else c for c in ends)
    return Record(tuple(concepts), (context,), (relation,))


def episode(record):
    return record.relations[0].episode


def promotion(*records, confidence=0.9):
    """A promotion of statements of one fact."""
    context = max((record.contexts[0] for record in records), key=lambda c: c.event_time)
    refs = [evidence(episode(r), r.contexts[0].event_time) for r in records]
    like = records[0].relations[0]
    made = said(at=context.event_time, source=CONSOLIDATION, scope=context.scope, session=refs[0])
    relation = replace(
        made.relations[0],
        fact=like.fact,
        confidence=confidence,
        subject=like.subject,
        predicate=like.predicate,
        object=like.object,
        denied=like.denied,
        refs=tuple(refs),
    )
    return replace(made, concepts=records[0].concepts, relations=(relation,))


@pytest.fixture(params=["sqlite", "memory"])
def store(request):
    if request.param == "memory":
        return InMemoryGraph()
    return SqliteGraph(request.getfixturevalue("index_db"), few=12)  # to choose among more


async def everything(store):
    episodes = await store.episodes()
    concepts = [r.subject for r in episodes] + [r.object for r in episodes]
    return (
        await store.counts(),
        episodes,
        await store.traces([r.fact for r in episodes]),
        sorted((await store.concepts(concepts)).values(), key=lambda c: c.hash),
        sorted(
            (await store.contexts([r.context for r in episodes])).values(), key=lambda c: c.hash
        ),
        await store.edges(concepts),
    )


async def test_a_record_comes_back_as_it_was_stored(store):
    record = said(aliases=("AI", "daemon"), denied=True, refs=("a|b", "ü😀"), session="chat:a")
    assert await store.insert([record]) == InsertCounts(2, 1, 1, 0)
    assert await store.episodes() == list(record.relations)
    concepts = await store.concepts([c.hash for c in record.concepts] + [named("else")])
    assert sorted(concepts.values(), key=lambda c: c.label) == list(record.concepts)
    assert await store.contexts([record.contexts[0].hash]) == {
        record.contexts[0].hash: record.contexts[0]
    }
    assert await store.counts() == GraphCounts(2, 1, 1, 1, {"needs": 1})


async def test_times_are_told_in_utc_whatever_zone_they_came_in(store):
    away = timezone(timedelta(hours=5, minutes=30))
    await store.insert([said(at=NOW.astimezone(away))])
    [relation] = await store.episodes()
    assert relation.created == NOW
    [trace] = await store.traces([relation.fact])
    assert trace.said == NOW


async def test_an_episode_that_is_there_changes_nothing_and_concepts_are_united(store):
    first = said(aliases=("ai",), confidence=0.5)
    again = replace(
        first,
        concepts=tuple(
            replace(c, confidence=0.7, created=NOW - DAY, updated=NOW + DAY, aliases=("bot",))
            for c in first.concepts
        ),
        relations=(replace(first.relations[0], confidence=0.9),),
    )
    await store.insert([first])
    assert await store.insert([again, first]) == InsertCounts(0, 0, 0, 2)
    assert [r.confidence for r in await store.episodes()] == [0.5]
    found = await store.concepts([named("agent")])
    assert found[named("agent")] == Concept(
        named("agent"), "agent", 0.7, NOW - DAY, NOW + DAY, ("ai", "bot")
    )


@pytest.mark.parametrize("times", [1, 4])
async def test_two_sayings_of_a_fact_are_one_edge(store, times):
    records = [said(at=NOW + n * DAY, confidence=0.5) for n in range(2)]
    for _ in range(times):
        await store.insert(records)
    [edge] = await store.edges([named("agent"), named("memory")])
    assert (edge.confidence, edge.episodes, edge.newest) == (0.75, 2, NOW + DAY)
    assert (edge.subject, edge.predicate, edge.object) == (
        named("agent"),
        "needs",
        named("memory"),
    )


async def test_edges_come_from_both_ends_each_once_in_order(store):
    await store.insert(
        [said("a", "is", "b"), said("c", "is", "a"), said("a", "is", "a"), said("x")]
    )
    edges = await store.edges([named("a"), named("a"), named("nobody")])
    assert [edge.fact for edge in edges] == sorted(
        [fact("a", "is", "b"), fact("c", "is", "a"), fact("a", "is", "a")]
    )
    assert await store.edges([]) == []


async def test_more_concepts_than_a_statement_takes(store):
    records = [said(f"s{n}", "is", f"o{n}") for n in range(1_500)]
    await store.insert(records)
    names = [named(f"s{n}") for n in range(1_500)]
    assert len(await store.edges(names)) == 1_500
    assert len(await store.concepts(names)) == 1_500
    assert len(await store.named([f"o{n}" for n in range(1_500)])) == 1_500
    assert await store.remove([episode(record) for record in records]) == 1_500
    assert await store.counts() == GraphCounts()


async def test_names_are_found_by_label_and_alias_whatever_the_case(store):
    await store.insert([said("agent", aliases=("Straße", "AI")), said("memory", "is", "ram")])
    for name in ("agent", "AGENT", "ai", "STRASSE"):
        assert [c.label for c in await store.named([name])] == ["agent"], name
    both = await store.named(["ram", "memory", "nothing"])
    assert [c.hash for c in both] == sorted([named("ram"), named("memory")])


async def test_facts_with_a_predicate_come_the_surest_first(store):
    sure = {"a": 0.2, "b": 0.9, "c": 0.5}
    await store.insert([said(name, "is", "x", confidence=sure[name]) for name in sure])
    await store.insert([said("d", "has", "x")])
    assert [edge.confidence for edge in await store.stating("is", 2)] == [0.9, 0.5]
    assert await store.stating("are", 5) == []


async def test_scopes_choose_the_episodes_that_count(store):
    await store.insert(
        [
            said(scope="main", confidence=0.5),
            said(scope="chat:a", confidence=0.6),
            said("secret", "is", "agent", scope="main"),
        ]
    )
    agent = [named("agent")]
    assert len(await store.edges(agent)) == 2
    [edge] = await store.edges(agent, scopes=["chat:a"])
    assert (edge.confidence, edge.episodes) == (0.6, 1)
    assert await store.edges(agent, scopes=[]) == []
    assert [e.confidence for e in await store.stating("needs", 9, scopes=["main"])] == [0.5]
    traces = await store.traces([fact("agent", "needs", "memory")], scopes=["chat:a"])
    assert [trace.scope for trace in traces] == ["chat:a"]


async def test_episodes_fade_by_half_in_a_week_and_those_of_facts_stand(store):
    await store.insert([said(confidence=0.8), said("user", "likes", "tea", source=FACTS)])
    names = [named("agent"), named("user")]

    async def worth(now):
        return {e.predicate: e.confidence for e in await store.edges(names, now=now)}

    assert await worth(NOW + 7 * DAY) == {"needs": pytest.approx(0.4), "likes": 0.5}
    assert await worth(NOW + 70 * DAY) == {"needs": 0.0, "likes": 0.5}
    assert await worth(NOW - 70 * DAY) == {"needs": 0.8, "likes": 0.5}
    assert await worth(None) == {"needs": 0.8, "likes": 0.5}


async def test_denials_lower_what_was_said(store):
    records = [
        said(confidence=0.8),
        said(session="b", confidence=0.5),
        said(session="c", confidence=0.5, denied=True),
    ]
    await store.insert(records)
    [edge] = await store.edges([named("agent")])
    assert edge.confidence == pytest.approx(0.9 * 0.5)
    assert edge.episodes == 3


def told(agent="ada", space="team", **fields):
    """A saying of another agent's."""
    return said(source=SHARED, scope=f"space:{space}", agent=agent, **fields)


async def test_what_one_sender_says_often_counts_once_the_surest_of_it(store):
    await store.insert([told(session=f"{n}", confidence=0.1 + n / 100) for n in range(12)])
    await store.insert([told(space="family", confidence=0.45)])
    for now in (None, NOW):
        [edge] = await store.edges([named("agent")], now=now)
        assert (edge.confidence, edge.episodes) == (0.45, 1)
        assert await store.stating("needs", 1, now=now) == [edge]
    [edge] = await store.edges([named("agent")], scopes=["space:team"], now=NOW)
    assert (edge.confidence, edge.episodes) == (pytest.approx(0.21), 1)
    await store.insert([told("bob", confidence=0.5), said(source=FACTS), said(session="x")])
    [edge] = await store.edges([named("agent")])
    assert (edge.confidence, edge.episodes) == (pytest.approx(belief([0.45, 0.5, 0.5, 0.5])), 4)
    traces = await store.traces([edge.fact])
    assert {trace.teller for trace in traces} == {"ada", "bob", ""}
    assert histories(traces)[edge.fact].said == 4


async def test_when_the_surest_is_taken_back_the_next_counts(store):
    sure, less = told(confidence=0.6), told(space="family", confidence=0.4)
    await store.insert([sure])
    await store.insert([less])
    await store.remove([episode(sure)])
    [edge] = await store.edges([named("agent")], now=NOW)
    assert (edge.confidence, edge.episodes) == (0.4, 1)


async def test_facts_are_chosen_by_what_a_sender_says_at_its_surest(store):
    often = [told(thing="rank", session=f"{n}", confidence=0.3) for n in range(9)]
    sure = [said(thing=f"t{n}", source=FACTS, confidence=0.4) for n in range(15)]
    await store.insert([*often[:4], *sure])
    await store.insert(often[4:])
    for found in (
        await store.stating("needs", 2, now=NOW),
        await store.edges([named("agent")], now=NOW, most=2),
    ):
        assert {edge.confidence for edge in found} == {0.4}


async def test_sayings_of_other_agents_are_not_promoted(store):
    await store.insert([told(session=f"{n}", at=NOW - n * DAY) for n in range(4)])
    assert await store.promotable(NOW) == []
    mixed = [told(session="y"), *(said(session=f"{n}", scope="space:team") for n in range(2))]
    await store.insert(mixed)
    assert await store.promotable(NOW) == []


async def test_a_promotion_stands_for_all_that_its_sender_says(store):
    counted = [told(session=f"{n}") for n in range(3)]
    await store.insert([*counted, promotion(*counted), told(session="again", confidence=0.8)])
    [edge] = await store.edges([named("agent")])
    assert (edge.confidence, edge.episodes) == (0.9, 3)


async def test_removing_takes_what_nothing_else_needs(store):
    kept, gone = (
        said(aliases=("ai",)),
        said("agent", "has", "tools", at=NOW + DAY, aliases=("bot",)),
    )
    await store.insert([kept])
    before = await everything(store)
    await store.insert([gone])
    assert await store.remove([episode(gone), EpisodeHash(bytes(32))]) == 1
    assert await everything(store) == before
    assert await store.named(["bot", "tools"]) == []
    assert await store.remove([episode(gone)]) == 0
    await store.remove([episode(kept)])
    assert await store.counts() == GraphCounts()
    assert await store.named(["agent", "ai"]) == []


async def test_a_concept_that_stood_by_itself_stays(store):
    lone = Record(concepts=(Concept(named("memory"), "memory", 0.3, NOW, NOW),))
    record = said()
    await store.insert([lone, record])
    await store.remove([episode(record)])
    assert await store.counts() == GraphCounts(concepts=1)
    assert (await store.concepts([named("memory")]))[named("memory")].confidence == 0.3


async def test_touching_lets_an_episode_fade_anew_and_never_sooner(store):
    record, standing = said(confidence=0.8), said(source=FACTS)
    await store.insert([record, standing])
    both = [episode(record), episode(standing), EpisodeHash(bytes(32))]
    assert await store.touch(both, NOW + 7 * DAY) == 1
    assert await store.touch(both, NOW - 7 * DAY) == 1
    traces = {t.relation.episode: t for t in await store.traces([record.relations[0].fact])}
    assert traces[episode(record)].since == NOW + 7 * DAY
    assert traces[episode(record)].said == NOW
    assert traces[episode(record)].effective(NOW + 14 * DAY) == pytest.approx(0.4)
    assert traces[episode(standing)].since == NOW


async def test_sweeping_takes_what_has_faded_and_no_more(store):
    records = [
        said("a", confidence=0.64),  # below 0.01 after 42 days and a bit
        said("b", confidence=0.65),
        said("c", confidence=0.64),
        said("d", source=FACTS, confidence=0.001),
        said("e", confidence=0.005),
        said("f", confidence=0.0, at=NOW + 365 * DAY),
    ]
    await store.insert(records)
    await store.touch([episode(records[2])], NOW + DAY)
    assert {r.subject for r in await store.sweep(NOW)} == {named("e"), named("f")}
    assert await store.sweep(NOW + 42 * DAY) == []
    gone = await store.sweep(NOW + 42 * DAY + timedelta(seconds=1))
    assert gone == list(records[0].relations)
    assert await store.named(["a"]) == []
    assert [c.label for c in await store.named(["b", "c", "d"])]
    later = await store.sweep(NOW + 365 * DAY)
    assert [r.episode for r in later] == sorted(map(episode, records[1:3]))
    assert (await store.counts()).facts == 1


async def test_three_surviving_sayings_of_one_scope_can_be_promoted(store):
    three = [said(at=NOW - n * DAY) for n in range(3)]
    apart = [said("x", at=NOW - n * DAY, scope=f"chat:{n}") for n in range(3)]
    mixed = [said("y", at=NOW - n * DAY, denied=n == 0) for n in range(3)]
    faint = [said("z", at=NOW - n * DAY, confidence=0.1) for n in range(3)]
    standing = [said("f", at=NOW - n * DAY, source=SHARED) for n in range(3)]
    own = [said("o", at=NOW - n * DAY, source=FACTS, confidence=0.9) for n in range(2)]
    await store.insert([*three, *apart, *mixed, *faint, *standing, *own])
    found = await store.promotable(NOW)
    assert [t.relation.episode for t in found] == sorted(map(episode, three))
    assert len(await store.promotable(NOW + 14 * DAY)) == 3  # 0.5 is 0.125, and 0.113 and 0.103
    assert await store.promotable(NOW + 15 * DAY) == []
    await store.touch([episode(r) for r in three], NOW + 15 * DAY)
    assert len(await store.promotable(NOW + 15 * DAY)) == 3
    await store.insert([said("o", at=NOW, source=SAID, confidence=0.9)])
    assert len(await store.promotable(NOW + 200 * DAY)) == 3 - 3
    assert len([t for t in await store.promotable(NOW + DAY) if t.source in {FACTS, SAID}]) == 3


async def test_an_episode_can_be_promoted_until_the_moment_it_is_worth_a_tenth(store):
    await store.insert([said(session=f"{n}", confidence=0.2) for n in range(3)])
    tick = timedelta(milliseconds=1)
    assert len(await store.promotable(NOW + 7 * DAY - tick)) == 3
    assert await store.promotable(NOW + 7 * DAY) == []


async def test_what_was_promoted_counts_once_and_never_again(store):
    records = [said(at=NOW - n * DAY, confidence=0.5) for n in range(3)]
    promoted = promotion(*records, confidence=0.85)
    await store.insert([*records, promoted])
    [edge] = await store.edges([named("agent")], now=NOW + 100 * DAY)
    assert (edge.confidence, edge.episodes, edge.newest) == (0.85, 3, NOW)
    assert await store.promotable(NOW) == []
    assert len(await store.sweep(NOW + 100 * DAY)) == 3
    assert await store.edges([named("agent")], now=NOW + 100 * DAY) == [edge]
    await store.insert(records)
    assert await store.promotable(NOW) == []
    assert await store.edges([named("agent")], now=NOW) == [edge]


async def test_a_promotion_may_come_before_what_it_counts(store):
    records = [said(at=NOW - n * DAY) for n in range(3)]
    await store.insert([promotion(*records), *records])
    assert await store.promotable(NOW) == []
    [edge] = await store.edges([named("agent")])
    assert (edge.confidence, edge.episodes) == (0.9, 3)


async def test_a_promotion_goes_with_what_it_counts(store):
    records = [said(at=NOW - n * DAY) for n in range(4)]
    await store.insert([*records, promotion(*records)])
    assert await store.remove([episode(records[0])]) == 1
    assert len(await store.episodes()) == 3
    assert [t.relation.episode for t in await store.promotable(NOW)] == sorted(
        map(episode, records[1:])
    )


async def some_records():
    records = [
        said("a", "is", "b", aliases=("A1",)),
        said("a", "is", "c", at=NOW - DAY, aliases=("A2",), confidence=0.9),
        said("a", "is", "b", at=NOW + DAY, denied=True),
        *[said(at=NOW - n * DAY, session="x") for n in range(3)],
        Record(concepts=(Concept(named("alone"), "alone", 1.0, NOW, NOW),)),
    ]
    return [*records, promotion(*records[3:6]), records[0]]


# Rows without the numbers that they name each other by.
_TABLES = (
    "SELECT hash, label, confidence, created, updated FROM graph_concepts",
    "SELECT hash, said, source, scope, agent, session FROM graph_contexts",
    "SELECT name FROM graph_predicates",
    "SELECT * FROM graph_promoted",
    "SELECT * FROM graph_consolidations",
    (
        "SELECT c.hash, e.hash, m.confidence, m.created, m.updated FROM graph_mentions m"
        " JOIN graph_concepts c ON c.id = m.concept LEFT JOIN graph_episodes e ON e.id = m.episode"
    ),
    (
        "SELECT c.hash, e.hash, name, folded FROM graph_aliases a"
        " JOIN graph_concepts c ON c.id = a.concept LEFT JOIN graph_episodes e ON e.id = a.episode"
    ),
    (
        "SELECT f.hash, s.hash, p.name, o.hash, stands, rank, newest, scope, f.confidence, "
        "denied, since, until, observed FROM graph_facts f JOIN graph_predicates p ON p.id = "
        "f.predicate JOIN graph_concepts s ON s.id = f.subject JOIN graph_concepts o ON o.id = "
        "f.object"
    ),
    (
        "SELECT e.hash, f.hash, c.hash, e.confidence, e.created, e.denied, e.refs, e.said, "
        "e.source, e.scope, e.since, e.until, e.observed, e.promoted FROM graph_episodes e JOIN "
        "graph_facts f ON f.id = e.fact JOIN graph_contexts c ON c.id = e.context"
    ),
)


def dump(conn):
    tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name LIKE 'graph_%'"
    assert conn.execute(tables).fetchone()[0] == len(_TABLES)
    return [sorted(map(repr, map(tuple, conn.execute(query)))) for query in _TABLES]


async def test_removing_and_touching_give_the_same_tables_as_never_having_said_it(index_db):
    store = SqliteGraph(index_db)
    records = await some_records()
    await store.insert(records)
    before = await index_db.read(dump)
    more = [
        said("a", "is", "b", at=NOW - 3 * DAY, aliases=("A9",), scope="chat:a", confidence=1.0),
        said("a", "is", "b", at=NOW + 3 * DAY, denied=True, source=FACTS),
        said("a", "was", "d"),
    ]
    later = promotion(records[0], records[1])
    await store.insert([*more, later])
    assert await index_db.read(dump) != before
    await store.remove([episode(record) for record in (*more, later)])
    assert await index_db.read(dump) == before
    await store.touch([episode(records[0])], NOW + 9 * DAY)
    [(since, until)] = await index_db.read(
        lambda conn: conn.execute(
            "SELECT since, until FROM graph_facts WHERE confidence = 0.9 AND until IS NOT NULL"
        ).fetchall()
    )
    assert since < until


# Of each concept these are the surest; `now` is later, so that what fades has faded.
HUB = [
    said("hub", "is", f"t{n}", confidence=0.3 + n / 100, at=NOW - n % 7 * DAY, scope=f"s{n % 2}")
    for n in range(40)
] + [
    said("hub", "has", f"f{n}", confidence=0.2 + n / 100, source=FACTS, scope=f"s{n % 3}")
    for n in range(40)
] + [
    said(f"t{n}", "knows", "hub", confidence=0.9, at=NOW - n * DAY, denied=n == 1) for n in range(9)
] + [said("hub", "is", "t3", confidence=0.6, scope="s1", session="again")]  # fmt: skip


def surest(edge):
    return -edge.confidence, -edge.newest.timestamp(), edge.fact


@pytest.mark.parametrize("scopes", [None, ["s1"], ["main", "s0"]])
@pytest.mark.parametrize("most", [1, 7, 30])
async def test_of_a_hub_come_the_surest_facts_and_few_others(store, most, scopes):
    await store.insert(HUB)
    now = NOW + 5 * DAY
    hub, beside = named("hub"), named("t3")
    everything = await store.edges([hub, beside], scopes=scopes, now=now)
    found = await store.edges([hub, beside], scopes=scopes, now=now, most=most, about=["knows"])
    assert [e for e in everything if e in found] == found
    assert len(found) <= 16 * most
    for concept in (hub, beside):
        own = sorted((e for e in everything if concept in (e.subject, e.object)), key=surest)
        knows = [edge for edge in own if edge.predicate == "knows"]
        assert {*own[:most], *knows[:most]} <= {*found}


async def test_facts_that_are_left_out_can_be_asked_for_by_predicate(store):
    await store.insert([said("hub", "is", f"t{n}", confidence=0.9) for n in range(20)])
    await store.insert([said("hub", "owns", "boat", confidence=0.2), said("x", "likes", "hub")])
    found = await store.edges([named("hub")], now=NOW, most=2, about=["owns", "nothing"])
    assert "owns" in {edge.predicate for edge in found}
    assert len(found) <= 8
    assert await store.predicates() == ["is", "likes", "owns"]
    assert len(await store.edges([named("hub")], now=NOW)) == 22


def around(*labels, **view):
    return NeighbourQuery([named(label) for label in labels], **view)


async def test_a_walk_is_sent_the_facts_that_it_asks_for(store):
    await store.insert([said("a", "knows", "b"), said("b", "knows", "c", scope="chat:x")])

    def walk():
        first = yield around("a", scopes=["main"])
        second = yield around("b", now=NOW, most=2, about=["knows"])
        return first, second

    first, second = await store.walk(walk())
    assert first == await store.edges([named("a")], scopes=["main"])
    assert second == await store.edges([named("b")], now=NOW, most=2, about=["knows"])
    assert (len(first), len(second)) == (1, 2)


async def test_a_walk_that_asks_for_nothing_has_its_outcome(store):
    def walk():
        return "here"
        yield around("a")

    assert await store.walk(walk()) == "here"


async def test_a_walk_that_fails_raises_and_leaves_the_store_well(store):
    await store.insert([said("a", "knows", "b")])

    def walk():
        yield around("a")
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        await store.walk(walk())
    assert len(await store.edges([named("a")])) == 1


async def test_all_of_a_walk_sees_one_state(index_db):
    store = SqliteGraph(index_db)
    await store.insert([said("a", "knows", "b")])
    begun, queued = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def walk():
        first = yield around("a")
        loop.call_soon_threadsafe(begun.set)
        queued.wait(10)
        return first, (yield around("a"))

    async with asyncio.TaskGroup() as group:
        walking = group.create_task(store.walk(walk()))
        await begun.wait()
        inserting = group.create_task(store.insert([said("a", "knows", "c")]))
        reading = group.create_task(store.edges([named("a")]))
        await asyncio.sleep(0)  # both wait for the database's thread now
        queued.set()
    first, second = walking.result()
    assert first == second
    assert inserting.result().facts == 1
    assert len(reading.result()) == 2


async def test_labels_are_told_of_those_that_are_there(store):
    await store.insert([said("a", "knows", "b")])
    assert await store.labels([named("b"), named("a"), named("nobody")]) == {
        named("a"): "a",
        named("b"): "b",
    }
    assert await store.labels([]) == {}


async def test_what_others_see_does_not_crowd_out_what_a_scope_sees(store):
    await store.insert(
        [said("hub", "is", f"t{n}", scope="main", confidence=1.0) for n in range(20)]
    )
    await store.insert([said("hub", "is", "small", scope="group", confidence=0.2)])
    found = await store.edges([named("hub")], scopes=["group"], now=NOW, most=3)
    assert [edge.object for edge in found] == [named("small")]
    [edge] = await store.stating("is", 3, scopes=["group"], now=NOW)
    assert edge.object == named("small")


@pytest.mark.parametrize("later", [0, 6])
async def test_the_surest_facts_with_a_predicate_are_told_at_any_time(store, later):
    await store.insert(HUB)
    now = NOW + later * DAY
    every = await store.stating("is", 1000, now=now)
    assert len(every) == 40
    assert every == sorted(every, key=surest)
    assert await store.stating("is", 5, now=now) == every[:5]


async def test_a_concept_that_outlives_a_sweep_says_what_is_left(store):
    await store.insert(
        [
            said("a", "is", "b", confidence=0.9, at=NOW - DAY),
            said("a", "is", "c", confidence=0.3, source=FACTS),
        ]
    )
    assert len(await store.sweep(NOW + 100 * DAY)) == 1
    found = (await store.concepts([named("a")]))[named("a")]
    assert (found.confidence, found.created) == (0.3, NOW)


async def test_a_sweep_of_many_goes_in_several_transactions(index_db):
    store = SqliteGraph(index_db)
    await store.insert([said(f"s{n}", confidence=0.5) for n in range(2 * SWEPT + 1)])
    before = index_db.commits
    assert len(await store.sweep(NOW + 100 * DAY)) == 2 * SWEPT + 1
    assert index_db.commits >= before + 3
    assert await store.counts() == GraphCounts()


async def test_the_log_is_long_only_while_many_records_come(index_db):
    store = SqliteGraph(index_db)

    def pages(conn):
        return conn.execute("PRAGMA wal_autocheckpoint").fetchone()[0]

    usual = await index_db.read(pages)
    await store.insert([said(f"s{n}") for n in range(200)])
    assert await index_db.read(pages) > usual
    await store.insert([said("one")])
    assert await index_db.read(pages) == usual


def broken():
    record = said()
    relation = record.relations[0]
    naive = NOW.replace(tzinfo=None)
    return {
        "confidence": replace(record, relations=(replace(relation, confidence=1.1),)),
        "nan": replace(record, relations=(replace(relation, confidence=float("nan")),)),
        "naive": replace(record, relations=(replace(relation, created=naive),)),
        "naive context": replace(record, contexts=(replace(record.contexts[0], event_time=naive),)),
        "no context": replace(record, contexts=()),
        "no concept": replace(record, concepts=()),
        "half a letter": replace(record, relations=(replace(relation, refs=("\ud800",)),)),
        "no evidence": said(source=CONSOLIDATION, refs=("f-1",)),
    }


@pytest.mark.parametrize("what", broken())
async def test_what_is_not_sound_is_refused_and_nothing_added(store, what):
    with pytest.raises(GraphError):
        await store.insert([said("good"), broken()[what]])
    assert await store.counts() == GraphCounts()


async def test_consolidations_are_told_the_last_first(store):
    done = [Consolidated(n, 2 * n, NOW + n * DAY) for n in range(3)]
    for one in done:
        await store.note(one)
    assert await store.consolidations(2) == [done[2], done[1]]


def test_beliefs_do_not_depend_on_the_order_and_stay_between_0_and_1():
    worth = [0.1, 0.7, 0.3, 0.9999999, 1e-9, 0.2]
    assert belief(worth) == belief(worth[::-1]) == belief(sorted(worth))
    assert belief([0.1]) == 0.1
    assert belief([]) == 0.0
    assert belief([1.0] * 9) == 1.0
    assert belief([1.0], [1.0]) == 0.0
    assert 0.0 <= belief([0.999] * 9_000, [0.001]) <= 1.0


def test_fading_has_a_half_life_of_a_week_and_an_end():
    week = 7 * 86_400
    assert faded_confidence(0.8, week) == 0.4
    assert faded_confidence(0.8, -week) == 0.8
    assert faded_confidence(0.01, 0) == 0.01
    assert faded_confidence(0.01, 1) == 0.0


async def test_what_is_held_tells_what_was_said_and_when(store):
    record = said(at=NOW - DAY, refs=("f1",), confidence=0.25, denied=True)
    await store.insert([record, said("else")])
    held = await store.stored_episodes()
    assert held[episode(record)] == StoredEpisode(0.25, True, ("f1",), NOW - DAY)
    assert len(held) == 2


@pytest.mark.parametrize("day", [date(2026, 11, 22), date.min, date.max])
async def test_what_was_said_on_a_day_is_told_from_what_was_said_beside_it(store, day):
    first, last = (datetime.combine(day, one, UTC) for one in (time.min, time.max))
    tick = timedelta(microseconds=1)
    there = [said(at=first), said("b", at=last)]
    beside = [] if day is date.min else [said("c", at=first - tick)]
    beside += [] if day is date.max else [said("d", at=last + tick)]
    await store.insert([*there, *beside])
    found = await store.said_on(day)
    assert [one.episode for one in found] == sorted(map(episode, there))


async def test_what_is_removed_leaves_no_byte_once_the_index_is_erased(tmp_path):
    path = tmp_path / "index.db"
    async with Database.open(path, INDEX) as db:
        store = SqliteGraph(db)
        record = said("zebrafinch")
        await store.insert([record, said("else")])
        await store.remove([episode(record)])
        await SqliteChunks(db).erase(())
        left = b"".join(one.read_bytes() for one in tmp_path.glob("index.db*"))
        assert b"zebrafinch" not in left
        assert b"else" in left
