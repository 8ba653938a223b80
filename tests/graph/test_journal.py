"""The chain of a graph at work: what is entered, what is forgotten, and what a broken one holds up."""

from __future__ import annotations

import pytest

from agentd.domain.erasure import Needles
from agentd.domain.fact import Fact
from agentd.errors import StorageCorrupt
from agentd.graph.chain import HEAD, LOG, Chain, Verdict
from agentd.graph.decompiler import decompile
from agentd.graph.emitter import emit
from agentd.graph.journal import Journal
from agentd.graph.pieces import read_pieces
from agentd.graph.zero.parser import parse
from tests.graph.test_chain import Files
from tests.graph.test_keeper import NOW, TODAY, fact
from tests.graph.test_sharing import Agent

DOG, CAT = fact("a1", "dog name", "Max"), fact("b2", "cat name", "Mia")


class Logging(Agent):
    """A home with a chain."""

    def __init__(self, name):
        self.log = Files()
        super().__init__(name)

    def start(self, *, fed=True):
        self.journal = Journal(Chain(self.log, self.clock))
        return super().start(fed=fed)

    def kinds(self):
        return [line.split()[2] for line in self.log.held.get(LOG, b"").decode().splitlines()]

    def texts(self):
        return "".join(self.workspace.text(path) for path in self.workspace.files)


@pytest.fixture
def ada():
    return Logging("ada")


async def test_without_a_chain_nothing_is_entered():
    agent = Agent("eve")
    await agent.learn(DOG)
    assert '"chain"' not in agent.workspace.text(TODAY)
    assert (await agent.exchange.logged()).verdict == Verdict(0)
    assert not agent.exchange.is_logged


async def test_what_happens_is_entered_in_its_order(ada):
    eve = Logging("eve")
    await ada.learn(DOG)
    await ada.learn(CAT)
    await ada.sharing.share("max", "team")
    await eve.take(await ada.tell())
    await ada.learn(Fact.grave("a1", NOW))
    await eve.take(await ada.tell())
    await eve.learn(CAT)
    await eve.keeper.erase(Needles(("user cat name mia",)))
    assert ada.kinds() == ["inserted", "inserted", "sent", "removed", "sent"]
    assert eve.kinds() == ["taken", "taken_back", "inserted", "erased", "inserted"]
    for agent in (ada, eve):
        found = await agent.exchange.logged()
        assert found.verdict == Verdict(5)
        assert found.changed == ()


async def test_nothing_that_changes_nothing_is_entered(ada):
    await ada.learn(DOG)
    await ada.learn(DOG)
    await ada.keeper.erase(Needles(("something else",)))
    await ada.keeper.consolidate()
    await ada.sharing.send("team")
    assert ada.kinds() == ["inserted"]


async def test_the_salt_goes_with_the_content_and_the_chain_stays_sound(ada):
    await ada.learn(DOG, CAT)
    salt = ada.texts().partition('"chain": "1 ')[2][:64]
    assert len(bytes.fromhex(salt)) == 32
    await ada.learn(Fact.grave("a1", NOW))
    assert salt not in ada.texts() + ada.log.held[LOG].decode()
    found = await ada.exchange.logged()
    assert (found.verdict.is_sound, found.changed) == (True, ())


async def test_words_never_stand_in_the_chain(ada):
    await ada.learn(DOG)
    await ada.learn(Fact.grave("a1", NOW))
    assert b"max" not in ada.log.held[LOG].lower()
    assert "max" not in ada.texts()


async def test_a_text_that_was_changed_with_all_its_hashes_is_named(ada):
    await ada.learn(DOG)
    await ada.learn(CAT)
    text = ada.workspace.text(TODAY)
    first, second = (piece.raw for piece in read_pieces(text))
    receipt = decompile(parse(first)).metadata
    forged = emit(decompile(parse(second)).record, metadata=receipt)
    ada.workspace.files[TODAY] = (forged + second).encode()
    found = await ada.exchange.logged()
    assert found.verdict.is_sound
    assert found.changed == (f"{TODAY}:1",)
    ada.workspace.files[TODAY] = text.encode()
    assert (await ada.exchange.logged()).changed == ()


async def test_a_graph_that_was_damaged_is_not_what_was_entered(ada):
    await ada.learn(DOG)
    text = ada.workspace.text(TODAY)
    ada.workspace.files[TODAY] = text.replace('"aliases": []', '"aliases": ["x"]', 1).encode()
    assert (await ada.exchange.logged()).changed == (f"{TODAY}:1",)


async def test_damage_to_what_was_never_entered_is_no_matter_of_the_chain(ada):
    await ada.learn(DOG)
    text = ada.workspace.text(TODAY)
    ada.workspace.files[TODAY] = f"{text}Graph {{ by hand\n".encode()
    assert (await ada.exchange.logged()).changed == ()


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
    await ada.learn(CAT, Fact.grave("a1", NOW))
    assert await ada.known() == ["user cat name mia"]
    assert "max" not in ada.texts()
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
    assert len(found.changed) == 2, "what stands in the text was entered in the other chain"


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
