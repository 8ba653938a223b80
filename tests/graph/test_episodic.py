from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentd.graph import compiler
from agentd.graph.episodic import EpisodicMemory
from agentd.graph.hashing import concept_hash
from agentd.graph.tuples import CompilerInput, ContextMeta, SemanticTuple
from agentd.testing import FakeClock, InMemoryGraph

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
WEEK = timedelta(days=7)


def said(thing, *, at=NOW, source="chat", scope="main", confidence=0.8):
    statement = SemanticTuple("agent", "needs", thing, confidence)
    return compiler.compile(CompilerInput((statement,), ContextMeta(at, source, scope))).record


def things(remembered):
    return {one.relation.object: one.confidence for one in remembered}


@pytest.fixture
def clock():
    return FakeClock(NOW)


@pytest.fixture
def store():
    return InMemoryGraph()


@pytest.fixture
def memory(store, clock):
    return EpisodicMemory(store, clock)


AGENT = [concept_hash("agent")]


async def test_the_surest_comes_first_and_what_is_as_sure_by_time(store, memory):
    records = [
        said("old", at=NOW - WEEK),
        said("new", confidence=0.4),
        said("sure", confidence=0.9),
        said("gone", at=NOW - 10 * WEEK),
        said("fact", at=NOW - 10 * WEEK, source="facts", confidence=0.6),
    ]
    await store.insert(records)
    found = await memory.recall(AGENT, 9)
    assert [one.confidence for one in found] == pytest.approx([0.9, 0.6, 0.4, 0.4])
    order = [one.relation.object for one in found]
    assert order == [concept_hash(name) for name in ("sure", "fact", "new", "old")]
    assert await memory.recall(AGENT, 2) == found[:2]
    assert await memory.recall(AGENT, -1) == ()


async def test_scopes_hide_what_others_said(store, memory):
    await store.insert([said("a"), said("b", scope="chat:x")])
    assert things(await memory.recall(AGENT, 9, scopes=["chat:x"])) == {concept_hash("b"): 0.8}


async def test_touching_really_refreshes(store, memory, clock):
    records = [said("used"), said("left")]
    await store.insert(records)
    clock.jump(2 * WEEK)
    assert await memory.touch([records[0].relations[0].episode]) == 1
    left = things(await memory.recall(AGENT, 9))
    assert left == {concept_hash("used"): 0.8, concept_hash("left"): 0.2}
    clock.jump(5 * WEEK)
    assert [r.object for r in await memory.sweep()] == [concept_hash("left")]
    assert things(await memory.recall(AGENT, 9)) == {concept_hash("used"): 0.025}


async def test_a_clock_that_goes_back_undoes_no_touch_and_sweeps_nothing(store, memory, clock):
    record = said("thing")
    await store.insert([record])
    clock.jump(WEEK)
    await memory.touch([record.relations[0].episode])
    clock.jump(-52 * WEEK)
    assert things(await memory.recall(AGENT, 9)) == {concept_hash("thing"): 0.8}
    await memory.touch([record.relations[0].episode])
    assert await memory.sweep() == []
    clock.jump(53 * WEEK)
    assert things(await memory.recall(AGENT, 9)) == {concept_hash("thing"): 0.4}
