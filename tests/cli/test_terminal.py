"""The chat on a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from tests.scripted_daemon import ScriptedDaemon

_CTRL_C, _CTRL_D = "\x03", "\x04"
_PROMPT = "\x1b[0m>"


class Screen:
    """A process on a terminal of its own."""

    def __init__(self, *argv: str, home: Path) -> None:
        self.master, slave = pty.openpty()
        env = {
            **os.environ,
            "AGENTD_HOME": str(home),
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agentd", *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""

    def wait_for(self, text: str) -> None:
        while text not in self.seen:
            readable, _, _ = select.select([self.master], [], [], 20)
            assert readable, f"{text!r} did not come; seen: {self.seen!r}"
            self.seen += os.read(self.master, 4096).decode(errors="replace")
        self.seen = self.seen.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def ends(self) -> bool:
        return self.process.wait(20) == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon(tmp_path / "agentd.sock") as daemon:
        yield daemon


def test_lines_typed_are_answered_and_quit_leaves(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    def answer(params, wire):
        wire.words("main", "Good ")
        wire.words("main", "evening.")
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", answer)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("hi\r")
        screen.wait_for("Good evening.")
        screen.wait_for(_PROMPT)
        screen.type("/quit\r")
        assert screen.ends()


def test_the_first_up_asks_what_it_needs_and_offers_a_test_alert(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    daemon.on("_agentd/alerts/test", lambda params, wire: {"delivered": {"main": "sent"}})
    with Screen("up", home=tmp_path) as screen:
        for question in ("Model provider", "Time zone", "Active from", "Active until"):
            screen.wait_for(question)
            screen.type("\r")
        screen.wait_for("Send a test alert")
        screen.type("y\r")
        screen.wait_for("main: sent")
        screen.wait_for(_PROMPT)
        screen.type(_CTRL_D)
        assert screen.ends()


def test_an_alert_comes_while_the_user_sits_idle(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    def resume(params, wire):
        wire.notify("_agentd/alert", {"id": 1, "text": "milk is out"})
        return {}

    daemon.on("session/resume", resume)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for("milk is out")
        screen.wait_for(_PROMPT)
        screen.type(_CTRL_D)
        assert screen.ends()


def test_ctrl_c_cancels_a_turn_and_twice_at_the_prompt_leaves(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    def wait_for_cancel(params, wire):
        wire.words("main", "Once upon")
        assert b"session/cancel" in wire.lines.readline()
        return {"stopReason": "cancelled"}

    daemon.on("session/prompt", wait_for_cancel)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("tell\r")
        screen.wait_for("Once upon")
        screen.process.send_signal(2)
        screen.wait_for("cancelled")
        screen.wait_for(_PROMPT)
        screen.type(_CTRL_C)
        screen.wait_for("leaves")
        screen.wait_for(_PROMPT)
        screen.type(_CTRL_C)
        assert screen.ends()


def test_a_question_is_answered_with_a_key(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    answers = []

    def ask(params, wire):
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
        call = {"toolCallId": "1", "title": "write SOUL.md"}
        question = {"sessionId": "main", "toolCall": call, "options": options}
        answers.append(wire.ask("session/request_permission", question))
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", ask)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("do\r")
        screen.wait_for("[n]o:")
        screen.type("y\r")
        screen.wait_for(_PROMPT)
        screen.type("/quit\r")
        assert screen.ends()
    assert answers == [{"outcome": {"outcome": "selected", "optionId": "yes"}}]
