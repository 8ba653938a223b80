"""The concept graph of a real daemon: fed by facts, asked, drawn, lost and made again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

import pytest

from agentd.graph.decompiler import decompile
from agentd.graph.formats.reading import read
from tests.e2e.shell import Shell, a_shell

ALL = "FIND fact FROM user DEPTH 3 LIMIT 50"
_SOON = 60.0


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with a_shell(AGENTD__FACTS__IDLE="1s") as shell:
        shell.ok("up", given="My dog is called Max\n")
        shell.ok("send", "My sister Klara lives in Bern")
        soon(lambda: len(facts(shell)) == 3)
        yield shell


def facts(shell: Shell) -> dict[str, float]:
    """What the graph says, and how sure it is."""
    hops = [row["path"][-1] for row in shell.json("facts", "query", ALL)["rows"]]
    return {f"{h['subject']} {h['predicate']} {h['object']}": h["confidence"] for h in hops}


def soon(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SOON
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_what_was_said_is_found_over_two_steps(shell: Shell) -> None:
    assert facts(shell) == dict.fromkeys(
        ("user dog_name max", "user sister_name klara", "klara home bern"), 0.6
    )
    answer = shell.ok("facts", "query", "FIND concept WHERE predicate = home FROM user").out
    assert "user -sister_name-> klara -home-> bern" in answer
    assert "bern" in shell.ok("facts", "query", "Where does Klara live?").out


def test_a_lost_index_gives_the_same_answers(shell: Shell) -> None:
    before, pictured = facts(shell), shell.json("facts", "graph", "user")["arrows"]
    shell.ok("stop")
    for file in (shell.root / "state").glob("index.db*"):
        file.unlink()
    shell.ok("restart")
    assert facts(shell) == before != {}
    assert shell.json("facts", "graph", "user")["arrows"] == pictured
    assert shell.json("status")["graph"]["facts"] == 3


def test_the_page_and_the_text_may_be_changed_by_hand(shell: Shell) -> None:
    page = shell.workspace / "memory" / "facts.md"
    page.write_text(page.read_text("utf-8").replace("called Max", "called Rex"), "utf-8")
    assert "user dog_name rex" in facts(shell)
    assert "user dog_name max" not in facts(shell)
    (text,) = (shell.workspace / "memory" / "graph").glob("*.0")
    text.write_text(text.read_text().replace('"bern"', '"ulm"'))
    assert "klara home bern" in facts(shell)
    shell.ok("restart")
    assert "klara home bern" in facts(shell)
    problems = shell.json("status")["problems"]
    assert [text.name in p["text"] for p in problems if p["code"] == "graph_damaged"] == [True]
    text.unlink()
    assert "klara home bern" in facts(shell)
    assert "graph_damaged" not in shell.ok("status").out


def test_a_picture_is_a_file_that_needs_nothing_else(shell: Shell) -> None:
    for form in ("svg", "html"):
        shell.ok("facts", "graph", "user", "--format", form, "--output", f"me.{form}")
        text = (shell.root / f"me.{form}").read_text("utf-8")
        assert "klara" in text
        assert "src=" not in text
    assert ET.parse(shell.root / "me.svg").getroot().tag.endswith("svg")
    assert '"user"' in shell.ok("facts", "graph", "klara", "--format", "dot").out


def test_what_is_drawn_is_printed_as_texts_that_say_the_same_and_run(shell: Shell) -> None:
    record = read(shell.ok("facts", "graph", "user", "--format", "0c").out)
    assert decompile(shell.ok("facts", "graph", "user", "--format", "zero").out) == record
    assert {one.predicate for one in record.relations} == {"dog_name", "sister_name", "home"}
    assert "- klara home bern" in shell.ok("facts", "graph", "user", "--format", "bullets").out
    (own,) = (shell.workspace / "memory" / "graph").glob("*.0")
    graphs = shell.json("facts", "run", str(own))["graphs"]
    said = [one for graph in graphs for one in graph["outputs"]["output"]["relations"].values()]
    assert {one["predicate"] for one in said} >= {"dog_name", "sister_name", "home"}
