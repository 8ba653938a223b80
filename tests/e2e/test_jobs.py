"""Jobs through a real daemon and a shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tests.e2e.shell import Shell, a_shell
from tests.waiting import wait_until


@pytest.fixture
def shell() -> Iterator[Shell]:
    with a_shell(AGENTD__JOBS__MIN_INTERVAL="1s") as shell:
        yield shell


def history(shell: Shell, count: int) -> list[dict[str, object]]:
    """The rows of the history, the oldest first, once there are so many."""
    runs: list[dict[str, object]] = []

    def are_there() -> bool:
        runs[:] = reversed(shell.json("jobs", "history")["runs"])
        return len(runs) >= count

    wait_until(are_there, f"{count} runs")
    return runs


def test_reminders_and_questions_come_on_time_survive_a_restart_and_are_told(shell: Shell) -> None:
    shell.wake()
    soon = shell.json("jobs", "add", "stand up", "--in", "1s")
    later = shell.json("jobs", "add", "what now?", "--in", "1d", "--ask", "--session", "main")
    (run,) = history(shell, 1)
    assert (run["job"], run["outcome"], run["reason"]) == (soon["id"], "alert", "reminder")
    assert run["due"] == soon["next_due"]
    assert run["at"] >= run["due"]
    listed = [job["id"] for job in shell.json("jobs", "list")["jobs"]]
    assert listed == ["heartbeat", "graph", later["id"]]
    asked = shell.json("jobs", "run", str(later["id"]))
    assert (asked["outcome"], asked["text"]) == ("alert", "what now?")
    assert {alert["text"] for alert in shell.json("alerts", "list")["alerts"]} == {
        "stand up",
        "what now?",
    }
    due = datetime.fromisoformat(shell.json("jobs", "add", "while away", "--in", "2s")["next_due"])
    shell.ok("stop")
    wait_until(lambda: datetime.now(UTC) > due, "it is due")
    shell.wake()
    late = history(shell, 3)[-1]
    assert (late["reason"], late["text"]) == ("reminder", "while away")
    rows = shell.ok("sessions", "export", "main").lines
    assert not [
        row for row in rows if row["role"] in ("user", "assistant") and "what now" in str(row)
    ]
    words = shell.ok("jobs", "list").out
    assert "heartbeat  system  every 30m" in words
    assert shell("jobs", "remove", "heartbeat").code != 0
    refused = shell("jobs", "add", "x", "--at", "2020-01-01 09:00")
    assert refused.code == 2
    assert "is past: it is 2" in refused.err


def test_a_moment_in_words_is_shown_and_needs_a_yes(shell: Shell) -> None:
    pytest.importorskip("dateparser", reason="the extra dates is not installed (EXTRAS=dates)")
    words = ("jobs", "add", "call the dentist", "--at", "tomorrow 9am", "--zone", "Asia/Kolkata")
    shell.wake()
    asked = shell(*words)
    assert asked.code == 2
    assert re.search(
        r"^'tomorrow 9am' is \w+day, \d{4}-\d\d-\d\d 09:00 \(Asia/Kolkata\)$",
        asked.err,
        re.MULTILINE,
    )
    assert "this needs a yes" in asked.err
    assert "call the dentist" not in {job["text"] for job in shell.json("jobs", "list")["jobs"]}
    done = shell.ok(*words, "--yes", "--json")
    assert (
        datetime.fromisoformat(done.json["next_due"]).astimezone(ZoneInfo("Asia/Kolkata")).hour == 9
    )
    assert "(Asia/Kolkata)" in done.err
    refused = shell("jobs", "add", "tea", "--at", "whenever", "--yes", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (2, "invalid")
    nowhere = shell("jobs", "add", "tea", "--at", "tomorrow 9am", "--zone", "Mars", "--yes")
    assert nowhere.code == 2
    assert "no known time zone" in nowhere.err
