"""What other agents took back, or was forgotten, does not come in again."""

from __future__ import annotations

import pytest

from agentd.domain.erasure import Needles
from agentd.domain.fact import Fact
from agentd.domain.workspace import is_graph_text
from agentd.errors import GraphError
from agentd.graph.withdrawn import MOST, Withdrawn
from agentd.testing import FakeClock, MemoryWorkspace
from tests.graph.test_keeper import NOW, fact
from tests.graph.test_sharing import DOG, SISTER, TOLD, Agent

FILE = "memory/graph/taken-back.txt"
BERN = fact("c3", "home", "Bern", "sister Klara")


@pytest.fixture
async def ada():
    ada = Agent("ada")
    await ada.learn(DOG, SISTER, BERN)
    await ada.sharing.share("klara", "team")
    return ada


@pytest.fixture
def bob():
    return Agent("bob")


async def taken(agent, text):
    done = await agent.exchange.take(text, "ada", 0.5)
    return done.new, done.known, done.withdrawn, done.kept_out


async def test_an_older_message_does_not_bring_in_what_was_taken_back(ada, bob):
    older = await ada.tell()
    await bob.take(older)
    await ada.learn(Fact.grave("c3", NOW))
    await bob.take(await ada.tell())
    assert await taken(bob, older) == (0, 1, 0, 1)
    assert await bob.heard() == ["ada sister_name klara"]
    assert "bern" not in bob.workspace.text(FILE)


async def test_no_message_brings_in_what_was_forgotten_here(ada, bob):
    await bob.take(await ada.tell())
    assert await bob.keeper.erase(Needles(("klara home bern",))) == 1
    assert await taken(bob, await ada.tell(whole=True)) == (0, 1, 0, 1)
    assert await bob.heard() == ["ada sister_name klara"]


async def test_it_stays_out_when_the_tables_are_lost(ada, bob):
    older = await ada.tell()
    await bob.take(older)
    await bob.keeper.erase(Needles(("klara home bern",)))
    bob.lose_tables()
    bob.start()
    assert await taken(bob, older) == (0, 1, 0, 1)


async def test_what_is_shared_anew_comes_anew(ada, bob):
    await bob.take(await ada.tell())
    await ada.sharing.unshare("bern")
    await bob.take(await ada.tell())
    await ada.sharing.share("bern", "team")
    assert await taken(bob, await ada.tell()) == (1, 0, 0, 0)
    assert await bob.heard() == TOLD


async def test_a_name_whose_words_are_still_here_counts_as_known(ada, bob):
    text = await ada.tell()
    await bob.take(text)
    await Withdrawn(bob.workspace).note({r.refs[0] for r in await bob.store.episodes()})
    assert await taken(bob, text) == (0, 2, 0, 0)
    assert await bob.heard() == TOLD


async def test_a_file_that_cannot_be_read_is_named_and_holds_up_only_messages(ada, bob):
    older = await ada.tell()
    await bob.take(older)
    bob.workspace.files[FILE] = b"# mine\n\nall of it\n"
    with pytest.raises(GraphError, match=r"line 3: memory/graph/taken-back\.txt cannot be read"):
        await bob.take(older)
    assert [one.code for one in bob.keeper.problems()] == ["graph_taken_back"]
    assert await bob.keeper.erase(Needles(("klara home bern",))) == 1
    assert await bob.heard() == ["ada sister_name klara"]
    text = bob.workspace.text(FILE)
    assert text.startswith("# mine\n\nall of it\n")
    bob.workspace.files[FILE] = text.replace("all of it\n", "").encode()
    assert await taken(bob, older) == (0, 1, 0, 1)
    assert bob.keeper.problems() == ()


async def test_own_words_that_go_leave_no_name(ada):
    await ada.learn(Fact.grave("a1", NOW))
    await ada.keeper.erase(Needles(("max",)))
    assert FILE not in ada.workspace.files


async def test_the_newest_names_stay():
    withdrawn = Withdrawn(MemoryWorkspace(clock=FakeClock(NOW)))
    names = [f"{number:064x}" for number in range(MOST + 2)]
    await withdrawn.note(names[:MOST])
    await withdrawn.note([names[MOST], names[5]])
    await withdrawn.note([names[MOST + 1]])
    assert await withdrawn.names() == frozenset(names[2:])


def test_the_file_is_a_part_of_the_graph():
    assert is_graph_text(FILE)
