"""Commands as programs use them: pipes, exit codes, and what they load."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from agentd.testing import PNG
from tests.scripted_daemon import Hangup, Refusal, ScriptedDaemon


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    with ScriptedDaemon(tmp_path / "agentd.sock") as daemon:
        daemon.on("session/prompt", reply)
        yield daemon


def reply(params, wire):
    text = params["prompt"][0]["text"]
    wire.notify("_agentd/accepted", {"sessionId": "main", "messageId": "?", "seq": 1})
    wire.words("main", f"you said {text}")
    return {"stopReason": "end_turn", "_meta": {"agentd/text": f"you said {text}"}}


def agentd(*argv: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "agentd", *argv],
        input=given,
        capture_output=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["sessions", "--help"],
        ["jobs", "--help"],
        ["resources", "--help"],
        ["status", "--json"],
    ],
    ids=" ".join,
)
def test_quick_commands_load_none_of_the_heavy_libraries(tmp_path: Path, argv: list[str]) -> None:
    heavy = ("acp", "aiosqlite", "anthropic", "apscheduler", "httpx", "prompt_toolkit")
    heavy += ("pydantic", "rich", "sqlite3", "structlog", "uvloop")
    code = (
        "import sys\nfrom agentd.app.cli.app import app\n"
        f"try: app({argv!r})\nexcept SystemExit: pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        timeout=30,
        check=True,
        env={**os.environ, "AGENTD_HOME": str(tmp_path)},
    )
    assert done.stderr.decode().splitlines()[-1] == "[]"


def test_a_pipe_gets_one_reply_a_line_and_nothing_else(daemon: ScriptedDaemon) -> None:
    done = agentd("chat", given="tea\n\n  \ngrüße\r\nlast".encode())
    assert done.stdout.decode() == "you said tea\nyou said grüße\nyou said last\n"
    assert done.returncode == 0
    assert daemon.params_of("initialize")[0]["_meta"] == {"agentd/permissions": "deny"}


def test_a_failed_turn_in_a_pipe_does_not_stop_the_others(daemon: ScriptedDaemon) -> None:
    def fail_once(params, wire):
        if params["prompt"][0]["text"] == "bad":
            raise Refusal(-32010, "the model is down", code="provider_overloaded")
        return reply(params, wire)

    daemon.on("session/prompt", fail_once)
    done = agentd("chat", given=b"one\nbad\n\xff\ntwo\n")
    assert done.stdout == b"you said one\nyou said two\n"
    assert b"the model is down" in done.stderr
    assert b"not UTF-8" in done.stderr
    assert done.returncode == 1


def test_a_reply_cut_by_a_restart_is_printed_once(daemon: ScriptedDaemon) -> None:
    def cut_once(params, wire):
        if len(daemon.params_of("session/prompt")) == 1:
            wire.words("main", "you sa")
            raise Hangup
        return {**reply(params, wire), "_meta": {}}

    daemon.on("session/prompt", cut_once)
    done = agentd("chat", given=b"tea\n")
    assert (done.stdout, done.returncode) == (b"you said tea\n", 0)
    first, second = daemon.params_of("session/prompt")
    assert first == second


def test_the_bridge_carries_lines_both_ways_and_waits_for_the_last_answer(
    daemon: ScriptedDaemon,
) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt"}
    asked["params"] = {"prompt": [{"type": "text", "text": "tea"}]}
    done = agentd("acp", given=json.dumps(asked).encode())
    frames = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [frame.get("method") for frame in frames] == [
        "_agentd/accepted",
        "session/update",
        None,
    ]
    assert frames[-1]["result"]["stopReason"] == "end_turn"


def noise() -> bytes:
    out = io.BytesIO()
    Image.frombytes("RGB", (900, 600), random.Random(1).randbytes(900 * 600 * 3)).save(out, "PNG")
    return out.getvalue()


def test_the_bridge_makes_images_as_small_as_the_daemon_takes_them(daemon: ScriptedDaemon) -> None:
    limits = {"_meta": {"agentd/maxImageBytes": 20_000}}
    daemon.on("initialize", lambda params, wire: {"protocolVersion": 1, **limits})
    daemon.on("session/prompt", lambda params, wire: {"stopReason": "end_turn"})
    small = {"type": "image", "mimeType": "image/png", "data": b64encode(PNG).decode()}
    large = {**small, "data": b64encode(noise()).decode()}
    broken = {**small, "data": b64encode(PNG + bytes(30_000)).decode()}
    command = [sys.executable, "-m", "agentd", "acp"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as bridge:

        def ask(number: int, method: str, **params: object) -> dict[str, object]:
            frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            bridge.stdin.write(json.dumps(frame).encode() + b"\n")
            bridge.stdin.flush()
            return json.loads(bridge.stdout.readline())

        ask(1, "initialize", protocolVersion=1)
        text = {"type": "text", "text": "what is it?"}
        assert "result" in ask(2, "session/prompt", sessionId="main", prompt=[small, large, text])
        refused = ask(3, "session/prompt", sessionId="main", prompt=[broken, text])
        assert "result" in ask(4, "session/prompt", sessionId="main", prompt=[text])
        bridge.stdin.close()
        told = bridge.stderr.read().decode()
    assert "the image cannot be opened" in refused["error"]["message"]
    first, last = (params["prompt"] for params in daemon.params_of("session/prompt"))
    assert first[0] == small
    assert first[1]["mimeType"] == "image/jpeg"
    assert len(b64decode(first[1]["data"])) <= 20_000 < len(noise())
    assert (first[2], last) == (text, [text])
    assert "the image was made smaller" in told


def test_the_bridge_ends_when_the_daemon_does(daemon: ScriptedDaemon) -> None:
    def hang_up(params, wire):
        raise Hangup

    daemon.on("x", hang_up)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {}}
    assert agentd("acp", given=json.dumps(asked).encode() + b"\n").returncode == 69


def test_the_bridge_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    done = agentd("acp")
    assert (done.returncode, done.stdout) == (69, b"")
    assert b"no daemon listens" in done.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [(b"gr\xc3\xbc\xc3\x9fe\nzwei\n", "you said grüße\nzwei\n"), (b"-", "you said -\n")],
)
def test_a_message_is_read_from_standard_input(
    daemon: ScriptedDaemon, given: bytes, told: str
) -> None:
    assert agentd("send", "-", given=given).stdout.decode() == told


def test_a_message_that_is_no_text_is_refused(daemon: ScriptedDaemon) -> None:
    done = agentd("send", "-", given=b"\xff")
    assert (done.returncode, daemon.params_of("session/prompt")) == (2, [])
    assert b"no UTF-8" in done.stderr


def test_nobody_is_asked_to_erase_a_session_that_is_not_there(daemon: ScriptedDaemon) -> None:
    def absent(params, wire):
        raise Refusal(-32002, "there is no session 'chat:nope'", code="not_found")

    daemon.on("_agentd/sessions/show", absent)
    done = agentd("sessions", "delete", "chat:nope")
    assert (done.returncode, b"there is no session" in done.stderr) == (1, True)


def test_reading_past_the_end_of_a_file_says_so(daemon: ScriptedDaemon) -> None:
    daemon.on("_agentd/memory/read", lambda params, wire: {"text": "", "lines": 0, "next": None})
    assert agentd("memory", "read", "a.md", "--from", "9").stderr == b"a.md has no line 9\n"


def test_an_alert_that_comes_again_is_printed_once(daemon: ScriptedDaemon) -> None:
    def resume(params, wire):
        for number in (1, 1, 2):
            wire.notify("_agentd/alert", {"id": number, "text": "x", "at": ""})
        raise Refusal(-32602, "enough", code="invalid")

    daemon.on("session/resume", resume)
    lines = agentd("alerts", "follow", "--json").stdout.splitlines()
    assert [json.loads(line).get("id") for line in lines if b"error" not in line] == [1, 2]
