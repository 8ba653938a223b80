"""`agentd facts take`: what is refused before, and how it is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentd.cli.app import app
from agentd.domain.concept import Record
from agentd.graph.delta import diff
from agentd.graph.formats.changes import write_delta
from tests.graph.formats.records import grown
from tests.scripted_daemon import Refusal, ScriptedDaemon, Wire

runner = CliRunner()
MESSAGE = write_delta(diff(Record(), grown(3)))


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with ScriptedDaemon(tmp_path / "home" / "agentd.sock") as daemon:
        daemon.on("_agentd/facts/take", lambda *_: {"new": 1, "known": 0, "taken_back": 0})
        yield daemon


def take(text: str, *more: str) -> Any:
    Path("m1").write_text(text)
    return runner.invoke(app, ["facts", "take", "m1", "--from", "Ada", *more])


@pytest.mark.parametrize("trust", ["nan", "inf", "-inf", "0", "-0.5", "1.001"])
def test_a_trust_that_is_none_is_refused_before_anything_is_asked(
    daemon: ScriptedDaemon, trust: str
) -> None:
    done = take(MESSAGE, "--trust", trust)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the trust ")
    assert daemon.params_of("_agentd/facts/take") == []


@pytest.mark.parametrize("trust", ["1", "0.001"])
def test_one_above_nothing_and_at_most_at_all_is_told(daemon: ScriptedDaemon, trust: str) -> None:
    assert take(MESSAGE, "--trust", trust).exit_code == 0
    [params] = daemon.params_of("_agentd/facts/take")
    assert params["trust"] == float(trust)


def refused(message: str, code: str) -> Any:
    def answer(params: dict[str, Any], _: Wire) -> Any:
        raise Refusal(-32011, message, code=code, cure="ask the sender for another")

    return answer


@pytest.mark.parametrize(
    ("text", "told", "shown"),
    [
        ("", "line 1: a graph's text …", "m1:1:1: a graph's text begins with"),
        (MESSAGE[:-70], "line 9: cut off", "m1:17:1: the text has no last line H:"),
        (MESSAGE, "the message is refused: it denies", "m1: the message is refused: it denies"),
    ],
)
def test_what_is_wrong_with_a_message_is_told_with_its_file_and_place(
    daemon: ScriptedDaemon, text: str, told: str, shown: str
) -> None:
    daemon.on("_agentd/facts/take", refused(told, "graph"))
    done = take(text)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"error: {shown}"), done.stderr
    assert "→ " in done.stderr


def test_what_is_not_about_the_message_does_not_name_it(daemon: ScriptedDaemon) -> None:
    daemon.on("_agentd/facts/take", refused("nothing is shared with anybody", "invalid"))
    done = take(MESSAGE)
    assert (done.exit_code, done.stderr[:30]) == (2, "error: nothing is shared with ")
