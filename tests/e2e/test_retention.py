"""Old conversations on a real daemon: erased once cut and saved, and never before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests import finding
from tests.e2e.shell import Shell, a_shell

CANARY = "Quetzalschwanzfeder"
_FOLDED = "uetzalschwanzfeder"  # as the full-text tables spell it, whatever letter came before
DAYS = {"AGENTD__STORAGE__RETENTION_DAYS": "30"}


def holding(root: Path) -> set[str]:
    """The files that hold the canary, by their place below the home."""
    return finding.holding(root, CANARY.encode(), _FOLDED.encode())


def bring_in(shell: Shell, name: str, age: timedelta, word: str) -> None:
    """A conversation of that age, as the session `chat:NAME`."""
    start = datetime.now(UTC) - age
    lines = [
        {
            "role": ("user", "assistant")[n % 2],
            "content": (f"What is the {word} {n} worth?", "I do not know.")[n % 2],
            "at": (start + timedelta(minutes=n)).isoformat(),
        }
        for n in range(6)
    ]
    file = shell.root / f"{name}.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    shell.ok("sessions", "import", str(file))
    file.unlink()


def restarted(shell: Shell, **variables: str) -> None:
    shell.ok("stop")
    shell.variables.update(variables)
    shell.wake()


def wait_for_retention(shell: Shell) -> dict[str, object]:
    while not (told := shell.json("status")["retention"])["last"]:
        pass
    while shell.json("memory", "status")["pending"]:
        pass
    return told


@pytest.fixture
def shell() -> Iterator[Shell]:
    with a_shell() as shell:
        shell.wake()
        bring_in(shell, "bird", timedelta(days=40), CANARY)
        bring_in(shell, "young", timedelta(days=2), "amsel")
        bring_in(shell, "context", timedelta(days=40), "drossel")
        typed = shell.root / "state" / "chat_history"
        typed.write_text(f"\n# 2024-01-01 10:00:00.000001\n+{CANARY}\n")
        for key in ("chat:bird", "chat:young"):
            shell.json("sessions", "reset", key)
        shell.ok("memory", "index")
        assert {"state/state.db", "state/index.db"} <= {
            name.removesuffix("-wal") for name in holding(shell.root)
        }, "the test could not fail"
        yield shell


def said(shell: Shell, key: str) -> list[dict[str, object]]:
    rows = shell.ok("sessions", "export", key).lines
    return [row for row in rows if row["role"] in ("user", "assistant")]


def test_an_old_conversation_that_was_cut_and_saved_leaves_no_byte(shell: Shell) -> None:
    notes = {path: path.read_bytes() for path in shell.workspace.rglob("*.md")}
    restarted(shell)
    assert shell.json("status")["retention"]["last"] is None, "it is off by default"
    assert len(said(shell, "chat:bird")) == 6
    restarted(shell, **DAYS)
    assert wait_for_retention(shell)["removed"] == 6
    assert holding(shell.root) == set()
    assert said(shell, "chat:bird") == []
    assert len(said(shell, "chat:young")) == 6, "it is not old"
    assert len(said(shell, "chat:context")) == 6, "it was never cut"
    found = shell.json("memory", "search", CANARY)["results"]
    assert not [hit for hit in found if CANARY in hit["text"]]
    hits = shell.json("memory", "search", "drossel")["results"]
    assert hits[0]["path"] == "sessions/chat:context.jsonl"
    assert {path: path.read_bytes() for path in shell.workspace.rglob("*.md")} == notes
    (check,) = [c for c in shell.json("doctor")["checks"] if c["code"] == "retention"]
    assert check["level"] == "ok"
    assert "30 days" in check["text"]


@pytest.mark.parametrize("database", [1, 2], ids=["index", "transcripts"])
def test_a_kill_in_the_middle_is_made_good_at_the_next_start(shell: Shell, database: int) -> None:
    shell.ok("stop")
    shell.variables |= {**DAYS, "AGENTD_FAILPOINT": f"store.deleted:{database}"}
    assert shell.begin().ended(60) == -9
    assert holding(shell.root), "the test could not fail"
    del shell.variables["AGENTD_FAILPOINT"]
    shell.wake()
    wait_for_retention(shell)
    assert holding(shell.root) == set()
    assert said(shell, "chat:bird") == []
    assert len(said(shell, "chat:young")) == len(said(shell, "chat:context")) == 6
