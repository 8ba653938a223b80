"""How often facts were said, since when, and whether they last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.graph.consolidation import promotion
from agentd.memory.graph.picture import FactHistory, histories
from agentd.testing import InMemoryGraph
from agentd.zero import compiler
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def said(at=NOW, source="facts", *, denied=False, scope="main", thing="tea"):
    statement = SemanticTuple("user", "likes", thing, 0.5, denied=denied)
    return compiler.compile(CompilerInput((statement,), ContextMeta(at, source, scope))).record


FACT = said().relations[0].fact


async def stored(*records):
    store = InMemoryGraph()
    for record in records:
        await store.insert([record])
    return store


async def history(*records, scopes=None):
    store = await stored(*records)
    return histories(await store.traces([FACT], scopes=scopes)).get(FACT)


async def test_sayings_fade_unless_the_page_of_facts_says_it():
    assert await history() is None
    chat = await history(said(source="chat"))
    assert chat == FactHistory(1, 0, 0, NOW, NOW, stands=False)
    assert chat.memory == "episodic"
    both = await history(said(source="chat"), said(NOW - DAY))
    assert both == FactHistory(2, 0, 0, NOW - DAY, NOW, stands=True)
    assert both.memory == "semantic"


async def test_independent_sayings_count_and_one_context_counts_once():
    records = [said(), said(NOW + DAY), said(NOW + DAY), said(NOW - DAY, denied=True)]
    found = [await history(*order) for order in permutations(records)]
    assert found[0] == FactHistory(2, 1, 0, NOW - DAY, NOW + DAY, stands=True)
    assert all(one == found[0] for one in found)


async def test_what_is_only_denied_does_not_stand():
    assert await history(said(denied=True)) == FactHistory(0, 1, 0, NOW, NOW, stands=False)


async def test_scopes_hide_what_others_said():
    records = said(NOW - DAY), said(source="chat", scope="chat:a")
    assert await history(*records, scopes=["chat:a"]) == FactHistory(
        1, 0, 0, NOW, NOW, stands=False
    )


async def test_each_fact_has_its_own():
    store = await stored(said(), said(NOW - DAY, thing="rain", source="chat"))
    traces = await store.traces([one.fact for one in await store.episodes()])
    told = histories([*traces, *traces])
    assert sorted(one.memory for one in told.values()) == ["episodic", "semantic"]
    assert {one.said for one in told.values()} == {1}


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=3, max_size=8),
    st.integers(0, 400),
)
async def test_promoting_and_sweeping_changes_no_count_and_no_time(sayings, days):
    records = [said(NOW - n * DAY, "chat", denied=denied) for n, denied in sayings]
    store = await stored(*records)
    before = histories(await store.traces([FACT]))[FACT]
    ends = await store.concepts([c.hash for c in records[0].concepts])
    traces = await store.traces([FACT])
    for denied in (False, True):
        if group := [one for one in traces if one.relation.denied is denied]:
            await store.insert([promotion(group, ends, NOW)])
    await store.sweep(NOW + days * DAY)
    after = histories(await store.traces([FACT]))[FACT]
    assert (after.said, after.denied, after.first, after.last) == (
        before.said, before.denied, before.first, before.last
    )  # fmt: skip
    [edge] = await store.edges([c.hash for c in records[0].concepts])
    assert (edge.episodes, edge.newest) == (after.said + after.denied, after.last)
