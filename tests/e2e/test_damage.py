"""A state database that was damaged or deleted while the daemon did not run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.e2e.shell import Shell, a_shell


def spoil(path: Path, table: str) -> None:
    """Write noise over the first page of a table."""
    with closing(sqlite3.connect(path)) as conn:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = conn.execute(query, (table,)).fetchone()
    with path.open("r+b") as file:
        file.seek(4096 * (page - 1))
        file.write(bytes((7 * n + n // 251) % 256 for n in range(4096)))


def said(shell: Shell) -> list[str]:
    """The lines of the transcript that are no notices."""
    lines = shell.ok("sessions", "export", "main").out.splitlines()
    return [line for line in lines if '"role": "notice"' not in line]


def test_a_damaged_state_is_salvaged_and_told_everywhere() -> None:
    with a_shell() as shell:
        shell.ok("config", "set", "log.keep", "7")
        shell.wake()
        shell.ok("send", "remember that the cellar key hangs behind the clock")
        before = said(shell)
        shell.ok("stop")
        spoil(shell.root / "state" / "state.db", "charges")
        shell.wake()
        assert said(shell) == before
        (problem,) = [p for p in shell.json("status")["problems"] if p["code"] == "state_salvaged"]
        assert f"rows of conversations: {len(before)}" in problem["text"]
        doctor = shell("doctor")
        assert (doctor.code, "state.db was damaged" in doctor.out) == (1, True)
        (alert,) = shell.json("alerts", "list")["alerts"]
        assert alert["text"].startswith("state.db was damaged")
        assert "state.db was damaged" in shell.ok("sessions", "export", "main").out
        shell.ok("restart")
        assert len(shell.json("alerts", "list")["alerts"]) == 1
        assert (shell.root / "state" / "state.db.damaged-1" / "state.db").is_file()


def test_a_state_that_is_gone_is_missed_until_the_owner_decides() -> None:
    with a_shell() as shell:
        shell.ok("config", "set", "log.keep", "7")
        shell.wake()
        shell.ok("send", "remember that the cellar key hangs behind the clock")
        shell.ok("stop")
        (shell.root / "state" / "state.db").unlink()
        missed = shell("run")
        assert (missed.code, "init --new-state" in missed.err) == (78, True)
        assert shell("up").code == 78
        assert not (shell.root / "state" / "state.db").exists()
        shell.ok("init", "--new-state")
        shell.wake()
        assert said(shell) == []
        again = shell("init", "--new-state")
        assert again.code == 75, "the daemon runs"


def test_a_configuration_and_a_key_that_are_gone_are_told() -> None:
    with a_shell() as shell:
        shell.ok("config", "set", "log.keep", "7")
        shell.wake()
        shell.ok("send", "remember that the cellar key hangs behind the clock")
        shell.ok("stop")
        (shell.root / "config.toml").write_bytes(b"")
        (shell.root / "state" / "facts.key").unlink()
        shell.wake()
        codes = {problem["code"] for problem in shell.json("status")["problems"]}
        assert {"config_lost", "facts_key_lost"} <= codes
        assert shell("doctor").code == 1
        assert len(shell.json("alerts", "list")["alerts"]) == 2
