"""A deleted session on a real daemon: no file below its home holds a word of it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentd.storage.lock import folder_lock
from tests import finding
from tests.e2e.shell import Shell, a_shell
from tests.waiting import wait_until

CANARY = "Quetzalschwanzfeder"
_FOLDED = "uetzalschwanzfeder"  # as the full-text tables spell it, whatever letter came before


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with a_shell() as shell:
        shell.wake()
        yield shell


def holding(root: Path) -> set[str]:
    """The files that hold the canary, by their place below the home."""
    return finding.holding(root, CANARY.encode(), _FOLDED.encode())


def talk(shell: Shell, session: str) -> None:
    for number in range(3):
        shell.ok("send", f"what is the {CANARY} {number} worth?", "--session", session)
    shell.ok("memory", "index")
    assert any("state.db" in name for name in holding(shell.root)), "the test could not fail"
    assert any("index.db" in name for name in holding(shell.root))


@pytest.mark.parametrize("session", ["chat:bird", "main", "group:birds"])
def test_no_file_holds_a_word_of_a_deleted_session(shell: Shell, session: str) -> None:
    talk(shell, session)
    done = shell.json("sessions", "delete", session, "--yes")
    assert done == {"key": session, "deleted": True, "kept": session == "main"}
    assert holding(shell.root) == set()
    found = shell.json("memory", "search", CANARY)["results"]
    assert not [hit for hit in found if CANARY in hit["text"]]
    assert shell("sessions", "export", session).out == ""
    keys = [info["key"] for info in shell.json("sessions", "list")["sessions"]]
    assert (session in keys) == (session == "main")


def test_a_deletion_that_an_editor_asks_for_leaves_no_byte_either(shell: Shell) -> None:
    talk(shell, "chat:bird")
    typed = shell.root / "state" / "chat_history"
    typed.write_text(f"\n# 2026-11-21 10:00:00.000001\n+what is the {CANARY} worth?\n")
    params = {"sessionId": "chat:bird"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "session/delete", "params": params}
    assert shell.ok("acp", given=f"{json.dumps(call)}\n").json["result"] == {}
    assert not typed.exists()
    assert holding(shell.root) == set()


def test_a_deleted_session_stays_gone_over_a_restart_and_its_key_can_be_used_again(
    shell: Shell,
) -> None:
    talk(shell, "chat:again")
    shell.ok("sessions", "delete", "chat:again", "--yes")
    shell.wake_again()
    assert holding(shell.root) == set()
    assert shell("sessions", "show", "chat:again").code == 1
    assert shell.json("send", "hello again", "--session", "chat:again")["session"] == "chat:again"
    assert len(shell.ok("sessions", "export", "chat:again").lines) == 2


def test_nothing_is_deleted_without_a_yes(shell: Shell) -> None:
    shell.ok("send", "keep me", "--session", "chat:kept")
    refused = shell("sessions", "delete", "chat:kept")
    assert (refused.code, refused.out) == (2, "")
    assert "--yes" in refused.err
    assert shell.ok("sessions", "export", "chat:kept").lines
    assert shell("sessions", "delete", "chat:never", "--yes").code == 1


def type_in(shell: Shell, session: str) -> Path:
    """What a chat keeps of what was typed in it."""
    typed = shell.root / "state" / "chat_history"
    typed.write_text(f"\n# 2026-11-21 10:00:00.000001 {session}\n+what is the {CANARY} worth?\n")
    return typed


def test_a_deletion_goes_on_when_the_client_has_left(shell: Shell) -> None:
    talk(shell, "chat:left")
    typed = type_in(shell, "chat:left")
    call = {"jsonrpc": "2.0", "id": 1, "method": "_agentd/sessions/delete"}
    with folder_lock(typed.parent):  # which the chat history waits for
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(shell.root / "agentd.sock"))
            line.sendall(json.dumps({**call, "params": {"key": "chat:left"}}).encode() + b"\n")
            wait_until(lambda: "chat:left" not in shell.ok("sessions", "list").out, "it is deleted")
        assert CANARY in typed.read_text(), "the test could not fail"
    wait_until(lambda: not typed.exists(), "what was typed is erased")
    wait_until(lambda: not holding(shell.root), "no file holds a word of it")


def test_a_kill_between_the_store_and_the_other_places_is_made_good_at_the_next_start() -> None:
    with a_shell(AGENTD_FAILPOINT="session.deleted") as shell:
        shell.wake()
        talk(shell, "chat:bird")
        typed = type_in(shell, "chat:bird")
        assert shell("sessions", "delete", "chat:bird", "--yes").code == 69
        assert CANARY in typed.read_text(), "the test could not fail"
        shell.variables.clear()
        shell.wake()
        wait_until(lambda: not holding(shell.root), "no file holds a word of it")
        assert shell("sessions", "delete", "chat:bird", "--yes").code == 1


@pytest.mark.parametrize("database", [1, 2], ids=["transcripts", "index"])
def test_a_kill_before_the_bytes_are_gone_is_made_good_at_the_next_start(database: int) -> None:
    with a_shell(AGENTD_FAILPOINT=f"store.deleted:{database}") as shell:
        shell.wake()
        talk(shell, "chat:bird")
        assert shell("sessions", "delete", "chat:bird", "--yes").code == 69
        assert holding(shell.root), "the test could not fail"
        shell.variables.clear()
        shell.wake()
        while shell.json("memory", "status")["pending"]:
            pass
        assert holding(shell.root) == set()
        assert shell("sessions", "show", "chat:bird").code == 1
