"""A running daemon takes a changed configuration, by command and by SIGHUP."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.e2e.shell import PATIENCE, Shell, a_shell


@pytest.fixture
def shell() -> Iterator[Shell]:
    with a_shell() as shell:
        shell.wake()
        yield shell


def test_live_settings_change_and_mistakes_change_nothing(shell: Shell) -> None:
    config = shell.root / "config.toml"
    config.write_text('[heartbeat]\ninterval = "0m"\n')
    outcome = shell.json("reload")
    assert (outcome["changed"], outcome["needs_restart"]) == (["heartbeat.interval"], [])
    assert shell.json("status")["heartbeat"]["enabled"] is False
    config.write_text("[heartbeat]\nintervall = 1\n[log]\nlevel = 7\n")
    refused = shell("reload")
    assert refused.code == 78
    assert "intervall" in refused.err
    assert "log.level" in refused.err
    assert shell.json("status")["heartbeat"]["enabled"] is False
    config.write_text("")
    os.kill(shell.json("status")["pid"], signal.SIGHUP)
    end = time.monotonic() + PATIENCE
    while not shell.json("status")["heartbeat"]["enabled"]:
        assert time.monotonic() < end
    assert "nothing has changed" in shell.ok("reload").out


def test_notes_are_cut_in_another_way_without_a_restart(shell: Shell) -> None:
    note = shell.root / "workspace" / "projects" / "tea.md"
    note.parent.mkdir()
    note.write_text(
        "\n\n".join(f"paragraph {n} about green tea and some more words" for n in range(9))
    )

    def pieces() -> int:
        return shell.json("memory", "status")["chunks"]

    shell.ok("memory", "search", "green tea")
    before = pieces()
    (shell.root / "config.toml").write_text('[memory_search]\nchunker = "lines"\n')
    outcome = shell.json("reload")
    assert (outcome["changed"], outcome["needs_restart"]) == (["memory_search.chunker"], [])
    end = time.monotonic() + PATIENCE
    while pieces() > before - 8:  # nine paragraphs are one piece then
        assert time.monotonic() < end
