"""What commands read from a pipe: UTF-8, whatever the locale of the terminal."""

from __future__ import annotations

import asyncio
import json
import os

import pytest
from typer.testing import CliRunner

from agentd.app.cli.app import app
from agentd.app.cli.piped import answer_lines
from tests.scripted_daemon import ScriptedDaemon

runner = CliRunner(charset="ascii")


@pytest.fixture
def daemon(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    with ScriptedDaemon(tmp_path / "home" / "agentd.sock") as daemon:
        yield daemon


@pytest.mark.parametrize(
    ("words", "method", "name", "sent"),
    [
        (("memory", "write", "-"), "memory/write", "content", "Müller calls"),
        (("memory", "search", "-"), "memory/search", "query", "Müller calls"),
        (("facts", "import", "-"), "facts/import", "facts", [{"text": "Müller calls", "line": 1}]),
    ],
)
def test_it_is_read_as_utf_8(daemon, words, method, name, sent):
    text = '{"text": "Müller calls"}' if method == "facts/import" else "Müller calls"
    runner.invoke(app, words, input=text.encode())
    [params] = daemon.params_of(f"_agentd/{method}")
    assert params[name] == sent


@pytest.mark.parametrize("words", [("memory", "write", "-"), ("facts", "import", "-")])
def test_bytes_that_are_no_text_are_refused_and_nothing_is_sent(daemon, words):
    done = runner.invoke(app, words, input=b"M\xfcller")
    assert done.exit_code == 2
    assert "error: standard input: byte 2 is no UTF-8\n" in done.stderr
    assert daemon.calls == []


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["send", " "], "text: is empty"),
        (["send", "-"], "standard input: is empty"),
        (["send", "--session", "", "hello"], "'--session': it is empty"),
        (["chat", "--session", ""], "'--session': it is empty"),
    ],
)
def test_what_is_empty_is_named_as_it_was_typed(daemon, argv, told):
    result = runner.invoke(app, argv, input="\n")
    assert (result.exit_code, told in result.output) == (2, True), result.output
    assert daemon.params_of("session/prompt") == []


def test_bytes_that_are_no_text_are_no_words_of_a_search(daemon):
    runner.invoke(app, ["memory", "search", "-"], input=b"M\xfcller")
    [params] = daemon.params_of("_agentd/memory/search")
    assert params["query"] == "M\N{REPLACEMENT CHARACTER}ller"


def test_what_came_for_a_fact_is_sent_before_it_and_named_with_it_however_far_it_stands(daemon):
    rows = [
        {"id": f"{kind}{n}", "text": f"{kind} {n}", "status": status, "valid_from": "2026-01-01"}
        | ({"superseded_by": f"new{n}"} if kind == "old" else {})
        for kind, status in (("old", "superseded"), ("new", "active"))
        for n in range(600)
    ]
    answer = {"added": 0, "known": 0, "refused": {}}
    daemon.on("_agentd/facts/import", lambda params, wire: answer)
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    assert runner.invoke(app, ["facts", "import", "-"], input=lines).exit_code == 0
    sent = [row for params in daemon.params_of("_agentd/facts/import") for row in params["facts"]]
    assert len(sent) == 1200
    assert [row["text"] for row in sent[:600]] == [f"new {n}" for n in range(600)]
    assert sent[600]["successor"] == {"text": "new 0", "valid_from": "2026-01-01"}
    assert (sent[0]["line"], sent[600]["line"]) == (601, 1)


def test_how_an_answer_ended_is_told_beside_the_answers(daemon, capsys):
    ended = iter(["max_turn_requests", "end_turn"])
    daemon.on(
        "session/prompt",
        lambda params, wire: {"stopReason": next(ended), "_meta": {"agentd/text": "So far"}},
    )
    out, into = os.pipe()
    os.write(into, b"one\ntwo\n")
    os.close(into)
    assert asyncio.run(answer_lines([daemon.path], "main", out)) == 0
    os.close(out)
    told = capsys.readouterr()
    assert told.out == "So far\nSo far\n"
    assert told.err == "the agent stopped: too many steps for one turn\n"
