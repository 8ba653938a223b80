"""`agentd init` on a terminal: at its end a test alert, if there is a daemon to send it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.scripted_daemon import ScriptedDaemon


def interview(home: Path, answers: str) -> str:
    """What is said at a terminal on which `answers` are typed; init must succeed."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answers.encode())
        done = subprocess.run(
            [sys.executable, "-m", "agentd", "init"],
            env={**os.environ, "AGENTD_HOME": str(home), "TZ": "UTC"},
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.PIPE,
            timeout=60,
            check=True,
        )
        return os.read(ours, 65536).decode() + done.stderr.decode()
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_running_daemon_sends_a_test_alert(tmp_path: Path) -> None:
    with ScriptedDaemon(tmp_path / "agentd.sock") as daemon:
        answer = {"delivered": {"journal": "sent", "socket": "pending"}}
        daemon.on("_agentd/alerts/test", lambda params, wire: answer)
        said = interview(tmp_path, "\n\n\n\ny\n")
    assert daemon.calls[-1][0] == "_agentd/alerts/test"
    assert "journal: sent" in said
    assert (tmp_path / "config.toml").exists()


def test_without_a_daemon_it_says_what_is_next_and_offers_nothing(tmp_path: Path) -> None:
    said = interview(tmp_path, "\n\n\n\n")
    assert "`agentd up` starts the daemon" in said
    assert "agentd alerts test" in said
    assert "[y/N]" not in said
    assert (tmp_path / "workspace" / "SOUL.md").exists()
    assert "active_hours" not in (tmp_path / "config.toml").read_text(), "they are the defaults"


def test_a_second_time_nothing_is_asked(tmp_path: Path) -> None:
    interview(tmp_path, "\n\n\n\nn\n")
    with ScriptedDaemon(tmp_path / "agentd.sock") as daemon:
        said = interview(tmp_path, "")
    assert "nothing to do" in said
    assert daemon.calls == []
