"""The chain of a graph at work: what is entered, what is forgotten, and what a broken one holds
up.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentd.core.erasure import Erasure
from agentd.core.errors import StorageCorrupt
from agentd.core.fact import Fact
from agentd.memory.graph.journal import HEAD, LOG, GraphJournal, JournalChain, Verdict
from tests.graph.home import NOW, fact
from tests.graph.test_chain import Files
from tests.graph.test_sharing import Agent

DOG, CAT = fact("a1", "dog name", "Max"), fact("b2", "cat name", "Mia")


class Logging(Agent):
    """A home with a chain."""

    def __init__(self, name):
        self.log = Files()
        super().__init__(name)

    def start(self, *, fed=True):
        self.journal = GraphJournal(JournalChain(self.log, self.clock))
        return super().start(fed=fed)

    def kinds(self):
        return [line.split()[2] for line in self.log.held.get(LOG, b"").decode().splitlines()]


@pytest.fixture
def ada():
    return Logging("ada")


async def test_without_a_chain_nothing_is_entered():
    agent = Agent("eve")
    await agent.learn(DOG)
    assert (await agent.exchange.logged()).verdict == Verdict(0)
    assert not agent.exchange.is_logged


async def test_what_happens_is_entered_in_its_order(ada):
    eve = Logging("eve")
    await ada.learn(DOG)
    await ada.learn(CAT)
    await ada.sharing.share("max", "team")
    await eve.take(await ada.tell())
    await ada.learn(Fact.tombstone("a1", NOW))
    await eve.take(await ada.tell())
    await eve.learn(CAT)
    await eve.learn(Fact.tombstone("b2", NOW))
    assert ada.kinds() == ["inserted", "inserted", "sent", "removed", "sent"]
    assert eve.kinds() == ["taken", "taken_back", "inserted", "removed"]
    for agent, entries in ((ada, 5), (eve, 4)):
        found = await agent.exchange.logged()
        assert found.verdict == Verdict(entries)
        assert found.changed == ()


async def test_nothing_that_changes_nothing_is_entered(ada):
    await ada.learn(DOG)
    await ada.learn(DOG)
    await ada.keeper.erase(Erasure(spans=("something else",)))
    await ada.keeper.consolidate()
    await ada.sharing.send("team")
    assert ada.kinds() == ["inserted"]


async def told(ada):
    """Another agent that took in what ada said, with its row."""
    eve = Logging("eve")
    await ada.learn(DOG)
    await ada.sharing.share("max", "team")
    await eve.take(await ada.tell())
    (row,) = eve.records.episodes.values()
    return eve, row


async def test_the_salt_goes_with_the_content_and_the_chain_stays_sound(ada):
    eve, row = await told(ada)
    number, _, salt = row.receipt.partition(" ")
    assert (number, len(bytes.fromhex(salt))) == ("1", 32)
    await eve.keeper.erase(Erasure(spans=("max",)))
    assert eve.records.episodes == {}
    assert salt not in eve.log.held[LOG].decode()
    assert eve.kinds() == ["taken", "erased"]
    found = await eve.exchange.logged()
    assert (found.verdict.is_sound, found.changed) == (True, ())


async def test_words_never_stand_in_the_chain(ada):
    await ada.learn(DOG)
    await ada.learn(Fact.tombstone("a1", NOW))
    assert b"max" not in ada.log.held[LOG].lower()


async def test_what_was_changed_since_it_was_taken_in_is_named(ada):
    eve, row = await told(ada)
    assert (await eve.exchange.logged()).changed == ()
    eve.records.episodes[row.episode] = replace(row, receipt=f"1 {'0' * 64}")
    eve.start()
    found = await eve.exchange.logged()
    assert found.verdict.is_sound
    assert found.changed == ("ada",)


async def test_a_broken_chain_is_named_and_holds_nothing_up(ada):
    await ada.learn(DOG)
    sound = dict(ada.log.held)
    ada.log.held[LOG] = sound[LOG].replace(b"inserted", b"excerpts")
    ada.start()
    await ada.journal.look()
    (problem,) = ada.journal.problems()
    assert (problem.code, "entry 1 of memory/graph/chain.txt" in problem.text) == (
        "graph_chain",
        True,
    )
    broken = dict(ada.log.held)
    await ada.learn(CAT, Fact.tombstone("a1", NOW))
    assert await ada.known() == ["user cat name mia"]
    assert ada.log.held == broken
    found = await ada.exchange.logged()
    assert (found.verdict.bad, found.changed) == (1, ())
    with pytest.raises(StorageCorrupt):
        found.verdict.check()
    assert ada.journal.problems() == (problem,)
    ada.log.held = dict(sound)
    await ada.learn(fact("c3", "home", "Bern"))
    assert ada.journal.problems() == ()
    assert (await ada.exchange.logged()).verdict == Verdict(2)


async def test_a_change_while_it_runs_is_found_when_somebody_looks(ada):
    await ada.learn(DOG)
    ada.log.held[LOG] = ada.log.held[LOG].replace(b"inserted", b"excerpts")
    assert (await ada.exchange.logged()).verdict.bad == 1
    await ada.learn(CAT)
    assert ada.kinds() == ["excerpts"]
    assert ada.journal.problems()


async def test_moved_away_it_begins_anew_without_a_restart(ada):
    await ada.learn(DOG)
    await ada.learn(CAT)
    ada.log.held.clear()
    await ada.learn(fact("c3", "home", "Bern"))
    found = await ada.exchange.logged()
    assert found.verdict == Verdict(1)


@pytest.mark.parametrize("torn", [0, 1, 100, 150])
async def test_what_a_crash_left_of_an_entry_is_taken_away(ada, torn):
    await ada.learn(DOG)
    ada.log.torn = torn
    await ada.learn(CAT)
    assert [one.code for one in ada.journal.problems()] == ["graph_chain"]
    assert await ada.known() == ["user cat name mia", "user dog name max"]
    ada.start()
    await ada.learn(fact("c3", "home", "Bern"))
    assert ada.journal.problems() == ()
    assert (await ada.exchange.logged()).verdict == Verdict(2)


async def test_an_entry_that_the_head_does_not_count_yet_counts(ada):
    await ada.learn(DOG)
    ada.log.stuck = HEAD
    await ada.learn(CAT)
    assert ada.journal.problems()
    ada.start()
    await ada.learn(fact("c3", "home", "Bern"))
    found = await ada.exchange.logged()
    assert (found.verdict, found.changed) == (Verdict(3), ())
    assert ada.kinds() == ["inserted"] * 3


async def test_cut_before_its_first_entry_is_counted_a_chain_is_none_the_worse(ada):
    ada.log.torn = 10_000
    await ada.learn(DOG)
    assert ada.journal.problems()
    ada.start()
    await ada.learn(CAT)
    assert (await ada.exchange.logged()).verdict == Verdict(2)
