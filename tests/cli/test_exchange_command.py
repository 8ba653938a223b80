"""`agentd facts take` and `send`: what is refused before, and how it is told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentd.app.cli.app import app
from agentd.core.graph import Record
from agentd.zero.delta import diff, write_delta
from tests.graph.formats.records import grown
from tests.scripted_daemon import Refusal, ScriptedDaemon, Wire

runner = CliRunner()
MESSAGE = write_delta(diff(Record(), grown(3)))
TAKEN = {"new": 1, "known": 0, "taken_back": 0, "kept_out": 0}


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with ScriptedDaemon(tmp_path / "home" / "agentd.sock") as daemon:
        daemon.on("_agentd/facts/take", lambda *_: TAKEN)
        daemon.on("_agentd/facts/send", lambda *_: {"text": MESSAGE, "facts": 3, "taken_back": 0})
        yield daemon


def take(text: str, *more: str) -> Any:
    Path("m1").write_text(text)
    return runner.invoke(app, ["facts", "take", "m1", "--from", "Ada", *more])


def send(output: str) -> Any:
    return runner.invoke(app, ["facts", "send", "team", "-o", output])


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


def test_what_was_kept_out_is_told_where_something_was(daemon: ScriptedDaemon) -> None:
    assert take(MESSAGE).stdout == "from Ada: 1 new, 0 known, 0 taken back\n"
    daemon.on("_agentd/facts/take", lambda *_: {**TAKEN, "kept_out": 2})
    assert take(MESSAGE).stdout == (
        "from Ada: 1 new, 0 known, 0 taken back, 2 kept out (taken back, or "
        "forgotten here, before)\n"
    )


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


def test_a_message_replaces_a_file_as_a_whole(daemon: ScriptedDaemon) -> None:
    Path("old").write_text("old" * 9_999)
    for name in ("old", "new"):
        assert send(name).exit_code == 0
        assert Path(name).read_text() == MESSAGE
        assert Path(name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("is_there", [True, False])
def test_what_a_link_leads_to_is_written_and_the_link_stays(
    daemon: ScriptedDaemon, is_there: bool
) -> None:
    Path("far").mkdir()
    if is_there:
        Path("far/file").write_text("old")
    Path("link").symlink_to("far/file")
    assert send("link").exit_code == 0
    assert Path("link").readlink() == Path("far/file")
    assert Path("far/file").read_text() == MESSAGE
    assert [one.name for one in Path("far").iterdir()] == ["file"]


def a_pipe(name: Path) -> None:
    os.mkfifo(name)


def a_link_to_a_pipe(name: Path) -> None:
    os.mkfifo("pipe")
    name.symlink_to("pipe")


def a_link_to_itself(name: Path) -> None:
    name.symlink_to(name.name)


@pytest.mark.parametrize("make", [a_pipe, a_link_to_a_pipe, a_link_to_itself])
def test_what_is_no_file_is_left_alone_and_nothing_counts_as_sent(
    daemon: ScriptedDaemon, make: Any
) -> None:
    make(Path("there"))
    before = os.lstat("there")
    done = send("there")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: there: ")
    assert os.lstat("there").st_ino == before.st_ino
    assert daemon.params_of("_agentd/facts/send") == []


def test_a_pipe_is_refused_with_what_to_do(daemon: ScriptedDaemon) -> None:
    a_pipe(Path("there"))
    assert "→ name a file, or leave -o out" in send("there").stderr
