"""The chat on a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from agentd.app.chat.terminal import history_in
from agentd.core.turn import SessionKey
from agentd.storage.chat_history import TypedHistory
from agentd.testing import FakeClock
from tests.e2e.forked import parent
from tests.scripted_daemon import Hangup, ScriptedDaemon

_CTRL_C, _CTRL_D = "\x03", "\x04"
_PROMPT = "\x1b[0m>"


class Screen:
    """A process on a terminal of its own."""

    def __init__(self, *argv: str, home: Path, **variables: str) -> None:
        self.master, slave = pty.openpty()
        self.resize(80, 24)
        env = {
            **os.environ,
            "AGENTD_HOME": str(home),
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "NO_COLOR": "",
            **variables,
        }
        self.process = parent().start(argv, [slave] * 3, environ=env, folder=Path.cwd())
        os.close(slave)
        self.seen = ""

    def wait_for(self, text: str) -> str:
        """What came before the text, and the text."""
        while text not in self.seen:
            readable, _, _ = select.select([self.master], [], [], 20)
            assert readable, f"{text!r} did not come; seen: {self.seen!r}"
            self.seen += os.read(self.master, 65536).decode(errors="replace")
        before, found, self.seen = self.seen.partition(text)
        return before + found

    def resize(self, columns: int, rows: int) -> None:
        size = struct.pack("4H", rows, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def ends(self) -> bool:
        return self.process.ended(20) == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.ended(20)
        os.close(self.master)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon(tmp_path / "agentd.sock") as daemon:
        yield daemon


def test_a_question_that_is_taken_back_leaves_no_prompt_and_no_typed_word_is_lost(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    asked, typed = threading.Event(), threading.Event()

    def ask(params, wire):
        if params["prompt"][0]["text"] != "do":
            return {"stopReason": "end_turn"}
        question = {"toolCall": {"title": "write SOUL.md"}}
        wire.send({"id": 9, "method": "session/request_permission", "params": question})
        assert asked.wait(20)
        wire.notify("$/cancel_request", {"requestId": 9})
        assert typed.wait(20)
        wire.words("main", "changed")
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", ask)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("do\r")
        screen.wait_for("allow?")
        asked.set()
        screen.wait_for(_PROMPT)
        screen.type("and then")
        screen.wait_for("then")
        typed.set()
        screen.wait_for("changed")
        screen.wait_for("and then")
        screen.type(" more\r")
        screen.wait_for(_PROMPT)
        leave_now(screen)
    assert said(daemon) == ["do", "and then more"]


def say(daemon: ScriptedDaemon, *texts: str) -> None:
    """Let every message be answered with these chunks."""

    def answer(params, wire):
        for text in texts:
            wire.words("main", text)
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", answer)


def resumed(daemon: ScriptedDaemon) -> list[Any]:
    """The connections of chats that come to their session."""
    wires: list[Any] = []

    def resume(params, wire):
        wires.append(wire)
        return {}

    daemon.on("session/resume", resume)
    return wires


def said(daemon: ScriptedDaemon) -> list[str]:
    return [params["prompt"][0]["text"] for params in daemon.params_of("session/prompt")]


def leave(screen: Screen) -> None:
    screen.wait_for(_PROMPT)
    leave_now(screen)


def leave_now(screen: Screen) -> None:
    screen.type(_CTRL_D)
    assert screen.ends()


class Asking:
    """Answers every message with a question about SOUL.md, behind `before`, and keeps what is
    decided.
    """

    def __init__(self, daemon: ScriptedDaemon, *kinds: str, before: str = "", **call: Any) -> None:
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in kinds]
        call = {"toolCallId": "1", "title": "write SOUL.md", **call}
        self._question = {"sessionId": "main", "toolCall": call, "options": options}
        self._before = before
        self.decided: list[str] = []
        daemon.on("session/prompt", self._ask)

    def _ask(self, params, wire):
        if self._before:
            wire.words("main", self._before)
            wire.lines.readline()  # the notification that the test sends by cancelling
        outcome = wire.ask("session/request_permission", self._question)["outcome"]
        assert outcome["outcome"] == "selected"
        self.decided.append(outcome["optionId"])
        return {"stopReason": "end_turn"}


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
        screen.wait_for("A few questions first")
        for question in ("Model provider", "Time zone", "Active from", "Active until"):
            screen.wait_for(question)
            screen.type("\r")
        screen.wait_for("Send a test alert")
        screen.type("y\r")
        screen.wait_for("main: sent")
        leave(screen)
    assert daemon.params_of("_agentd/alerts/test") == [{}]
    assert "[agent]\ntimezone" in (tmp_path / "config.toml").read_text()


def test_an_alert_comes_while_the_user_sits_idle(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    def resume(params, wire):
        wire.notify("_agentd/alert", {"id": 1, "text": "milk is out"})
        return {}

    daemon.on("session/resume", resume)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for("milk is out")
        leave(screen)
    assert not daemon.params_of("session/prompt"), "nothing had to be said for it"


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


def ask_until_cancelled(daemon: ScriptedDaemon, *, takes_back: bool) -> list[str]:
    """Answer every message with a question; the methods of the frames that come for an answer."""
    heard: list[str] = []

    def ask(params, wire):
        question = {"toolCall": {"title": "write SOUL.md"}}
        wire.send({"id": 9, "method": "session/request_permission", "params": question})
        for line in iter(wire.lines.readline, b""):
            heard.append(json.loads(line).get("method", "answer"))
            if takes_back:
                wire.notify("$/cancel_request", {"requestId": 9})
                return {"stopReason": "cancelled"}
        raise Hangup

    daemon.on("session/prompt", ask)
    return heard


def test_ctrl_c_at_a_question_cancels_the_turn(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    heard = ask_until_cancelled(daemon, takes_back=True)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("do\r")
        screen.wait_for("[n]o:")
        screen.type(_CTRL_C)
        screen.wait_for("Ctrl-C once more leaves; the turn then goes on")
        screen.wait_for("· cancelled")
        leave(screen)
    assert heard == ["session/cancel"]


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["twice", "ctrl-d"])
def test_the_second_ctrl_c_and_ctrl_d_at_a_question_leave(
    daemon: ScriptedDaemon, tmp_path: Path, is_cancelled: bool
) -> None:
    heard = ask_until_cancelled(daemon, takes_back=False)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("do\r")
        screen.wait_for("[n]o:")
        if is_cancelled:
            screen.type(_CTRL_C)
            screen.wait_for("once more leaves")
            screen.wait_for("[n]o:")
        screen.type(_CTRL_C if is_cancelled else _CTRL_D)
        assert screen.ends()
    assert "answer" not in heard, "leaving is no answer"


def test_a_question_is_answered_with_a_key(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    asking = Asking(daemon, "allow_once")
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("do\r")
        screen.wait_for("[n]o:")
        screen.type("y\r")
        screen.wait_for(_PROMPT)
        screen.type("/quit\r")
        assert screen.ends()
    assert asking.decided == ["allow_once"]


@pytest.mark.parametrize(
    "keys",
    ["\x1b[200~one\ntwo\r\nthree\x1b[201~\r", "one\x1b\rtwo\x1b\rthree\r"],
    ids=["paste", "keys"],
)
def test_several_lines_are_one_message(daemon: ScriptedDaemon, tmp_path: Path, keys: str) -> None:
    say(daemon, "Understood.")
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type(keys)
        screen.wait_for("Understood.")
        leave(screen)
    assert said(daemon) == ["one\ntwo\nthree"]
    history = tmp_path / "state" / "chat_history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert history.read_text().endswith("\n+one\n+two\n+three\n")


def test_what_is_typed_during_an_answer_is_the_next_message(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    def answer(params, wire):
        wire.words("main", "one moment\n\n")
        wire.lines.readline()  # the notification that the test sends by cancelling
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", answer)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("first\r")
        screen.wait_for("one moment")
        say(daemon, "And now the second.")
        screen.type("second\r")
        screen.process.send_signal(signal.SIGINT)
        seen = screen.wait_for("And now the second.")
        assert "second" not in seen.partition(_PROMPT)[0]
        leave(screen)
    assert said(daemon) == ["first", "second"]


def test_what_is_typed_during_an_answer_outlives_ctrl_c(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    def answer(params, wire):
        wire.words("main", "one moment\n\n")
        assert b"session/cancel" in wire.lines.readline()
        return {"stopReason": "cancelled"}

    daemon.on("session/prompt", answer)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("first\r")
        screen.wait_for("one moment")
        screen.type("second")
        screen.type(_CTRL_C)
        screen.wait_for("cancelled")
        screen.wait_for("second")
        say(daemon, "Understood.")
        screen.type("\r")
        screen.wait_for("Understood.")
        leave(screen)
    assert said(daemon) == ["first", "second"]


def test_ctrl_r_finds_what_was_typed_and_enter_takes_it(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    say(daemon, "Understood.")
    with Screen("chat", home=tmp_path) as screen:
        for text in ("the first", "the second"):
            screen.wait_for(_PROMPT)
            screen.type(f"{text}\r")
            screen.wait_for("Understood.")
        screen.wait_for(_PROMPT)
        screen.type("\x12firs")
        screen.wait_for("I-search backward")
        screen.type("\r")
        screen.type("\x05 again\r")  # behind the end of the line
        screen.wait_for("Understood.")
        screen.wait_for(_PROMPT)
        screen.type("\x12second")
        screen.wait_for("I-search backward")
        screen.type(_CTRL_C)
        screen.type("a third\r")
        screen.wait_for("Understood.")
        leave(screen)
    assert said(daemon) == ["the first", "the second", "the first again", "a third"]


def test_an_alert_while_one_types_damages_nothing(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    wires = resumed(daemon)
    say(daemon, "Understood.")
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("half a ")
        screen.wait_for("half a")
        for _ in range(2):
            wires[0].notify("_agentd/alert", {"id": 1, "text": "milk is out"})
        screen.wait_for("milk is out")
        assert "milk is out" not in screen.wait_for("half a")
        screen.type("message\r")
        screen.wait_for("Understood.")
        leave(screen)
    assert said(daemon) == ["half a message"]


@pytest.mark.parametrize("columns", [80, 40])
def test_what_was_learnt_is_a_dim_line_above_what_is_typed(
    daemon: ScriptedDaemon, tmp_path: Path, columns: int
) -> None:
    wires = resumed(daemon)
    say(daemon, "Understood.")
    told = "remembered: The user lives in Fulda. (before: The user lives in Kassel.)"
    change = {"op": "replace", "id": "k3f9", "text": "The user lives in Fulda.", "old": []}
    with Screen("chat", home=tmp_path) as screen:
        screen.resize(columns, 24)
        screen.wait_for(_PROMPT)
        screen.type("half a ")
        screen.wait_for("half a")
        wires[0].words("main", told, **{"agentd/notice": "facts", "agentd/facts": [change]})
        seen = screen.wait_for("Kassel.)")
        assert "\x1b[2m· remembered:" in seen
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen[seen.index("·") :])
        assert " ".join(shown.split()) == f"· {told}"
        assert all(len(line.rstrip()) < columns for line in shown.splitlines())
        assert "Kassel" not in screen.wait_for("half a")
        screen.type("message\r")
        screen.wait_for("Understood.")
        leave(screen)
    assert said(daemon) == ["half a message"]


def test_a_tool_call_is_one_line_and_can_be_unfolded(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    def answer(params, wire):
        call = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "memory_read x.md"}
        call["rawInput"] = {"path": "x.md"}
        wire.notify("session/update", {"sessionId": "main", "update": call})
        text = {"type": "text", "text": "line one\nline two"}
        ended = {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"}
        ended["content"] = [{"type": "content", "content": text}]
        wire.notify("session/update", {"sessionId": "main", "update": ended})
        wire.words("main", "Read.")
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", answer)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("read\r")
        assert "line one" not in screen.wait_for("✓ memory_read x.md done, 0.0 s")
        assert "line one" not in screen.wait_for("Read.")
        screen.wait_for(_PROMPT)
        screen.type("\x0f")
        screen.wait_for("path: x.md")
        screen.wait_for("line two")
        leave(screen)


def test_a_change_is_shown_in_colours_and_typing_ahead_allows_nothing(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    diff = {"type": "diff", "path": "SOUL.md", "oldText": "calm", "newText": "x" * 200 + "end"}
    asking = Asking(daemon, "allow_once", "reject_once", before="one moment\n\n", content=[diff])
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("do\r")
        screen.wait_for("one moment")
        screen.type("y\r")
        screen.process.send_signal(signal.SIGINT)
        screen.wait_for("\x1b[31m  -calm")
        screen.wait_for("\x1b[32m  +x")
        shown = screen.wait_for("allow? [y]es, [n]o:")
        shown = "x" + shown.replace("\x1b[0m\r\n\x1b[32m  ⋮ ", "")
        assert shown.startswith("x" * 200 + "end\x1b[0m"), "every character, none at the margin"
        screen.type("a\r")
        screen.wait_for("\r\n")
        screen.wait_for("allow? [y]es, [n]o:")
        screen.type("n\r")
        leave(screen)
    assert asking.decided == ["reject_once"]
    assert "+y" not in (tmp_path / "state" / "chat_history").read_text()


def test_an_answer_follows_a_terminal_that_becomes_narrower(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    say(daemon, " ".join(["word"] * 60))
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.resize(40, 20)
        os.kill(screen.process.pid, signal.SIGWINCH)
        screen.type("hi\r")
        screen.wait_for("word")
        lines = ("word" + screen.wait_for(_PROMPT)).split("\r\n")
        assert max(len(line) for line in lines if line.endswith("word")) == 39
        screen.type(_CTRL_D)
        assert screen.ends()


@pytest.mark.parametrize(
    "variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["no colour", "dumb"]
)
def test_words_alone_where_there_are_no_colours(
    daemon: ScriptedDaemon, tmp_path: Path, variables: dict[str, str]
) -> None:
    say(daemon, "# Plan\n\n**bold** \x1b[2Jand `code` &#27;[1m")
    with Screen("chat", home=tmp_path, **variables) as screen:
        screen.wait_for(">")
        screen.type("hi\r")
        screen.wait_for("# Plan\r\n\r\n**bold** [2Jand `code` &#27;[1m")
        screen.wait_for(">")
        screen.type(_CTRL_D)
        assert screen.ends()


@pytest.mark.parametrize("paragraph", [40, 40_000])
def test_a_long_answer_costs_about_its_own_size(
    daemon: ScriptedDaemon, tmp_path: Path, paragraph: int
) -> None:
    words = [f"word{number:05}" for number in range(20_000)]
    step = paragraph // 10
    text = "\n\n".join(" ".join(words[at : at + step]) for at in range(0, len(words), step))
    say(daemon, *(text[at : at + 100] for at in range(0, len(text), 100)), "\n\nThe-end.")
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("tell\r")
        seen = screen.wait_for("The-end.")
        assert len(seen) < 2 * len(text)
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen).split()
        assert set(words) == {word for word in shown if word.startswith("word")}
        leave(screen)


def test_what_is_pasted_is_marked_and_what_is_typed_around_it_is_not(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    say(daemon, "ok")
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("look: \x1b[200~one\r\ntwo\x1b[201~ what is it?")
        screen.wait_for("it?")
        screen.type("\r")
        screen.wait_for("ok")
        screen.wait_for(_PROMPT)
        screen.type("\x1b[200~a\nb\x1b[201~")
        screen.wait_for("b")
        screen.type(_CTRL_C + "and \x1b[200~short\x1b[201~")
        screen.wait_for("short")
        screen.type("\r")
        screen.wait_for("ok")
        leave(screen)
    first, second = (params["prompt"] for params in daemon.params_of("session/prompt"))
    assert first[0]["text"] == "look: one\ntwo what is it?"
    assert first[0]["_meta"] == {"agentd/paste": [[6, 13]]}
    assert second == [{"type": "text", "text": "and short"}]


def test_what_was_pasted_while_a_question_was_taken_back_stays_marked(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    ready = threading.Event()

    def ask(params, wire):
        if params["prompt"][0]["text"] == "do":
            question = {"toolCall": {"title": "write SOUL.md"}}
            wire.send({"id": 9, "method": "session/request_permission", "params": question})
            assert ready.wait(20)
            ready.clear()
            wire.notify("$/cancel_request", {"requestId": 9})
            assert ready.wait(20)
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", ask)
    with Screen("chat", home=tmp_path) as screen:
        screen.wait_for(_PROMPT)
        screen.type("do\r")
        screen.wait_for("allow?")
        ready.set()
        screen.wait_for(_PROMPT)
        screen.type("\x1b[200~one\ntwo\x1b[201~")
        screen.wait_for("two")
        ready.set()
        screen.wait_for(_PROMPT)
        screen.type(" three\r")
        screen.wait_for("three")
        leave(screen)
    (block,) = daemon.params_of("session/prompt")[1]["prompt"]
    assert block == {
        "type": "text",
        "text": "one\ntwo three",
        "_meta": {"agentd/paste": [[0, 7]]},
    }


def test_a_typed_key_is_not_kept(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2" * 9
    history_in(tmp_path / "typed", FakeClock()).append_string(f"use {key}")
    kept = (tmp_path / "typed").read_text(encoding="utf-8")
    assert "+use [secret:github]" in kept
    assert key not in kept


async def test_what_was_typed_in_one_session_goes_with_it_and_what_was_typed_elsewhere_stays(
    tmp_path: Path,
) -> None:
    path = tmp_path / "typed"
    history = history_in(path, FakeClock())
    for session, text in (("main", "hello\nmain"), ("chat:my bird", "amsel"), ("main", "and then")):
        history.session = session
        history.append_string(text)
    await TypedHistory(path).erase(SessionKey("chat:my bird"))
    assert list(history_in(path, FakeClock()).load_history_strings()) == ["and then", "hello\nmain"]
    assert "bird" not in path.read_text(encoding="utf-8")
    await TypedHistory(path).erase(SessionKey("main"))
    assert not path.exists()
