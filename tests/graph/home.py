"""A graph with all that it is made of, as after a start."""

from __future__ import annotations

from datetime import UTC, datetime

from agentd.core.erasure import Erasure
from agentd.core.fact import Category, Evidence, Fact, FactSource, FactStatus, Triple
from agentd.core.turn import SessionKey
from agentd.memory.graph.earlier_text import EarlierText
from agentd.memory.graph.keeper import GraphKeeper
from agentd.memory.graph.recall import Recollection
from agentd.memory.graph.service import GraphService
from agentd.memory.graph.text import GraphText
from agentd.testing.clock import FakeClock
from agentd.testing.graph_doubles import (
    InMemoryGraph,
    MemoryGraphRecords,
    MemoryNotes,
    MemoryTextFiles,
)
from agentd.testing.workspace import MemoryWorkspace

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
TODAY = "memory/graph/2026-11-22.0"
ALIASES = "memory/graph/aliases.md"


def fact(fact_id, relation, value, subject="user", **more):
    """A fact that holds, unless it says otherwise."""
    text = f"The {subject}'s {relation} is {value}."
    usual = {
        "category": Category.PERSONAL,
        "source": FactSource.EXPLICIT,
        "confidence": 0.9,
        "valid_from": NOW,
        "noted_at": NOW,
    }
    return Fact(fact_id, text, triple=Triple(subject, relation, value), **{**usual, **more})


class KnownFacts:
    """Facts and their evidence."""

    def __init__(self):
        self.all: list[Fact] = []
        self.said: dict[str, list[Evidence]] = {}

    async def facts(self):
        return tuple(self.all)

    async def evidence(self, fact_ids):
        return {one: self.said.get(one, []) for one in fact_ids}


class Home:
    """What is on the disk, and the keeper of it as after a start."""

    def __init__(self, files=(), store=InMemoryGraph):
        self.clock = FakeClock(NOW)
        self.make_store = store
        self.workspace = MemoryWorkspace(dict(files), clock=self.clock)
        self.files = MemoryTextFiles()
        self.records = MemoryGraphRecords()
        self.known_facts = KnownFacts()
        self.lose_tables()

    def lose_tables(self):
        self.store, self.notes = self.make_store(), MemoryNotes()

    def start(self, *, fed=True, journal=None):
        self.keeper = GraphKeeper(
            self.workspace,
            self.store,
            self.records,
            self.known_facts,
            GraphText(self.files, self.store, self.notes),
            EarlierText(self.workspace, self.files, self.records, self.clock),
            self.clock,
            fed=fed,
            journal=journal,
        )
        recollection = Recollection(self.store, self.clock, resolve=self.keeper.resolve)
        self.service = GraphService(self.keeper, recollection, self.store, self.clock)
        return self.keeper

    async def learn(self, *facts):
        ids = {one.id for one in facts}
        held = self.known_facts
        held.all = [one for one in held.all if one.id not in ids] + list(facts)
        for one in facts:
            if one.status is FactStatus.FORGOTTEN:
                held.said.pop(one.id, None)
        self.keeper.touch()
        await self.keeper.level()

    async def say(self, fact_id, *times, session="main"):
        """These pieces of evidence for a fact come in."""
        fresh = [Evidence(at, SessionKey(session), 1) for at in times]
        self.known_facts.said.setdefault(fact_id, []).extend(fresh)
        self.keeper.touch()
        await self.keeper.level()

    async def forget(self, fact_id, *spans):
        """As a forgetting does it: the fact first, then what says it."""
        await self.learn(Fact.tombstone(fact_id, self.clock.now()))
        return await self.keeper.erase(Erasure(spans=spans))

    async def known(self, name="user"):
        answer = await self.service.ask(f"FIND fact FROM '{name}' DEPTH 3 LIMIT 50")
        return sorted(str(triple) for triple in answer.triples)

    def text(self):
        """All of the written text."""
        return b"".join(self.files.held.values()).decode()
