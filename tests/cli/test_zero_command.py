"""`agentd facts run`, and the texts that `agentd facts graph` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from agentd.app.cli.app import app
from agentd.app.cli.graph import DRAWN, Format
from agentd.interfaces.commands import facts
from agentd.memory.graph.paths import TraversalMode as GraphWay
from agentd.memory.graph.record import Form
from agentd.zero import parse
from agentd.zero.decompiler import decompile
from agentd.zero.formats.reading import read
from agentd.zero.formats.writing import WritingLevel, at_level, write
from agentd.zero.record_graph import emit
from tests.graph.formats.records import grown
from tests.scripted_daemon import ScriptedDaemon

runner = CliRunner()
ECHO = """Graph {
    name: "echo",
    nodes: [
        { id: "it", type: External, uri: "input://it" },
        { id: "same", type: Operation, op: Identity, inputs: ["it"] },
    ],
    outputs: ["same"],
}
"""
FIXED = ECHO.replace('External, uri: "input://it"', "Constant, value: 1")
RECORD = grown(4)


@pytest.fixture
def echo(tmp_path: Path) -> str:
    file = tmp_path / "echo.0"
    file.write_text(ECHO)
    return str(file)


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    with ScriptedDaemon(tmp_path / "home" / "agentd.sock") as daemon:
        yield daemon


def ran(*argv: str, typed: str | None = None) -> Any:
    return runner.invoke(app, ["facts", "run", *argv], input=typed)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("5", 5),
        ("1.5", 1.5),
        ("true", True),
        ("null", None),
        ('{"a": [1]}', {"a": [1]}),
        ('"5"', "5"),
        ("What = that? # no comment", "What = that? # no comment"),
        ("NaN", "NaN"),
        ("", ""),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_input_is_what_json_says_it_is_else_a_text(echo: str, given: str, value: Any) -> None:
    done = ran(echo, "--input", f"it={given}", "--json")
    assert (done.exit_code, json.loads(done.output)["graphs"][0]["outputs"]) == (0, {"same": value})


def test_a_person_reads_outputs_confidence_and_hash_of_each_graph() -> None:
    done = ran("-", "--input", "it=two\x1b words", typed=ECHO + ECHO)
    lines = done.output.splitlines()
    assert lines[:2] == ["graph echo", '  same: "two\\u001b words"']
    assert lines[2].startswith("confidence 1, hash ")
    assert lines[3:] == lines[:3]
    assert ran("-", typed="# nothing\n").output == "the text has no graph\n"


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        (ECHO.replace("inputs:", "inputs"), ":5:", "zero_syntax"),
        (FIXED.replace("Identity", "Nonsense"), ":5:9: node 'same': ", "zero_unknown_operation"),
        (ECHO, ":4:9: node 'it': ", "zero_missing_input"),
        ("\0\1", ":1:1: ", "zero_not_text"),
    ],
)
def test_an_error_names_file_line_and_column(
    tmp_path: Path, text: str, place: str, code: str
) -> None:
    file = tmp_path / "bad.0"
    file.write_text(text)
    done = ran(str(file))
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {file}{place}")
    assert "line " not in done.stderr.splitlines()[0]
    assert json.loads(ran(str(file), "--json").stdout)["error"]["code"] == code


@pytest.mark.parametrize(
    "inputs", [["it"], ["=5"], ["it=1", "it=2"], ["it=1", "other=2"]], ids=" ".join
)
def test_an_input_that_has_no_use_is_a_mistake_of_usage(echo: str, inputs: list[str]) -> None:
    done = ran(echo, *(word for one in inputs for word in ("--input", one)))
    assert (done.exit_code, done.stdout) == (2, "")


def test_a_file_that_cannot_be_read_or_never_ends_is_a_mistake_of_usage(tmp_path: Path) -> None:
    for file in ("nowhere.0", str(tmp_path), "/dev/zero"):
        done = ran(file)
        assert (done.exit_code, done.stdout) == (2, ""), file


READERS = {
    "0c": read,
    "l2": read,
    "zero": lambda text: decompile(parse(text)).record,
}
TEXTS = {
    "0c": write(RECORD),
    "l2": at_level(RECORD, WritingLevel.FULL),
    "zero": emit(RECORD),
    "l1": at_level(RECORD, WritingLevel.STRUCTURE),
    "l0": at_level(RECORD, WritingLevel.SKELETON),
    "prompt": "- a is b\n",
}


def test_the_command_offers_what_the_daemon_can_write_and_every_way() -> None:
    assert {form.value for form in Format} - DRAWN == {*TEXTS}
    assert {form.value for form in Form} == {*get_args(facts.Form)} == {*TEXTS, "picture"}
    assert get_args(facts.Way) == tuple(way.value for way in GraphWay)


@pytest.mark.parametrize("form", TEXTS)
def test_the_text_of_a_form_is_printed_as_it_is_and_read_back(
    daemon: ScriptedDaemon, tmp_path: Path, form: str
) -> None:
    picture = {"title": "Around a", "by": "paths", "nodes": [], "arrows": [], "hidden_nodes": 0}
    answer = {**picture, "hidden_arrows": 0, "text": TEXTS[form]}
    daemon.on("_agentd/facts/graph", lambda params, wire: answer)
    argv = ["facts", "graph", "a", "--format", form]
    done = runner.invoke(app, argv)
    assert (done.exit_code, done.stdout, done.stderr) == (0, TEXTS[form], "Around a\n")
    assert daemon.calls[0][1]["form"] == form
    assert runner.invoke(app, [*argv, "-o", str(tmp_path / "it")]).exit_code == 0
    assert (tmp_path / "it").read_text() == TEXTS[form]
    if form in READERS:
        assert READERS[form](done.stdout) == RECORD


def test_the_way_and_the_depth_go_to_the_daemon_which_knows_how_far_each_goes(
    daemon: ScriptedDaemon,
) -> None:
    picture = {"title": "Around a", "by": "paths", "nodes": [], "arrows": [], "hidden_nodes": 0}
    daemon.on("_agentd/facts/graph", lambda params, wire: {**picture, "hidden_arrows": 0})
    for argv in ([], ["--by", "activation", "--depth", "4"]):
        assert runner.invoke(app, ["facts", "graph", "a", *argv]).exit_code == 0
    (_, usual), (_, said) = daemon.calls
    assert (usual["by"], usual.get("depth"), usual.get("form")) == ("paths", None, None)
    assert (said["by"], said["depth"]) == ("activation", 4)
    assert runner.invoke(app, ["facts", "graph", "a", "--by", "luck"]).exit_code == 2
    assert len(daemon.calls) == 2


COUNTER = """Graph {
    name: "counter",
    nodes: [
        { id: "step", type: Constant, value: 2 },
        { id: "key", type: Constant, value: "n" },
        { id: "old", type: Operation, op: LoadState, inputs: ["key"] },
        { id: "zero", type: Constant, value: 0 },
        { id: "was", type: Operation, op: If, inputs: ["old", "old", "zero"] },
        { id: "new", type: Operation, op: Add, inputs: ["was", "step"] },
        { id: "kept", type: Operation, op: SaveState, inputs: ["key", "new"] },
    ],
    outputs: ["kept"],
}
"""


def test_a_program_finds_what_it_saved_in_an_earlier_run(
    tmp_path: Path, daemon: ScriptedDaemon
) -> None:
    file = tmp_path / "counter.0"
    file.write_text(COUNTER)
    kept = {"state": "", "hash": "h0"}
    daemon.on("_agentd/facts/program-state", lambda params, wire: {"name": "c", **kept})
    daemon.on("_agentd/facts/keep-program-state", lambda params, wire: {"name": "c", "hash": "h1"})
    done = ran(str(file), "--state", "c", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["graphs"][0]["outputs"] == {"kept": 2}
    (saved,) = daemon.params_of("_agentd/facts/keep-program-state")
    assert (saved["name"], saved["before"]) == ("c", "h0")
    kept = {"state": saved["state"], "hash": "h1"}
    again = ran(str(file), "--state", "c", "--json")
    assert json.loads(again.stdout)["graphs"][0]["outputs"] == {"kept": 4}


def test_sign_uses_the_key_file_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("AGENTD_HOME", str(home))
    signed = FIXED.replace("op: Identity", "op: Sign")
    file = tmp_path / "signed.0"
    file.write_text(signed)
    assert "key" in ran(str(file)).stderr
    key = tmp_path / "graph.key"
    (home / "config.toml").write_text(f'[graph]\nkey_file = "{key}"\n')
    missing = ran(str(file))
    assert missing.exit_code == 78
    assert "[graph] key_file" in missing.stderr
    key.write_text("s3cret")
    key.chmod(0o644)
    assert "chmod 600" in ran(str(file)).stderr
    key.chmod(0o600)
    assert ran(str(file)).exit_code == 0


def test_statements_are_compiled_without_a_daemon(tmp_path: Path) -> None:
    source, target = tmp_path / "said.txt", tmp_path / "said.0"
    source.write_text("Klara | works at | Bosch\n")
    done = runner.invoke(app, ["facts", "compile", str(source), "-o", str(target)])
    assert (done.exit_code, "1 episode" in done.stdout) == (0, True)
    (relation,) = decompile(parse(target.read_text())).record.relations
    assert relation.predicate == "works_at"
    source.write_text("Klara | works at\n")
    wrong = runner.invoke(app, ["facts", "compile", str(source)])
    assert wrong.exit_code == 1
    assert "said.txt:1" in wrong.stderr
