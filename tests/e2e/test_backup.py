"""A backup of a running daemon, restored into another home, is the same agent."""

from __future__ import annotations

import pytest

from tests.e2e.shell import a_shell, on_a_terminal


def test_a_home_moves_to_another_place() -> None:
    with a_shell() as old, a_shell() as new:
        old.wake()
        old.ok("send", "remember that the cellar key hangs behind the clock")
        file = str(new.root / "b.tar.gz")
        told = old.json("backup", file)
        assert (told["file"], told["files"] > 10) == (file, True)
        again = old("backup", file, "--json")
        assert (again.code, "exists already" in again.json["error"]["message"]) == (2, True)
        refused = old("restore", file)
        assert refused.code == 75, "the daemon runs"
        exported = old.ok("sessions", "export", "main").out
        assert "moved aside" not in new.ok("restore", file).out
        again = new("restore", file, "--json")
        assert (again.code, "--force" in again.json["error"]["cure"]) == (2, True)
        new.wake()
        assert new.ok("sessions", "export", "main").out == exported
        assert "behind the clock" in new.ok("memory", "search", "cellar key").out
        assert new("doctor").code == 0


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_command_in_a_backup_is_shown_and_taken_only_with_a_yes(answer: str) -> None:
    with a_shell() as old, a_shell() as new:
        config = old.root / "config.toml"
        config.write_text('[alerts]\ncommand = ["/bin/sh", "-c", "true \u202e"]\n')
        old.wake()
        old.ok("backup", str(new.root / "b.tar.gz"))
        refused = new("restore", "b.tar.gz")
        assert (refused.code, "--trust" in refused.err) == (78, True)
        screen = on_a_terminal(new, f"{answer}\n", "restore", "b.tar.gz")
        assert 'alerts.command = ["/bin/sh", "-c", "true \\u202e"]: is run at each alert' in screen
        restored = (new.root / "config.toml").exists()
        assert restored is (answer == "y")
        if not restored:
            assert "nothing was restored" in screen
