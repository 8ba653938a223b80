from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.domain.belief import belief
from agentd.graph import compiler
from agentd.graph.consolidation import promotion
from agentd.graph.semantic import SemanticMemory, summary
from agentd.graph.tuples import CompilerInput, ContextMeta, SemanticTuple
from agentd.testing import InMemoryGraph

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
DAY = timedelta(days=1)
SURE = st.lists(st.floats(0, 1), max_size=8)


def said(at=NOW, source="facts", confidence=0.5, *, denied=False, scope="main"):
    statement = SemanticTuple("user", "likes", "tea", confidence, denied=denied)
    return compiler.compile(CompilerInput((statement,), ContextMeta(at, source, scope))).record


FACT = said().relations[0].fact


async def held(*records, scopes=None):
    store = InMemoryGraph()
    for record in records:
        await store.insert([record])
    return (await SemanticMemory(store).held([FACT], scopes=scopes)).get(FACT)


async def test_facts_stand_from_the_start_and_single_sayings_do_not():
    assert await held(said(source="chat")) is None
    found = await held(said(confidence=0.7), said(source="chat"))
    assert found is not None
    assert (found.confidence, found.observations, found.denials) == (0.7, 1, 0)
    assert found.first_seen == found.last_seen == NOW


async def test_independent_sayings_add_up_and_one_context_counts_once():
    found = await held(said(), said(at=NOW + DAY), said(at=NOW + DAY), said(at=NOW - DAY))
    assert (found.confidence, found.observations) == (0.875, 3)
    assert (found.first_seen, found.last_seen) == (NOW - DAY, NOW + DAY)


async def test_a_denial_lowers_what_is_held_whatever_the_order():
    records = [
        said(),
        said(NOW + DAY, confidence=0.8),
        said(NOW - DAY, denied=True, confidence=0.4),
    ]
    found = [await held(*order) for order in permutations(records)]
    assert found[0].confidence == pytest.approx(0.9 * 0.6)
    assert (found[0].observations, found[0].denials) == (2, 1)
    assert all(one == found[0] for one in found)


async def test_what_is_only_denied_is_held_for_nothing():
    found = await held(said(denied=True))
    assert (found.confidence, found.observations, found.denials) == (0.0, 0, 1)


async def test_scopes_hide_what_others_hold():
    assert await held(said(scope="main"), scopes=["chat:a"]) is None


async def test_a_promotion_counts_its_sayings_and_knows_when_they_were():
    store = InMemoryGraph()
    records = [said(NOW - n * DAY, "chat") for n in range(3)]
    await store.insert(records)
    traces = await store.promotable(NOW)
    ends = await store.concepts([c.hash for c in records[0].concepts])
    await store.insert([promotion(traces, ends, NOW)])
    await store.sweep(NOW + 365 * DAY)
    found = (await SemanticMemory(store).held([FACT]))[FACT]
    assert (found.observations, found.first_seen, found.last_seen) == (3, NOW - 2 * DAY, NOW)
    assert summary(await store.traces([FACT]) * 2) == found


@given(SURE, SURE)
@settings(max_examples=100)
def test_beliefs_lie_between_0_and_1(support, denial):
    assert 0.0 <= belief(support, denial) <= 1.0
    assert belief(support, denial) <= belief(support)
    assert belief(support) == belief(support[::-1])
    assert belief(support) >= max(support, default=0.0) - 1e-12
