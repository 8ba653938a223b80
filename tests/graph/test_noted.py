"""What others change in the graph's text is taken in, whenever they do it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentd.domain.fact import Category, Fact, FactSource, Triple
from agentd.graph.compiler import compile as compiled
from agentd.graph.keeper import GraphKeeper
from agentd.graph.noted import NotedText
from agentd.graph.tuples import CompilerInput, ContextMeta, SemanticTuple
from agentd.testing import FakeClock, InMemoryGraph, MemoryWorkspace

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
TODAY = "memory/graph/2026-11-22.0"
OTHER = "memory/graph/mine.0"
MOON = compiled(
    CompilerInput((SemanticTuple("moon", "orbits", "earth"),), ContextMeta(NOW, "chat", "main"))
).graph_text


def fact(name, value):
    return Fact(
        name,
        f"The user's {name} is {value}.",
        Category.PERSONAL,
        FactSource.EXPLICIT,
        0.9,
        valid_from=NOW,
        noted_at=NOW,
        triple=Triple("user", name, value),
    )


class Somebody:
    """Changes the text at a moment of the keeper's work, once."""

    def __init__(self):
        self.moment, self.change = "", dict
        self.files = {}

    def will(self, moment, path, change):
        self.moment = moment
        self.change = lambda: {path: change(self.files.get(path, b""))}

    def comes(self, moment):
        if moment == self.moment:
            self.moment = ""
            self.files |= self.change()


class Tables(InMemoryGraph):
    """Somebody comes before something is put in."""

    def __init__(self, somebody):
        super().__init__()
        self._somebody = somebody

    async def insert(self, records):
        self._somebody.comes("tables")
        return await super().insert(records)


class Shared(MemoryWorkspace):
    """Somebody comes before a file is written."""

    def __init__(self, somebody, clock):
        super().__init__(clock=clock)
        self._somebody = somebody
        somebody.files = self.files

    async def apply(self, intent, reader, by):
        self._somebody.comes("files")
        await super().apply(intent, reader, by)


class Notes(dict):
    """What is noted beside the tables."""

    async def meta(self, name):
        return self.get(name, "")

    async def set_meta(self, name, value):
        self[name] = value


class House:
    """A keeper, and somebody who writes to its files."""

    def __init__(self):
        self.somebody, clock = Somebody(), FakeClock(NOW)
        self.workspace, self.store = Shared(self.somebody, clock), Tables(self.somebody)
        self.notes, self.facts = Notes(), []
        self.keeper = GraphKeeper(self.workspace, self.store, self.notes, clock, self._all)

    async def _all(self):
        self.somebody.comes("facts")
        return tuple(self.facts)

    async def level(self, *facts):
        self.facts = facts
        self.keeper.touch()
        await self.keeper.level()

    async def predicates(self):
        return await self.store.predicates()


@pytest.fixture
def house():
    return House()


@pytest.mark.parametrize(
    ("moment", "path"),
    [(moment, OTHER) for moment in ("facts", "files", "tables")]
    + [(moment, TODAY) for moment in ("facts", "tables")],
)
@pytest.mark.parametrize("after", [["dog", "cat"], ["cat"]], ids=["more", "other"])
async def test_what_others_write_while_facts_change_is_taken_in(house, moment, path, after):
    await house.level(fact("dog", "Max"))
    house.somebody.will(moment, path, lambda text: text + MOON.encode())
    await house.level(*(fact(name, "Mia") for name in after))
    await house.keeper.level()
    assert await house.predicates() == sorted([*after, "orbits"])


async def test_damage_that_others_mend_meanwhile_is_no_damage(house):
    await house.level(fact("dog", "Max"))
    whole = house.workspace.files[TODAY]
    house.workspace.files[TODAY] = whole[:-9]
    house.somebody.will("facts", TODAY, lambda _: whole)
    await house.level(fact("dog", "Max"))
    assert [problem.code for problem in house.keeper.problems()] == ["graph_damaged"]
    await house.keeper.level()
    assert house.keeper.problems() == ()


async def test_what_is_written_alone_is_not_read_again(house):
    await house.level(fact("dog", "Max"))
    await house.keeper.level()
    assert await NotedText(house.workspace, house.notes).is_current()
    await house.keeper.consolidate()
    assert await NotedText(house.workspace, house.notes).is_current()
