"""The concept graph of a real daemon: fed by facts, asked, drawn, lost and made again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from agentd.core.errors import GraphError
from agentd.zero import parse
from agentd.zero.decompiler import decompile
from agentd.zero.formats.reading import read
from agentd.zero.formats.writing import WritingLevel, at_level, write
from tests.e2e.shell import Shell, a_shell
from tests.waiting import wait_until

ALL = "FIND fact FROM user DEPTH 3 LIMIT 50"


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with a_shell(AGENTD__FACTS__IDLE="0s") as shell:
        shell.wake()
        shell.ok("send", "My dog is called Max")
        shell.ok("send", "My sister Klara lives in Bern")
        wait_until(lambda: len(facts(shell)) == 3, "all three are known")
        yield shell


def facts(shell: Shell) -> dict[str, float]:
    """What the graph says, and how sure it is."""
    hops = [row["path"][-1] for row in shell.json("facts", "query", ALL)["rows"]]
    return {f"{h['subject']} {h['predicate']} {h['object']}": h["confidence"] for h in hops}


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


def test_the_text_is_written_on_demand_and_never_read(shell: Shell) -> None:
    told = shell.json("facts", "export-graph")
    assert (told["folder"], told["episodes"]) == ("memory/graph", 3)
    texts = list((shell.workspace / "memory" / "graph").glob("*.0"))
    assert len(texts) == told["files"]
    for text in texts:
        text.write_text(text.read_text().replace('"bern"', '"ulm"'))
    assert "klara home bern" in facts(shell)
    shell.wake_again()
    assert "klara home bern" in facts(shell)
    shell.ok("facts", "export-graph")
    assert not [text for text in texts if '"ulm"' in text.read_text()]


def test_statements_are_compiled_and_taken_in(shell: Shell) -> None:
    said = "rex | chases | squirrels\nsquirrels | live in | the park\n"
    shell.ok("facts", "compile", "-", "-o", "said.0", given=said)
    told = shell.json("facts", "import-graph", "said.0", "--from", "Ada")
    assert (told["new"], told["known"]) == (2, 0)
    rows = shell.json("facts", "query", "FIND fact FROM rex DEPTH 2")["rows"]
    assert "squirrels live_in the-park" in {
        "{subject} {predicate} {object}".format(**row["path"][-1]) for row in rows
    }


def test_a_picture_is_a_file_that_needs_nothing_else(shell: Shell) -> None:
    shell.ok("facts", "graph", "user", "--format", "html", "--output", "me.html")
    text = (shell.root / "me.html").read_text("utf-8")
    assert "klara" in text
    assert "src=" not in text
    assert (shell.root / "me.html").stat().st_mode & 0o777 == 0o600
    assert '"user"' in shell.ok("facts", "graph", "klara", "--format", "dot").out


def test_what_is_drawn_is_printed_as_texts_that_say_the_same_and_run(shell: Shell) -> None:
    record = read(shell.ok("facts", "graph", "user", "--format", "0c").out)
    text = shell.ok("facts", "graph", "user", "--format", "zero").out
    assert decompile(parse(text)).record == record
    assert {one.predicate for one in record.relations} == {"dog_name", "sister_name", "home"}
    assert "- klara home bern" in shell.ok("facts", "graph", "user", "--format", "prompt").out
    shell.ok("facts", "export-graph")
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
    assert told("l1") == at_level(record, WritingLevel.STRUCTURE)
    assert told("l0") == at_level(record, WritingLevel.SKELETON)
    klara, user = sorted(told("prompt").splitlines())
    assert klara == "- klara home bern (0.60)"
    assert user.startswith("- user ")
    assert {"dog_name max (0.60)", "sister_name klara (0.60)"} == {*user[7:].split("; ")}
    shell.ok("facts", "graph", "user", "--format", "0c", "--output", "me.0c")
    assert (shell.root / "me.0c").read_text("utf-8") == told("0c")


def test_each_way_finds_other_things_and_scores_them(shell: Shell) -> None:
    """Klara is one fact away that is half sure, and two that are surer by way of the club."""
    hand = "user | runs | club\nclub | has | klara\nclub | stands in | thun\n"
    shell.ok("facts", "compile", "-", "-o", "ways.0", given=hand)
    shell.ok("facts", "import-graph", "ways.0", "--trust", "1")

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


def test_the_work_of_every_day_is_a_job(shell: Shell) -> None:
    before = shell.json("jobs", "list")["jobs"][1]
    assert (before["id"], before["schedule"], before["last"]) == ("graph", {"every": "1d"}, None)
    assert "graph  system  every 1d" in shell.ok("jobs", "list").out
    run = shell.json("jobs", "run", "graph")
    assert (run["reason"], run["text"]) == (
        "consolidated",
        f"promoted {run['promoted']}, swept {run['swept']}",
    )
    done = shell.json("status")["graph"]["consolidated"]
    assert done == {"at": run["at"], "promoted": run["promoted"], "swept": run["swept"]}
    assert shell.ok("jobs", "run", "graph").out == "quiet: consolidated\npromoted 0, swept 0\n"
    newest, oldest = shell.json("jobs", "history", "graph")["runs"]
    assert oldest == run
    after = shell.json("jobs", "list")["jobs"][1]
    assert after["last"] == newest
    apart = datetime.fromisoformat(after["next_due"]) - datetime.fromisoformat(before["next_due"])
    assert abs(apart) < timedelta(seconds=5)
