"""`agentd memory proposals` and `agentd facts validate`: what they ask and how it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentd.app.cli.app import app
from tests.scripted_daemon import ScriptedDaemon

runner = CliRunner()
PROPOSAL: dict[str, Any] = {
    "id": "k3f9q2ma",
    "path": "USER.md",
    "text": "The user's dog is called Rex.",
    "diff": (
        "--- a/USER.md\n+++ b/USER.md\n@@ -1 +1,2 @@\n # The user\n+- The user's "
        "dog is called Rex.\n"
    ),
    "digest": "d" * 64,
    "evidence": {
        "times": 3,
        "first": "2026-11-13T09:00:00+00:00",
        "last": "2026-11-22T09:00:00+00:00",
        "sessions": ["main", "chat:a"],
    },
    "replaces": None,
    "warnings": [],
    "problem": "",
}
HIGH = {"severity": "high", "reason": "an order", "line": 2, "column": 1}
FOUND: dict[str, Any] = {
    "checked": 12,
    "duplicates": [{"id": "aaaaaaaa", "of": "bbbbbbbb"}],
    "conflicts": [{"id": "cccccccc", "by": "dddddddd"}],
    "triples": ["gggggggg"],
    "stale": ["eeeeeeee"],
    "evicted": ["ffffffff"],
    "dry_run": True,
}


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    with ScriptedDaemon(tmp_path / "home" / "agentd.sock") as daemon:
        yield daemon


def proposals(daemon: ScriptedDaemon, *argv: str, done: str = "", **fields: Any) -> Any:
    told = {"proposals": [{**PROPOSAL, **fields}], "done": done}
    daemon.on("_agentd/memory/proposals", lambda params, wire: told)
    return runner.invoke(app, ["memory", "proposals", *argv])


def test_a_proposal_is_shown_with_its_evidence_and_the_exact_change(daemon: ScriptedDaemon) -> None:
    result = proposals(daemon)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == (
        "k3f9q2ma  The user's dog is called Rex.  (said 3 times, 2026-11-13 to 2026-11-22)"
    )
    assert "    +- The user's dog is called Rex." in lines
    assert daemon.params_of("_agentd/memory/proposals") == [{}]


def test_terminal_codes_in_a_proposal_do_nothing(daemon: ScriptedDaemon) -> None:
    result = proposals(daemon, text="Rex\x1b[2J", diff="+- Rex\x1b[2J\n")
    assert "\x1b" not in result.output


def test_a_warning_and_a_full_file_are_told(daemon: ScriptedDaemon) -> None:
    assert "warning: an order (high)" in proposals(daemon, warnings=[HIGH]).output
    assert "USER.md is full" in proposals(daemon, diff="", problem="USER.md is full").output


@pytest.mark.parametrize(
    ("argv", "done", "code", "words"),
    [
        (["--accept", "k3f9q2ma"], "accepted", 0, "written to USER.md"),
        (["--reject", "k3f9q2ma"], "rejected", 0, "not be proposed again"),
        (["--accept", "k3f9q2ma"], "changed", 1, "+- The user's dog"),
        (["--accept", "k3f9q2ma"], "too_long", 1, "nothing was written"),
    ],
)
def test_an_answer_says_what_was_done(
    daemon: ScriptedDaemon, argv: list[str], done: str, code: int, words: str
) -> None:
    result = proposals(daemon, *argv, done=done)
    assert (result.exit_code, words in result.output) == (code, True)
    assert daemon.params_of("_agentd/memory/proposals") == [{argv[0].strip("-"): argv[1]}]


def test_proposals_are_json_for_programs(daemon: ScriptedDaemon) -> None:
    result = proposals(daemon, "--accept", "k3f9q2ma", "--digest", "dd", "--json", done="changed")
    assert (result.exit_code, json.loads(result.output)["done"]) == (1, "changed")
    assert daemon.params_of("_agentd/memory/proposals")[0]["digest"] == "dd"


def test_that_nothing_is_proposed_is_told(daemon: ScriptedDaemon) -> None:
    daemon.on("_agentd/memory/proposals", lambda params, wire: {"proposals": [], "done": ""})
    assert "nothing is proposed" in runner.invoke(app, ["memory", "proposals"]).output


def test_validation_says_of_each_fact_why_it_goes(daemon: ScriptedDaemon) -> None:
    daemon.on("_agentd/facts/validate", lambda params, wire: FOUND)
    lines = runner.invoke(app, ["facts", "validate", "--dry-run"]).output.splitlines()
    assert lines[0].startswith("4 of 12 facts would be put aside")
    assert lines[1:] == [
        "aaaaaaaa  says the same as bbbbbbbb",
        "cccccccc  is no longer so: dddddddd",
        "eeeeeeee  was not said again for long",
        "ffffffff  is one too many",
    ]
    assert daemon.params_of("_agentd/facts/validate") == [{"dry_run": True}]
    told = runner.invoke(app, ["facts", "validate", "--json"])
    assert json.loads(told.output) == FOUND


def test_validation_that_finds_nothing_says_so(daemon: ScriptedDaemon) -> None:
    lists = ("duplicates", "conflicts", "triples", "stale", "evicted")
    nothing = {"checked": 3, **{name: [] for name in lists}, "dry_run": False}
    daemon.on("_agentd/facts/validate", lambda params, wire: nothing)
    assert "nothing to put aside among 3 facts" in runner.invoke(app, ["facts", "validate"]).output
