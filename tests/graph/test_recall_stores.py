"""Recall over the stores there are: the same answers, with faded facts and audiences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentd.memory.graph.paths import TraversalMode
from agentd.memory.graph.recall import Recollection
from agentd.storage.graph_store import SqliteGraph
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock
from agentd.testing.graph_doubles import InMemoryGraph
from agentd.zero.compiler import compile as compiled
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "memory"])
async def store(request, tmp_path):
    if request.param == "memory":
        yield InMemoryGraph()
        return
    async with Database.open(tmp_path / "index.db", INDEX, synchronous="NORMAL") as db:
        yield SqliteGraph(db)


def said(*triples, days=0.0, scope="main", source="talk"):
    tuples = tuple(
        SemanticTuple(subject, predicate, target, confidence, subject_aliases=aliases)
        for subject, predicate, target, confidence, *aliases in triples
    )
    context = ContextMeta(NOW - timedelta(days=days), source, scope)
    return compiled(CompilerInput(tuples, context)).record


async def test_what_was_compiled_is_recalled(store):
    await store.insert(
        [
            said(("Acme Robotics", "is in", "Berlin", 0.9, "ACME"), ("User", "works at", "Acme Robotics", 0.8)),
            said(("User", "likes", "Tea", 0.5), days=7),
        ]
    )  # fmt: skip
    memory = Recollection(store, FakeClock(NOW))
    answer = await memory.answer("FIND concept FROM user DEPTH 2")
    assert [(row.label, round(row.confidence, 2)) for row in answer.rows] == [
        ("acme-robotics", 0.8), ("berlin", 0.72), ("tea", 0.25),
    ]  # fmt: skip
    found = await memory.about("Which city is the ACME in?", 2)
    assert set(found.as_prompt().splitlines()) == {
        "- acme-robotics is in berlin", "- user works at acme-robotics",
    }  # fmt: skip
    assert (await memory.answer("FIND fact FROM acme")).rows
    assert len((await memory.picture(["user"])).arrows) == 3


async def test_a_faded_fact_is_no_longer_walked(store):
    await store.insert([said(("User", "likes", "Tea", 0.5), days=21)])
    answer = await Recollection(store, FakeClock(NOW)).answer("FIND fact FROM user")
    assert answer.reason == "1 fact is known, but none as sure as 0.1: the surest has 0.062"


async def test_other_audiences_see_nothing_of_it(store):
    await store.insert(
        [
            said(("User", "hides", "Gold", 0.9), source="facts"),
            said(("User", "likes", "Tea", 0.9), scope="group", source="facts"),
        ]
    )
    memory = Recollection(store, FakeClock(NOW))
    seen = await memory.answer("FIND fact FROM user", scopes=["group"])
    assert seen.as_prompt() == "- user likes tea"
    assert (await memory.about("the gold", scopes=["group"])).rows == ()
    stated = await memory.answer("FIND fact WHERE predicate = hides", scopes=["group"])
    assert stated.rows == ()


async def test_each_way_finds_what_it_should(store):
    await store.insert(
        [
            said(("ann", "likes", "tea", 0.2), ("ann", "runs", "shop", 1.0), source="facts"),
            said(("shop", "sells", "cup", 1.0), ("cup", "holds", "tea", 0.9), source="facts"),
            said(("ann", "likes", "tea", 0.8), days=70),
        ]
    )
    memory = Recollection(store, FakeClock(NOW))

    async def ways(by):
        answer = await memory.answer(f"FIND concept FROM ann DEPTH 3 BY {by}")
        return {row.label: (row.way, round(row.score, 3)) for row in answer.rows}

    assert (await ways("paths"))["tea"][0] == "ann -runs-> shop -sells-> cup -holds-> tea"
    assert (await ways("breadth"))["tea"][0] == "ann -likes-> tea"
    assert await ways("activation") == {
        "shop": ("ann -runs-> shop", 0.5),
        "cup": ("ann -runs-> shop -sells-> cup", 0.295),
        "tea": ("ann -likes-> tea", 0.1),  # and passed on to cup, which cannot pass it back
    }
    picture = await memory.picture(["ann"], by=TraversalMode.ACTIVATION)
    assert [(node.label, round(node.score, 3)) for node in picture.nodes] == [
        ("ann", 1.0), ("shop", 0.5), ("cup", 0.295), ("tea", 0.1),
    ]  # fmt: skip
