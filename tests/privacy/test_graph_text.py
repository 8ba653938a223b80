"""What other agents say stays theirs in the text of the graph: whoever reads it there is
tainted.
"""

from __future__ import annotations

import pytest

from agentd.core.turn import SessionKey
from agentd.workspace.logfiles import LogFiles
from agentd.workspace.versions import Versions
from tests.graph.home import TODAY as TEXT
from tests.graph.home import Home, fact
from tests.graph.test_keeper import said_by_others
from tests.privacy.conftest import SHARED, House

EVIL = "zweig-commands"  # what stands for any hostile text
SISTER = fact("a1", "sister name", "Klara")


@pytest.fixture
async def home(tmp_path):
    made = House(tmp_path / "home", {**SHARED, "projects/a.md": "a\n"})
    await made.start()
    yield made
    await made.stop()


def graph_of(house: House) -> Home:
    """A graph that writes its text into the house, as after a start."""
    graph = Home()
    graph.files = LogFiles(house.root, Versions(house.home / "state" / "versions"))
    graph.start()
    return graph


async def write(graph: Home) -> None:
    record = said_by_others(value=EVIL)
    await graph.keeper.add(record, record.relations, "ada")
    await graph.keeper.write()


def place(house: House, words: str) -> int:
    """The first line of the text that has these words."""
    lines = house.text(TEXT).split("\n")
    return next(number for number, line in enumerate(lines, 1) if words in line)


async def is_tainted(house: House, session: str, line: int) -> bool:
    asked = {"path": TEXT, "from": line, "lines": 1}
    await house.obey(session, [("memory_read", asked)])
    return any(row.source.tainted for row in await house.store.rows(SessionKey(session)))


async def test_words_of_another_agent_taint_as_soon_as_they_are_written_and_after_a_restart(home):
    graph = graph_of(home)
    await graph.learn(SISTER)
    await write(graph)
    assert await is_tainted(home, "chat:before", place(home, EVIL))
    await home.stop()
    await home.start()
    assert await is_tainted(home, "chat:after", place(home, EVIL))
    assert not await is_tainted(home, "chat:own", place(home, "klara"))


async def test_a_turn_that_has_read_them_asks_before_it_writes(home):
    await write(graph_of(home))
    read = ("memory_read", {"path": TEXT})
    write_wish = ("memory_write", {"target": "projects/a.md", "content": EVIL})
    answers = await home.obey("main", [read, write_wish])
    assert EVIL in answers[0]
    assert [question.path for question in home.answers.questions] == ["projects/a.md"]


async def test_what_is_taken_back_leaves_neither_words_nor_a_trace_of_their_lines(home):
    graph = graph_of(home)
    await graph.learn(SISTER)
    record = said_by_others(value=EVIL)
    await write(graph)
    lines = home.text(TEXT).splitlines()
    await graph.keeper.withdraw({one.episode for one in record.relations})
    await graph.keeper.write()
    assert EVIL not in home.text(TEXT)
    assert not any(await home.files.outside(TEXT, lines))
