"""Tables and text of the graph say what the facts say, whatever is cut short, lost or forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentd.core.erasure import Erasure
from agentd.core.errors import StorageError
from agentd.core.fact import FactStatus
from agentd.core.graph import Record
from agentd.memory.graph.graph_exchange import snapshot
from agentd.memory.graph.transfer import import_record
from agentd.testing.graph_doubles import InMemoryGraph
from agentd.zero import parse_all
from agentd.zero.compiler import compile as compiled
from agentd.zero.decompiler import decompile
from agentd.zero.record_graph import emit
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple
from tests.graph.home import ALIASES, NOW, TODAY, Home, fact

DAY = timedelta(days=1)
SISTER, HOME = fact("a1", "sister", "Klara"), fact("b2", "home", "Bern", "my sister")


class Dying(InMemoryGraph):
    """Tables that cannot be written for once."""

    is_dying = False

    async def insert(self, records):
        if self.is_dying:
            raise StorageError("no room")
        return await super().insert(records)


@pytest.fixture
def home():
    home = Home(store=Dying)
    home.start()
    return home


def said_by_others(subject="Tom", relation="owes", value="Otto", name="ada"):
    record = compiled(
        CompilerInput(
            (SemanticTuple(subject, relation, value, 0.8),), ContextMeta(NOW, "x", "main")
        )
    ).record
    return import_record(record, name, 0.5)


async def take(home, record, name="ada"):
    return await home.keeper.add(record, record.relations, name)


def written(home):
    """The triples of the text, each graph of it run and checked."""
    found = []
    for graph in parse_all(home.text()):
        record = decompile(graph).record
        labels = {one.hash: one.label for one in record.concepts}
        found += [
            f"{labels[one.subject]} {one.predicate} {labels[one.object]}"
            for one in record.relations
        ]
    return sorted(found)


async def test_what_facts_say_is_known_and_what_they_no_longer_say_is_not(home):
    await home.learn(SISTER, HOME)
    assert await home.known() == ["klara home bern", "user sister klara"]
    await home.learn(fact("b2", "home", "Bern", "my sister", status=FactStatus.ENDED))
    assert await home.known() == ["user sister klara"]


async def test_a_corrected_name_moves_what_is_known_of_it(home):
    await home.learn(SISTER, HOME)
    await home.learn(
        fact("a1", "sister", "Klara", status=FactStatus.SUPERSEDED), fact("c3", "sister", "Pia")
    )
    assert await home.known() == ["pia home bern", "user sister pia"]


async def test_the_owners_table_of_names_is_followed_at_once(home):
    await home.learn(fact("a1", "boss", "Otto"), fact("b2", "car", "Saab", "the chief"))
    home.workspace.files[ALIASES] = b"the chief = Otto"
    assert await home.known() == ["otto car saab", "user boss otto"]
    home.workspace.files[ALIASES] = b"nonsense"
    await home.keeper.level()
    assert [one.code for one in home.keeper.problems()] == ["graph_aliases"]
    assert "otto car saab" in await home.known()


async def test_repeated_sayings_reinforce_and_are_promoted_and_what_fades_goes(home):
    await home.learn(SISTER)
    before = (await home.service.picture("user")).arrows[0]
    assert (before.history.said, before.history.promoted) == (1, 0)
    await home.say("a1", NOW, NOW + DAY / 24, NOW + DAY / 2)
    home.clock.jump(DAY)
    more = (await home.service.picture("user")).arrows[0]
    assert more.history.said == 3
    assert more.confidence > before.confidence
    assert (await home.keeper.consolidate()).promoted == 1
    home.clock.jump(90 * DAY)
    assert (await home.keeper.consolidate()).swept == 2
    after = (await home.service.picture("user")).arrows[0]
    assert (after.history.said, after.history.promoted) == (3, 3)
    assert after.confidence == pytest.approx(more.confidence)
    await home.keeper.level()
    assert (await home.store.counts()).episodes == 2


async def test_a_fact_said_once_never_fades(home):
    await home.learn(SISTER)
    home.clock.jump(3_650 * DAY)
    await home.keeper.consolidate()
    assert await home.known() == ["user sister klara"]


async def test_a_promotion_goes_with_what_it_counts(home):
    await home.learn(SISTER)
    await home.say("a1", NOW, NOW + DAY / 24, NOW + DAY / 2)
    home.clock.jump(DAY)
    await home.keeper.consolidate()
    await home.forget("a1")
    assert home.records.episodes == {}
    assert await snapshot(home.store) == Record()


async def test_lost_tables_are_made_again_from_facts_and_what_others_said(home):
    await home.learn(SISTER, HOME)
    await home.say("a1", NOW, NOW + DAY / 24, NOW + DAY / 2)
    home.clock.jump(DAY)
    await home.keeper.consolidate()
    await take(home, said_by_others())
    before = await snapshot(home.store)
    home.lose_tables()
    home.start()
    await home.keeper.level()
    assert await snapshot(home.store) == before
    assert len(before.relations) == 6


async def test_a_level_that_fails_is_told_and_done_again(home):
    home.store.is_dying = True
    with pytest.raises(StorageError):
        await home.learn(SISTER)
    assert [one.code for one in home.keeper.problems()] == ["graph_behind"]
    home.store.is_dying = False
    await home.keeper.level()
    assert home.keeper.problems() == ()
    assert await home.known() == ["user sister klara"]


async def test_without_facts_nothing_new_is_fed_and_what_goes_still_goes(home):
    await home.learn(SISTER, HOME)
    home.start(fed=False)
    await home.learn(
        fact("c3", "car", "Saab"), fact("b2", "home", "Bern", status=FactStatus.PROPOSED)
    )
    assert await home.known() == ["user sister klara"]


async def test_the_text_says_each_day_and_only_changed_days_are_written_again(home):
    old = fact("b2", "home", "Bern", "my sister", valid_from=NOW - 3 * DAY)
    await home.learn(SISTER, old)
    await home.keeper.write()
    assert written(home) == ["klara home bern", "user sister klara"]
    assert sorted(home.files.held) == ["memory/graph/2026-11-19.0", TODAY]
    home.files.held["memory/graph/2026-11-19.0"] = b"# as it was"
    await home.learn(fact("c3", "car", "Saab"))
    await home.keeper.write()
    assert home.files.held["memory/graph/2026-11-19.0"] == b"# as it was"
    assert "saab" in home.files.held[TODAY].decode()
    done = await home.keeper.export()
    assert (done.files, done.episodes) == (2, 3)
    assert len(written(home)) == 3


async def test_a_time_at_either_end_of_all_times_keeps_no_text_from_being_written(home):
    for at in (datetime.min, datetime.max):
        said = (SemanticTuple("Tom", "owes", "Otto", 0.8),)
        when = ContextMeta(at.replace(tzinfo=UTC), "x", "main")
        record = compiled(CompilerInput(said, when)).record
        await take(home, import_record(record, "ada", 0.5))
    await home.learn(SISTER)
    await home.forget(SISTER.id, "Klara")
    assert (await home.keeper.export()).files == 2
    assert "memory/graph/9999-12-31.0" in home.files.held


async def test_the_text_is_never_read(home):
    await home.learn(SISTER)
    await home.keeper.write()
    foreign = emit(said_by_others())
    home.files.held["memory/graph/2026-11-20.0"] = foreign.encode()
    home.workspace.files["memory/graph/2026-11-20.0"] = foreign.encode()
    home.lose_tables()
    home.start()
    assert await home.known("tom") == []
    await home.keeper.write()
    assert written(home) == ["user sister klara"]


async def test_forgetting_leaves_no_byte_in_tables_and_text(home):
    await home.learn(SISTER, HOME)
    await home.keeper.write()
    assert await home.forget("b2", "Bern") == 1
    assert written(home) == ["user sister klara"]
    assert "bern" not in home.text()
    assert await home.known() == ["user sister klara"]
    assert await home.keeper.erase(Erasure(spans=("Bern",))) == 0


class CountingGraph(InMemoryGraph):
    """Counts the removals."""

    def __init__(self):
        super().__init__()
        self.removals = 0

    async def remove(self, episodes):
        self.removals += 1
        return await super().remove(episodes)


async def test_an_erasure_that_concerns_nothing_in_the_tables_leaves_them_alone():
    home = Home(store=CountingGraph)
    home.start()
    await home.learn(SISTER)
    assert await home.keeper.erase(Erasure(spans=("Bern",))) == 0
    assert home.store.removals == 0


@pytest.mark.parametrize(
    ("erasure", "goes"),
    [
        (Erasure(spans=("Otto",)), True),
        (Erasure(spans=("owes otto",)), True),
        (Erasure(spans=("I hear that Tom borrowed money from Otto.",)), True),
        (Erasure(sentences=("Otto and Tom fell out.",)), True),
        (Erasure(spans=("Ott",)), False),
        (Erasure(spans=("Tomas owes nobody",)), False),
        (Erasure(spans=("Tom is my neighbour.",)), False),
    ],
)
async def test_what_others_said_goes_where_it_says_what_is_forgotten(home, erasure, goes):
    await take(home, said_by_others())
    (name,) = home.records.episodes
    ref = (await home.store.episodes())[0].refs[0]
    assert await home.keeper.erase(erasure) == int(goes)
    assert (name not in home.records.episodes) is goes
    assert (ref in await home.keeper.kept_out()) is goes
    assert (await home.store.counts()).episodes == int(not goes)


async def test_text_of_unspaced_scripts_is_found_too(home):
    await take(home, said_by_others("小红", "住在", "上海"))
    assert await home.keeper.erase(Erasure(spans=("我的妹妹小红住在上海",))) == 1


async def test_text_of_earlier_releases_that_cannot_be_read_holds_up_nothing():
    home = Home({"memory/graph/2026-01-03.0": emit(said_by_others())})
    for day, said in (
        (1, b"\xff\xfe\x00"),
        (2, b"Graph \xff {}\n" + emit(said_by_others("Eve", name="eve")).encode()),
    ):
        home.workspace.files[f"memory/graph/2026-01-0{day}.0"] = said
    home.start()
    await home.learn(SISTER)
    assert await home.known() == ["user sister klara"]
    assert await home.known("tom") == ["eve owes otto", "tom owes otto"]


async def test_what_stood_in_the_text_of_earlier_releases_is_taken_in_once():
    from_ada = said_by_others()
    own = compiled(
        CompilerInput((SemanticTuple("user", "home", "Rom"),), ContextMeta(NOW, "facts", "main"))
    )
    noted = compiled(
        CompilerInput((SemanticTuple("mars", "is", "red"),), ContextMeta(NOW, "chat", "main"))
    )
    text = "".join((emit(from_ada), "Graph { broken\n", own.graph_text, noted.graph_text))
    share = f"team f1 {'a' * 32} {'b' * 64} sent\nteam gone {'c' * 64} new\n"
    home = Home(
        {
            "memory/graph/2026-01-01.0": text,
            "memory/graph/shared.txt": f"# header\n{share}",
            "memory/graph/taken-back.txt": f"# header\n{'d' * 64}\n",
        }
    )
    home.start()
    await home.keeper.level()
    assert await home.known("tom") == ["tom owes otto"]
    assert await home.known("mars") == ["mars is red"]
    assert await home.known("rom") == []
    assert [(one.fact, one.is_sent) for one in await home.records.shares()] == [
        ("f1", True),
        ("", False),
    ]
    assert await home.keeper.kept_out() == {"d" * 64}
    tellers = sorted(one.teller for one in home.records.episodes.values())
    assert tellers == ["ada", "earlier-graph"]
    home.records.episodes.clear()
    home.lose_tables()
    home.start()
    await home.keeper.level()
    assert (await home.store.counts()).episodes == 0


async def test_facts_that_cannot_be_labels_are_told(home):
    await home.learn(fact("a1", "home", "__"))
    assert [one.code for one in home.keeper.problems()] == ["graph_unfit"]
