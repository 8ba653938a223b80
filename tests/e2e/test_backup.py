"""A backup of a running daemon, restored into another home, is the same agent."""

from __future__ import annotations

from tests.e2e.shell import a_shell


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
        assert (again.code, "--force" in again.json["error"]["cure"]) == (1, True)
        new.wake()
        assert new.ok("sessions", "export", "main").out == exported
        assert "behind the clock" in new.ok("memory", "search", "cellar key").out
        assert new("doctor").code == 0
