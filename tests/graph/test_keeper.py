"""Text, tables and facts of the graph agree, whatever is cut short, deleted or changed by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agentd.domain.erasure import Needles
from agentd.domain.fact import Category, Fact, FactSource, FactStatus, Triple
from agentd.errors import FileUnreadable, StorageError, WorkspaceError
from agentd.graph.compiler import compile as compiled
from agentd.graph.desk import GraphDesk
from agentd.graph.emitter import emit
from agentd.graph.files import MOST, GraphFiles
from agentd.graph.keeper import GraphKeeper
from agentd.graph.naming import Aliases
from agentd.graph.recall import Recollection
from agentd.graph.stores import snapshot
from agentd.graph.tuples import CompilerInput, ContextMeta, SemanticTuple
from agentd.testing import FakeClock, InMemoryGraph, MemoryWorkspace

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
TODAY = "memory/graph/2026-11-22.0"
ALIASES = "memory/graph/aliases.md"


def fact(fact_id, relation, value, subject="user", **more):
    text = f"The {subject}'s {relation} is {value}."
    usual = {"category": Category.PERSONAL, "source": FactSource.EXPLICIT, "confidence": 0.9}
    triple = Triple(subject, relation, value)
    return Fact(fact_id, text, valid_from=NOW, noted_at=NOW, triple=triple, **{**usual, **more})


class Notes:
    """What is noted beside the tables."""

    def __init__(self):
        self.kept = {}

    async def meta(self, name):
        return self.kept.get(name, "")

    async def set_meta(self, name, value):
        self.kept[name] = value


class Dying(InMemoryGraph):
    """Tables that cannot be written for once, and know how often they were made anew."""

    is_dying = False
    rebuilt = 0

    async def rebuild(self, records):
        self.rebuilt += 1
        return await super().rebuild(records)

    async def insert(self, records):
        if self.is_dying:
            raise StorageError("no room")
        return await super().insert(records)


class Broken(MemoryWorkspace):
    """Files of which none can be changed for once, and that know how often all were looked at."""

    is_broken = False
    looks = 0
    changes = 0

    async def look(self, paths, reader):
        self.looks += 1
        return await super().look(paths, reader)

    async def apply(self, intent, reader, by):
        if self.is_broken:
            raise WorkspaceError("the disk is gone")
        self.changes += 1
        await super().apply(intent, reader, by)


class Home:
    """What is on the disk, and the keeper of it as after a start."""

    def __init__(self):
        self.clock = FakeClock(NOW)
        self.workspace = Broken(clock=self.clock)
        self.facts = []
        self.lose_tables()

    def lose_tables(self):
        self.store, self.notes = Dying(), Notes()

    def start(self, *, fed=True, journal=None):
        parts = self.workspace, self.store, self.notes, self.clock, self._all
        self.keeper = GraphKeeper(*parts, fed=fed, journal=journal)
        recollection = Recollection(self.store, self.clock, resolve=self.keeper.resolve)
        self.desk = GraphDesk(self.keeper, recollection, self.store, self.clock)
        return self.keeper

    async def _all(self):
        return tuple(self.facts)

    async def learn(self, *facts):
        self.facts = [one for one in self.facts if one.id not in {f.id for f in facts}]
        self.facts += facts
        self.keeper.touch()
        await self.keeper.level()

    async def known(self):
        answer = await self.desk.ask("FIND fact FROM user DEPTH 3 LIMIT 50")
        return sorted(str(triple) for triple in answer.triples)


@pytest.fixture
def home():
    home = Home()
    home.start()
    return home


async def test_facts_with_a_triple_arrive_and_others_do_not(home):
    await home.learn(fact("a", "dog name", "Max"), replace(fact("b", "x", "y"), triple=None))
    assert await home.known() == ["user dog name max"]
    (episode,) = await home.store.episodes()
    (context,) = (await home.store.contexts([episode.context])).values()
    assert (context.source, context.scope, episode.refs) == ("facts", "main", ("a",))
    assert (context.event_time, episode.confidence) == (NOW, 0.9)


@pytest.mark.parametrize("letter", ["ü", "漢", "🦜", "\\", "|", '"'])
async def test_long_facts_that_come_together_are_written_in_portions(home, letter):
    await home.learn(*[fact(f"f{n}", "motto", f"{letter * 4_000}{n}") for n in range(25)])
    assert len(await home.store.episodes()) == 25
    assert all(len(data) <= MOST for data in home.workspace.files.values())
    home.lose_tables()
    home.start(fed=False)
    await home.keeper.level()
    assert len(await home.store.episodes()) == 25


@pytest.mark.parametrize("status", [FactStatus.SUPERSEDED, FactStatus.FORGOTTEN])
async def test_what_no_longer_holds_leaves_text_and_tables(home, status):
    dog, cat = fact("a", "dog name", "Max"), fact("b", "cat name", "Mia")
    await home.learn(dog, cat)
    gone = replace(dog, status=status) if status is FactStatus.SUPERSEDED else Fact.grave("a", NOW)
    await home.learn(gone)
    assert await home.known() == ["user cat name mia"]
    assert "max" not in home.workspace.text(TODAY)
    await home.learn(Fact.grave("b", NOW))
    assert TODAY not in home.workspace.files
    assert (await home.store.counts()).concepts == 0


async def test_lost_tables_are_made_again_of_the_text(home):
    await home.learn(fact("a", "dog name", "Max"), fact("b", "home", "Bern"))
    before, text = await home.known(), home.workspace.text(TODAY)
    home.lose_tables()
    home.start(fed=False)
    assert await home.known() == before != []
    assert home.workspace.text(TODAY) == text


async def test_nothing_is_read_or_written_again_without_a_change(home):
    await home.learn(fact("a", "dog name", "Max"))
    written, read = len(home.workspace.authors), len(home.workspace.reads)
    home.start()
    await home.keeper.level()
    await home.keeper.level()
    assert len(home.workspace.authors) == written
    assert set(home.workspace.reads[read:]) <= {ALIASES}


async def test_a_crash_between_text_and_tables_is_made_good(home):
    await home.learn(fact("a", "dog name", "Max"))
    home.store.is_dying = True
    home.facts.append(fact("b", "cat name", "Mia"))
    home.keeper.touch()
    with pytest.raises(StorageError):
        await home.keeper.level()
    assert "mia" in home.workspace.text(TODAY)
    assert [p.code for p in home.keeper.problems()] == ["graph_behind"]
    home.store.is_dying = False
    home.start()
    assert await home.known() == ["user cat name mia", "user dog name max"]
    assert home.workspace.text(TODAY).count('"label": "mia"') == 1
    assert home.keeper.problems() == ()


async def test_a_change_that_came_before_the_start_is_taken_in(home):
    await home.learn(fact("a", "dog name", "Max"), fact("b", "home", "Bern"))
    home.facts = [fact("b", "home", "Ulm"), fact("c", "cat name", "Mia")]
    home.start()
    assert await home.known() == ["user cat name mia", "user home ulm"]


async def test_what_cannot_be_written_is_tried_again(home):
    home.workspace.is_broken = True
    home.facts = [fact("a", "dog name", "Max")]
    with pytest.raises(WorkspaceError):
        await home.keeper.level()
    assert await home.known() == []
    home.workspace.is_broken = False
    assert await home.known() == ["user dog name max"]
    assert home.keeper.problems() == ()


async def test_each_file_is_changed_once_for_all_the_facts_that_come(home):
    await home.learn(*[fact(f"f{n}", "likes", f"tea {n}") for n in range(150)])
    assert len(await home.store.episodes()) == 150
    assert 1 < home.workspace.changes == len(home.workspace.files)


async def test_forgetting_changes_the_one_file_that_says_it(home):
    likes = [fact(f"f{n}", "likes", f"tea {n}") for n in range(150)]
    await home.learn(*likes)
    before = dict(home.workspace.files)
    home.workspace.changes = 0
    home.facts[70] = Fact.grave("f70", NOW)
    home.keeper.touch()
    assert await home.keeper.erase(Needles((likes[70].text,), (("tea 70", ("likes",)),))) == 1
    assert home.workspace.changes == 1
    assert sum(before[path] != data for path, data in home.workspace.files.items()) == 1
    assert not any(b'"tea-70"' in data for data in home.workspace.files.values())
    assert len(await home.store.episodes()) == 149


async def test_facts_that_say_the_same_are_one_episode_until_none_says_it(home):
    await home.learn(fact("a", "dog name", "Max", confidence=0.6), fact("b", "dog name", "max"))
    (episode,) = await home.store.episodes()
    assert (episode.refs, episode.confidence) == (("a", "b"), 0.9)
    await home.learn(Fact.grave("b", NOW))
    (episode,) = await home.store.episodes()
    assert (episode.refs, episode.confidence) == (("a",), 0.6)
    await home.learn(Fact.grave("a", NOW))
    assert await home.store.episodes() == []


async def test_who_is_named_is_one_concept_under_both_names(home):
    await home.learn(fact("a", "sister name", "Klara"), fact("b", "home", "Bern", "sister Klara"))
    assert await home.known() == ["klara home bern", "user sister name klara"]
    assert (await home.desk.ask("FIND fact FROM 'sister Klara' DEPTH 1")).rows
    await home.learn(Fact.grave("a", NOW))
    assert await home.known() == []
    assert (await home.desk.ask("FIND fact FROM 'sister Klara'")).rows


async def test_the_owners_own_aliases_count_at_once_and_mistakes_are_named(home):
    await home.learn(fact("a", "employer", "SBB"))
    home.workspace.files[ALIASES] = b"SBB = Swiss Railways\n"
    assert await home.known() == ["user employer swiss-railways"]
    home.workspace.files[ALIASES] = b"SBB Swiss Railways\n"
    assert await home.known() == ["user employer swiss-railways"]
    assert [p.code for p in home.keeper.problems()] == ["graph_aliases"]
    del home.workspace.files[ALIASES]
    assert await home.known() == ["user employer sbb"]
    assert home.keeper.problems() == ()


@pytest.mark.parametrize("then", [b"SBB = Swiss Railways\n", None])
async def test_a_table_of_aliases_that_cannot_be_read_holds_nothing_up(home, then):
    home.workspace.files[ALIASES] = b"SBB = Swiss Railways\n"
    await home.learn(fact("a", "employer", "SBB"))
    home.workspace.files[ALIASES] = b"\xff\xfe"
    await home.learn(fact("a", "employer", "SBB"), fact("b", "dog name", "Max"))
    assert await home.known() == ["user dog name max", "user employer swiss-railways"]
    assert [p.code for p in home.keeper.problems()] == ["graph_aliases"]
    assert await home.keeper.erase(Needles((), (("nobody", ()),))) == 0
    home.workspace.files[ALIASES] = then or b""
    assert ("user employer sbb" in await home.known()) is (then is None)
    assert home.keeper.problems() == ()


async def test_damage_by_hand_is_named_after_each_start_and_nothing_is_dropped(home):
    await home.learn(fact("a", "dog name", "Max"))
    home.clock.jump(timedelta(days=1))
    await home.learn(fact("b", "cat name", "Mia"))
    text = home.workspace.text(TODAY).replace('"max"', '"rex"')
    home.workspace.files[TODAY] = f"{text}\n".encode()
    for _ in range(2):
        assert await home.known() == ["user cat name mia", "user dog name max"]
        (problem,) = home.keeper.problems()
        assert (problem.code, TODAY in problem.text) == ("graph_damaged", True)
        assert '"rex"' in home.workspace.text(TODAY)
        home.start()
    del home.workspace.files[TODAY]
    assert await home.known() == ["user cat name mia", "user dog name max"]
    assert home.keeper.problems() == ()


async def test_a_file_that_cannot_be_read_is_named_by_the_workspace_alone_and_by_it_once(home):
    await home.learn(fact("a", "dog name", "Max"))
    home.workspace.files["memory/graph/own.0"] = b"\xff"
    await home.known()
    assert home.keeper.problems() == ()
    with pytest.raises(FileUnreadable, match=r"\Amemory/graph/own\.0 is not UTF-8"):
        await home.keeper.erase(Needles((), (("nobody", ()),)))


async def test_text_by_hand_is_taken_in(home):
    await home.learn(fact("a", "dog name", "Max"))
    meta = ContextMeta(NOW, "hand", "main")
    said = compiled(CompilerInput((SemanticTuple("max", "likes", "sticks"),), meta))
    home.workspace.files["memory/graph/own.0"] = said.graph_text.encode()
    assert await home.known() == ["max likes sticks", "user dog name max"]


async def test_erasing_takes_out_what_facts_say_no_longer_and_what_says_it_otherwise(home):
    meta = ContextMeta(NOW, "hand", "main", metadata={"from": "a talk about Max"})
    said = (SemanticTuple("dog", "name", "Max"), SemanticTuple("klara", "likes", "tea"))
    text = compiled(CompilerInput(said, meta, "Max is the dog")).graph_text
    home.workspace.files["memory/graph/own.0"] = text.encode()
    await home.learn(fact("a", "dog name", "Max"), fact("b", "home", "Bern"))
    home.facts[0] = Fact.grave("a", NOW)
    home.keeper.touch()
    assert await home.keeper.erase(Needles((), (("Max", ()),))) == 2
    assert not any(b"max" in data.lower() for data in home.workspace.files.values())
    assert await home.known() == ["user home bern"]
    assert (await home.desk.ask("FIND fact FROM klara")).rows
    assert await home.keeper.erase(Needles((), (("Max", ()),))) == 0


@pytest.mark.parametrize(
    "word", ["Max", "dog", "Klara", "sister", "sticks", "alone", "home", "Bern", "zeppelin"]
)
async def test_erasing_leaves_the_tables_as_the_text_makes_them(home, word):
    await home.learn(
        fact("a", "dog name", "Max"),
        fact("b", "sister name", "Klara"),
        fact("c", "home", "Bern", "sister Klara"),
        fact("d", "home", "Ulm"),
    )
    meta = ContextMeta(NOW, "hand", "main")
    said = (SemanticTuple("Max", "likes", "sticks"), SemanticTuple("Klara", "likes", "Max"))
    record = compiled(CompilerInput(said, meta), Aliases({"sticks": "wood"})).record
    alone = compiled(CompilerInput((SemanticTuple("alone", "is", "zeppelin"),), meta)).record
    lone = replace(record, concepts=(*record.concepts, *alone.concepts))
    home.workspace.files["memory/graph/own.0"] = emit(lone).encode()
    await home.keeper.level()
    await home.keeper.erase(Needles((), ((word, ()),)))
    fresh = InMemoryGraph()
    await fresh.rebuild((await GraphFiles(home.workspace, home.clock).load()).records)
    assert await home.store.counts() == await fresh.counts()
    assert await snapshot(home.store) == await snapshot(fresh)
    rebuilt = home.store.rebuilt
    await home.keeper.level()
    assert home.store.rebuilt == rebuilt, "the tables are not level"


async def test_erasing_goes_through_the_text_once_and_makes_no_tables_anew(home):
    await home.learn(fact("a", "dog name", "Max"), fact("b", "home", "Bern"))
    rebuilt, looks = home.store.rebuilt, home.workspace.looks
    home.facts = [Fact.grave("a", NOW), Fact.grave("b", NOW)]  # nobody has said so to the keeper
    assert await home.keeper.erase(Needles((), (("Bern", ()), ("Max", ())))) == 2
    assert await home.store.episodes() == []
    assert (home.store.rebuilt, home.workspace.files) == (rebuilt, {})
    assert home.workspace.looks == looks + 1


@pytest.mark.parametrize("is_level", [True, False])
async def test_erasing_counts_what_went_with_its_fact_once(home, is_level):
    await home.learn(fact("a", "dog name", "Max"), fact("b", "home", "Bern"))
    home.facts = [Fact.grave("a", NOW), replace(home.facts[1], status=FactStatus.SUPERSEDED)]
    home.keeper.touch()
    if is_level:
        await home.keeper.level()
    assert await home.keeper.erase(Needles(("nothing else",))) == 1
    assert await home.keeper.erase(Needles(("nothing else",))) == 0


async def test_a_graph_that_is_not_fed_still_lets_go(home):
    await home.learn(fact("a", "dog name", "Max"), fact("b", "home", "Bern"))
    home.facts = [Fact.grave("a", NOW), home.facts[1], fact("c", "cat name", "Mia")]
    await home.start(fed=False).erase(Needles(("nothing else",)))
    assert await home.known() == ["user home bern"]


async def test_a_file_that_cannot_be_read_keeps_the_erasing_pending(home):
    home.workspace.files[TODAY] = b"\xff\xfe"
    with pytest.raises(FileUnreadable):
        await home.keeper.erase(Needles((), (("Max", ()),)))


async def test_consolidation_is_recorded_and_leaves_the_tables_level(home):
    await home.learn(fact("a", "dog name", "Max"))
    for hour in range(3):
        meta = ContextMeta(NOW.replace(hour=hour), "chat", "main")
        said = compiled(CompilerInput((SemanticTuple("max", "likes", "sticks", 0.5),), meta))
        home.workspace.files[f"memory/graph/own{hour}.0"] = said.graph_text.encode()
    done = await home.keeper.consolidate()
    assert (done.promoted, done.swept) == (1, 0)
    assert await home.keeper.last() == done
    reads = len(home.workspace.reads)
    assert await home.known() == ["max likes sticks", "user dog name max"]
    assert set(home.workspace.reads[reads:]) <= {ALIASES}
    assert (await home.keeper.consolidate()).promoted == 0
