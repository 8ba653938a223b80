"""The concept graph of a real daemon: fed by facts, asked, drawn, lost and made again."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from agentd.domain.belief import Trace
from agentd.errors import GraphError
from agentd.graph.compiler import compile as compiled
from agentd.graph.consolidation import promotion
from agentd.graph.decompiler import decompile
from agentd.graph.emitter import emit
from agentd.graph.formats.levels import Level, at_level
from agentd.graph.formats.reading import read
from agentd.graph.formats.writing import write
from agentd.graph.tuples import CompilerInput, ContextMeta, SemanticTuple
from agentd.graph.zero import parse
from tests.e2e.shell import Shell, a_shell

ALL = "FIND fact FROM user DEPTH 3 LIMIT 50"
_SOON = 60.0
_TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with a_shell(AGENTD__FACTS__IDLE="0s") as shell:
        shell.wake()
        shell.ok("send", "My dog is called Max")
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
    shell.wake()
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
    shell.wake_again()
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
        assert (shell.root / f"me.{form}").stat().st_mode & 0o777 == 0o600
    assert ET.parse(shell.root / "me.svg").getroot().tag.endswith("svg")
    assert '"user"' in shell.ok("facts", "graph", "klara", "--format", "dot").out


def test_what_is_drawn_is_printed_as_texts_that_say_the_same_and_run(shell: Shell) -> None:
    record = read(shell.ok("facts", "graph", "user", "--format", "0c").out)
    text = shell.ok("facts", "graph", "user", "--format", "zero").out
    assert decompile(parse(text)).record == record
    assert {one.predicate for one in record.relations} == {"dog_name", "sister_name", "home"}
    assert "- klara home bern" in shell.ok("facts", "graph", "user", "--format", "bullets").out
    (own,) = (shell.workspace / "memory" / "graph").glob("*.0")
    graphs = shell.json("facts", "run", str(own))["graphs"]
    said = [one for graph in graphs for one in graph["outputs"]["output"]["relations"].values()]
    assert {one["predicate"] for one in said} >= {"dog_name", "sister_name", "home"}


def test_for_older_readers_the_text_is_json_without_colons_in_words(shell: Shell) -> None:
    usual = shell.ok("facts", "graph", "user", "--format", "zero").out
    older = shell.ok("facts", "graph", "user", "--format", "zero", "--compat").out
    words = [word for word in re.findall(r'"([^"]*)"', older) if "T" in word]
    assert words
    assert not any(":" in word for word in words)
    nodes = json.loads(older.removeprefix("Graph "))["nodes"]
    assert [node["id"] for node in nodes] == [node.id for node in parse(usual).nodes]
    with pytest.raises(GraphError):
        decompile(parse(older))
    refused = shell("facts", "graph", "user", "--format", "0c", "--compat")
    assert refused.code == 2
    assert "--format zero" in refused.err


def test_every_form_of_the_page_about_them_is_printed(shell: Shell) -> None:
    def told(form: str) -> str:
        return shell.ok("facts", "graph", "user", "--format", form).out

    record = read(told("0c"))
    assert told("l2") == told("0c") == write(record)
    assert told("l1") == at_level(record, Level.STRUCTURE)
    assert told("l0") == at_level(record, Level.SKELETON)
    assert read(told("ordinals"), is_sealed=False) == record
    assert sorted(told("prompt").splitlines()) == [
        "- klara home bern (0.60)",
        "- user dog_name rex (0.90); sister_name klara (0.60)",
    ]
    assert len(told("bullets").splitlines()) == 3
    shell.ok("facts", "graph", "user", "--format", "ordinals", "--output", "me.0c")
    assert (shell.root / "me.0c").read_text("utf-8") == told("ordinals")


def test_each_way_finds_other_things_and_scores_them(shell: Shell) -> None:
    """Klara is one fact away that is half sure, and two that are nearly sure by way of the club."""
    hand = [
        SemanticTuple("user", "runs", "club", 1.0),
        SemanticTuple("club", "has", "klara", 1.0),
        SemanticTuple("club", "stands in", "thun", 1.0),
    ]
    _write(shell, "ways.0", compiled(CompilerInput(tuple(hand), _at(0, "notes"))).graph_text)

    def found(by: str, kind: str = "concept") -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = shell.json(
            "facts", "query", f"FIND {kind} FROM user DEPTH 3 LIMIT 50 BY {by}"
        )["rows"]
        return rows

    def way(by: str) -> str:
        return str({row["label"]: row["way"] for row in found(by)}["klara"])

    assert way("paths") == "user -runs-> club -has-> klara"
    assert way("breadth") == "user -sister_name-> klara"
    assert way("activation") == "user -sister_name-> klara"
    depths = [row["depth"] for row in found("breadth")]
    assert depths == sorted(depths)
    scores = {row["label"]: row["score"] for row in found("activation")}
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert scores["thun"] == pytest.approx(scores["club"] / 2, rel=0.5)
    assert scores["klara"] > 0.5 > scores["thun"]
    passed = {row["way"]: row["score"] for row in found("activation", "fact")}
    assert passed["user -runs-> club"] == pytest.approx(0.5, abs=0.05)
    assert [row["depth"] for row in found("breadth", "path")][:3] == [1, 1, 1]
    for by, most in (("paths", "klara"), ("activation", "club")):
        shown = shell.json("facts", "graph", "user", "--by", by, "--most", "2")
        assert most in {node["label"] for node in shown["nodes"]}
    assert shell("facts", "graph", "user", "--most", "51").code == 2  # no way finds so many
    refused = shell("facts", "query", "FIND path FROM user BY activation")
    assert refused.code == 1
    assert refused.err.splitlines()[1:3] == ["  FIND path FROM user BY activation", " " * 25 + "^"]
    (shell.workspace / "memory" / "graph" / "ways.0").unlink()


def test_a_table_tells_how_often_since_when_and_which_memory(shell: Shell) -> None:
    said = [
        compiled(CompilerInput((SemanticTuple("rex", "likes", "bones", 0.5),), _at(age, "notes")))
        for age in range(3)
    ]
    denied = SemanticTuple("rex", "likes", "bones", 0.1, denied=True)
    said.append(compiled(CompilerInput((denied,), _at(5, "notes"))))
    _write(shell, "bones.0", "".join(one.graph_text for one in said))
    told = _history(shell, "likes")
    assert (told["said"], told["denied"], told["memory"]) == (3, 1, "episodic")
    assert [told["first"][:10], told["last"][:10]] == [_day(5), _day(0)]
    [line] = [x for x in shell.ok("facts", "graph", "rex").out.splitlines() if " likes " in x]
    assert line.split()[4:] == ["3", "1", _day(5), _day(0), "episodic"]
    assert _history(shell, "dog_name")["memory"] == "semantic"
    traces = [
        Trace(one.record.relations[0], "notes", "main", at, at)
        for one in said[:3]
        for at in [one.record.contexts[0].event_time]
    ]
    ends = {one.hash: one for one in said[0].record.concepts}
    promoted = emit(promotion(traces, ends, datetime.now(UTC)))
    _write(shell, "promoted.0", promoted)
    told = _history(shell, "likes")
    assert (told["said"], told["denied"], told["memory"]) == (3, 1, "semantic")
    for name in ("bones.0", "promoted.0"):
        (shell.workspace / "memory" / "graph" / name).unlink()


def test_what_is_said_three_times_is_promoted_by_the_job_of_every_day(shell: Shell) -> None:
    said = [
        compiled(CompilerInput((SemanticTuple("rex", "fears", "thunder", 0.5),), _at(age, "notes")))
        for age in range(1, 4)
    ]
    _write(shell, "fears.0", "".join(one.graph_text for one in said))
    assert _history(shell, "fears")["memory"] == "episodic"
    before = shell.json("jobs", "list")["jobs"][1]
    assert (before["id"], before["schedule"], before["last"]) == ("graph", {"every": "1d"}, None)
    assert "graph  system  every 1d" in shell.ok("jobs", "list").out
    run = shell.json("jobs", "run", "graph")
    assert (run["reason"], run["promoted"], run["text"]) == (
        "consolidated",
        1,
        "promoted 1, swept 0",
    )
    told = _history(shell, "fears")
    assert (told["said"], told["memory"]) == (3, "semantic")
    done = shell.json("status")["graph"]["consolidated"]
    assert done == {"at": run["at"], "promoted": 1, "swept": 0}
    assert shell.ok("jobs", "run", "graph").out == "quiet: consolidated\npromoted 0, swept 0\n"
    newest, oldest = shell.json("jobs", "history", "graph")["runs"]
    assert oldest == run
    after = shell.json("jobs", "list")["jobs"][1]
    assert after["last"] == newest
    apart = datetime.fromisoformat(after["next_due"]) - datetime.fromisoformat(before["next_due"])
    assert abs(apart) < timedelta(seconds=5)
    [line] = [line for line in shell.ok("jobs", "list").out.splitlines() if "    last " in line]
    assert line.endswith("quiet: consolidated promoted 0, swept 0")
    (shell.workspace / "memory" / "graph" / "fears.0").unlink()
    assert _history(shell, "fears")["memory"] == "semantic"


def test_a_graph_that_cannot_be_read_is_named_once_until_it_is_gone(shell: Shell) -> None:
    file = shell.workspace / "memory" / "graph" / "latin.0"
    file.write_bytes(b"caf\xe9")

    def named() -> list[str]:
        return [p["text"] for p in shell.json("status")["problems"] if file.name in p["text"]]

    assert "klara home bern" in facts(shell)
    [text] = named()
    assert text.startswith("memory/graph/latin.0 is not UTF-8")
    file.unlink()
    soon(lambda: not named())


def _write(shell: Shell, name: str, text: str) -> None:
    (shell.workspace / "memory" / "graph" / name).write_text(text, "utf-8")


def _at(days: int, source: str) -> ContextMeta:
    return ContextMeta(_TODAY - timedelta(days=days), source, "main")


def _day(ago: int) -> str:
    return f"{_TODAY - timedelta(days=ago):%Y-%m-%d}"


def _history(shell: Shell, predicate: str) -> dict[str, Any]:
    arrows = shell.json("facts", "graph", "rex")["arrows"]
    [told] = [arrow["history"] for arrow in arrows if arrow["predicate"] == predicate]
    return dict(told)
