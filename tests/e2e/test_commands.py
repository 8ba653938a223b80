"""Commands in the order in which people use them: what one leaves behind for the next."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shell import PATIENCE, Shell, a_shell


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    """A home with a running daemon, a message in it, and an old transcript beside it."""
    with a_shell() as shell:
        shell.ok("up", given="remember that the cellar key hangs behind the clock\n")
        shell.json("alerts", "test")
        yield shell


def test_a_second_daemon_is_told_to_try_again(shell: Shell) -> None:
    done = shell("run")
    assert (done.code, done.out) == (75, "")
    assert "agentd:" in done.err


def test_nobody_answers_after_stop_and_restart_begins_anew() -> None:
    with a_shell() as shell:
        assert shell("status").code == 69
        assert shell("stop", "--json").json["error"]["code"] == "unreachable"
        assert shell.json("restart") == {"restarted": True}
        first = shell.json("status")["pid"]
        assert shell.ok("restart").out == "the daemon has restarted\n"
        assert shell.json("status")["pid"] != first
        assert shell.json("stop") == {"stopped": True}
        assert shell("send", "hi").code == 69
        (shell.root / "config.toml").write_text("[heartbeat]\ninterval = 'soon'\n")
        assert shell("run").code == 78
        assert shell("up").code == 78


def test_a_message_sent_again_runs_once(shell: Shell) -> None:
    words = ("send", "remember that the attic is empty", "--message-id", "m-1")
    first, second = shell.json(*words), shell.json(*words)
    assert first == second
    assert len(first["tool_calls"]) == 1
    page = shell.json("memory", "read", "memory/facts.md")["text"]
    assert page.count("the attic is empty") == 1
    facts = shell.json("facts", "list")["facts"]
    assert [fact["text"] for fact in facts].count("the attic is empty") == 1
    exported = shell.ok("sessions", "export").out
    assert exported.count('"text": "remember that the attic is empty"') == 1


def test_a_group_of_its_own_sees_nothing_of_the_owner(shell: Shell) -> None:
    asked = ("send", "where is the cellar key?", "--session", "group:neighbours")
    turn = shell.json(*asked)
    assert turn["session"] == "group:neighbours"
    assert "clock" not in turn["text"]
    assert "group:neighbours" in [s["key"] for s in shell.json("sessions", "list")["sessions"]]


FOREIGN: list[dict[str, Any]] = [
    {"role": "user", "content": "where did I park?", "timestamp": "2025-03-01T10:00:00Z"},
    {"role": "assistant", "content": [{"type": "text", "text": "Level P7, zebra row."}]},
    {"role": "user", "name": "Ada", "content": "thanks", "at": 1740823200},
]


def test_what_comes_in_goes_out_and_in_again_unchanged(shell: Shell) -> None:
    old = shell.root / "old"
    old.mkdir()
    (old / "parking.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in FOREIGN))
    made = shell.json("sessions", "import", "old")
    assert made == {"sessions": [{"key": "chat:parking", "rows": 3}]}
    lines = shell.ok("sessions", "export", "chat:parking").lines
    assert [line["seq"] for line in lines] == [1, 2, 3]
    assert [line["role"] for line in lines] == ["user", "assistant", "user"]
    assert lines[0]["at"] == "2025-03-01T10:00:00+00:00"
    assert lines[2]["at"] == "2025-03-01T10:00:00+00:00"
    assert [line["content"][0]["text"] for line in lines] == [
        "where did I park?",
        "Level P7, zebra row.",
        "Ada: thanks",
    ]
    again = shell("sessions", "import", "old", "--json")
    assert (again.code, again.json["error"]["code"]) == (2, "invalid")
    check_survives(shell, "chat:parking")


def openclaw(number: int, role: str, content: Any, **more: Any) -> str:
    entry = {
        "type": "message",
        "id": f"e{number}",
        "parentId": f"e{number - 1}" if number else None,
    }
    at = f"2026-02-01T09:0{number}:00.000Z"
    return json.dumps(
        {**entry, "timestamp": at, "message": {"role": role, "content": content, **more}}
    )


def test_a_transcript_of_openclaw_can_be_gone_on_with(shell: Shell) -> None:
    call = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "x"}}
    lines = [
        json.dumps({"type": "session", "version": 3, "id": "abc"}),
        openclaw(0, "user", [{"type": "text", "text": "where is the walnut chest?"}]),
        openclaw(1, "assistant", [call]),
        openclaw(2, "toolResult", "in the attic", toolCallId="t1", toolName="read"),
        openclaw(3, "assistant", [{"type": "text", "text": "The walnut chest is in the attic."}]),
    ]
    (shell.root / "claw.jsonl").write_text("\n".join(lines))
    assert shell.json("sessions", "import", "claw.jsonl")["sessions"][0]["rows"] == 4
    rows = shell.ok("sessions", "export", "chat:claw").lines
    assert [row["role"] for row in rows] == ["user", "assistant", "user", "assistant"]
    assert rows[0]["at"] == "2026-02-01T09:00:00+00:00"
    asked = shell.json("send", "where is the walnut chest?", "--session", "chat:claw")
    assert asked["stop_reason"] == "end_turn"
    (shell.root / "claw.jsonl").write_text("\n".join([*lines[:3], "nonsense", *lines[3:]]))
    torn = shell.json("sessions", "import", "claw.jsonl", "--as", "chat:torn")["sessions"][0]
    assert (torn["rows"], [line.partition(":")[0] for line in torn["left_out"]]) == (
        4,
        ["claw.jsonl, line 4"],
    )
    (shell.root / "none.jsonl").write_text("nonsense\n")
    refused = shell("sessions", "import", "none.jsonl")
    assert refused.code == 2
    assert "none.jsonl, line 1" in refused.err
    assert shell("sessions", "show", "chat:none").code == 1


def test_a_transcript_of_ours_survives_the_round(shell: Shell) -> None:
    shell.ok("send", "remember that the boat is called Ida")
    check_survives(shell, "main")


def check_survives(shell: Shell, key: str) -> None:
    """Exported, imported and exported again, a transcript is the same, but for whose word it is."""
    lines = shell.ok("sessions", "export", key).out
    assert lines
    copy: Path = shell.root / f"copy-of-{key.replace(':', '-')}.jsonl"
    copy.write_text(lines)
    shell.ok("sessions", "import", str(copy))
    again = shell.ok("sessions", "export", f"chat:{copy.stem}").lines
    assert [{**row, "tainted": False} for row in again] == [
        {**json.loads(line), "tainted": False} for line in lines.splitlines()
    ]
    assert all(row["tainted"] for row in again if row["role"] != "user")


def test_a_hit_in_a_transcript_can_be_opened(shell: Shell) -> None:
    (shell.root / "trip.jsonl").write_text(
        '{"role": "user", "content": "the ferry leaves at quay 17"}\n'
        '{"role": "assistant", "content": "I noted quay 17 for the ferry."}\n'
    )
    shell.ok("sessions", "import", "trip.jsonl")
    shell.ok("memory", "index")
    hits = shell.json("memory", "search", "ferry quay")["results"]
    hit = next(hit for hit in hits if hit["path"] == "sessions/chat:trip.jsonl")
    part = ("--from", str(hit["start_line"]), "--lines", "1")
    opened = shell.json("memory", "read", hit["path"], *part)
    assert json.loads(opened["text"])["content"][0]["text"] == "the ferry leaves at quay 17"


def test_alerts_are_followed_and_stand_in_the_main_session(shell: Shell) -> None:
    sent = shell.json("alerts", "test")
    assert sent["delivered"]["main"] == "sent", "the answer comes after the first tries"
    notices = [line for line in shell.ok("sessions", "export").lines if line["role"] == "notice"]
    assert notices[-1]["content"][0]["text"] == sent["text"]
    with shell.started("alerts", "follow", "--json") as follower:
        assert follower.stdout
        while json.loads(follower.stdout.readline())["id"] != sent["id"]:
            pass  # older ones, that nobody was there to see


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_characters_that_the_output_lacks_are_written_as_escapes(
    shell: Shell, encoding: str
) -> None:
    def said(*argv: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "agentd", *argv],
            env={**shell.environ(), "PYTHONIOENCODING": encoding},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding)

    shell.ok("memory", "write", "Füchsin 🦊", "--target", "notes/fox.md")
    shell.ok("memory", "index")
    sayable = "Füchsin".encode(encoding, "backslashreplace").decode(encoding)
    for argv in (["memory", "read", "notes/fox.md"], ["memory", "search", "Füchsin 🦊"]):
        code, out, _ = said(*argv)
        assert (code, f"{sayable} \\U0001f98a" in out) == (0, True), out
        code, out, _ = said(*argv, "--json")
        assert (code, "Füchsin 🦊" in json.dumps(json.loads(out), ensure_ascii=False)) == (0, True)
    code, _, err = said("memory", "read", "füchsin 🦊.md")
    assert code != 0
    assert "Traceback" not in err
    assert "\\U0001f98a" in err
