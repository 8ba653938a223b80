"""The one-shot commands: what they ask, what they print, how they end."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import agentd
from agentd.app.cli.app import app
from agentd.core.compaction import CompactionReport
from agentd.testing import PNG
from tests.scripted_daemon import STATUS, Refusal, ScriptedDaemon

runner = CliRunner()


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    with ScriptedDaemon(tmp_path / "home" / "agentd.sock") as daemon:
        yield daemon


def test_the_version_is_printed() -> None:
    assert runner.invoke(app, ["--version"]).output == f"agentd {agentd.__version__}\n"


def test_a_wrong_option_is_a_usage_error() -> None:
    assert runner.invoke(app, ["status", "--nonsense"]).exit_code == 2


OPTIONS = (
    *("--max-tokens", "900", "--min-score", "0.2", "--half-life-days", "9", "--no-recency"),
    *("--fusion", "rrf", "--sources", "notes,sessions"),
)


@pytest.mark.parametrize(
    ("argv", "method", "params"),
    [
        (["status"], "status", {}),
        (["sessions", "list"], "sessions/list", {}),
        (["sessions", "show", "chat:1"], "sessions/show", {"key": "chat:1"}),
        (["sessions", "compact"], "sessions/compact", {"key": "main"}),
        (["sessions", "cancel"], "sessions/cancel", {"key": "main"}),
        (
            ["sessions", "flush", "main", "--explain"],
            "sessions/flush",
            {"key": "main", "explain": True},
        ),
        (
            ["memory", "read", "MEMORY.md", "--from", "3", "--lines", "2"],
            "memory/read",
            {"path": "MEMORY.md", "from": 3, "lines": 2},
        ),
        (
            ["memory", "write", "tea", "--target", "memory", "--replace"],
            "memory/write",
            {
                "content": "tea",
                "target": "memory",
                "append": False,
                "replace_all": False,
            },
        ),
        (
            ["memory", "tree", "memory", "--depth", "2"],
            "memory/tree",
            {"path": "memory", "depth": 2},
        ),
        (
            ["memory", "search", "green tea", "--limit", "100"],
            "memory/search",
            {"query": "green tea", "queries": [], "limit": 100},
        ),
        (
            ["memory", "search", "tea", *OPTIONS],
            "memory/search",
            {
                "query": "tea",
                "queries": [],
                "limit": 5,
                "sources": ["notes", "sessions"],
                "max_tokens": 900,
                "min_score": 0.2,
                "half_life_days": 9.0,
                "recency": False,
                "fusion": "rrf",
            },
        ),
        (["memory", "index"], "memory/index", {}),
        (["memory", "status"], "memory/status", {}),
        (["heartbeat", "run", "--force"], "heartbeat/run", {"force": True}),
        (["heartbeat", "history", "--limit", "3"], "heartbeat/history", {"limit": 3}),
        (["heartbeat", "explain"], "heartbeat/explain", {}),
        (["alerts", "list", "--unacked"], "alerts/list", {"limit": 20, "unacked": True}),
        (["alerts", "ack", "7"], "alerts/ack", {"id": 7}),
        (["alerts", "test"], "alerts/test", {}),
        (["heartbeat", "pause", "2h"], "heartbeat/pause", {"duration": "2h"}),
        (["heartbeat", "pause", "--resume"], "heartbeat/pause", {}),
        (["jobs", "list"], "jobs/list", {"past": False}),
        (
            ["jobs", "add", "tea", "--in", "2h", "--ask", "--misfire", "skip"],
            "jobs/add",
            {"text": "tea", "in": "2h", "ask": True, "misfire": "skip"},
        ),
        (
            ["jobs", "add", "tea", "--cron", "0 9 * * 1-5", "--zone", "UTC", "--session", "main"],
            "jobs/add",
            {"text": "tea", "cron": "0 9 * * 1-5", "zone": "UTC", "session": "main", "ask": False},
        ),
        (["jobs", "remove", "7"], "jobs/remove", {"id": 7}),
        (["jobs", "run", "heartbeat"], "jobs/run", {"id": "heartbeat"}),
        (["jobs", "history", "--limit", "3"], "jobs/history", {"limit": 3}),
        (["jobs", "history", "7"], "jobs/history", {"id": 7, "limit": 20}),
        (["sessions", "reset", "chat:1"], "sessions/reset", {"key": "chat:1"}),
        (["sessions", "delete", "chat:1", "--yes"], "sessions/delete", {"key": "chat:1"}),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else "",
)
def test_a_command_asks_its_method_and_prints_the_answer_as_json(
    daemon: ScriptedDaemon, argv: list[str], method: str, params: dict[str, object]
) -> None:
    daemon.on(f"_agentd/{method}", lambda params, wire: {"answer": "ä"})
    result = runner.invoke(app, [*argv, "--json"])
    assert (result.exit_code, result.output) == (0, '{"answer": "ä"}\n')
    assert daemon.calls == [(f"_agentd/{method}", params)]


def test_a_pause_that_is_also_a_resume_is_a_usage_error(daemon: ScriptedDaemon) -> None:
    assert runner.invoke(app, ["heartbeat", "pause", "2h", "--resume"]).exit_code == 2
    assert daemon.calls == []


def test_a_pause_says_what_ends_it(daemon: ScriptedDaemon) -> None:
    daemon.on("_agentd/heartbeat/pause", lambda params, wire: {"paused_until": "tomorrow"})
    said = runner.invoke(app, ["heartbeat", "pause", "2h"]).output
    assert said == "paused until tomorrow; `agentd heartbeat pause --resume` lets the beats go on\n"


def test_a_pause_without_a_duration_resumes_nothing_and_says_what_would(
    daemon: ScriptedDaemon,
) -> None:
    refused = runner.invoke(app, ["heartbeat", "pause"])
    said = " ".join(refused.stderr.replace("│", "").split())
    assert (refused.exit_code, daemon.calls) == (2, [])
    assert '"30m", "2h"' in said
    assert "--resume lets the beats go on" in said


def test_a_deleted_session_is_not_kept_by_the_chats_keys(daemon: ScriptedDaemon) -> None:
    typed = daemon.path.parent / "state" / "chat_history"
    typed.parent.mkdir()
    typed.write_text("a secret")
    daemon.on("_agentd/sessions/delete", lambda params, wire: {"key": "main", "kept": True})
    assert runner.invoke(app, ["sessions", "delete", "main", "--yes"]).exit_code == 0
    assert not typed.exists()


def test_import_sends_files_and_folders_in_pieces_that_fit(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    def take(params, wire):
        return {"key": params["key"], "rows": 0 if params["more"] else 7}

    (tmp_path / "old").mkdir()
    message = {"role": "user", "content": "grüße" * 20_000}
    (tmp_path / "old" / "long.jsonl").write_text(f"{json.dumps(message)}\n\n" * 7)
    (tmp_path / "old" / "note.txt").write_text("not a transcript")
    (tmp_path / "talk.jsonl").write_text("")
    daemon.on("_agentd/sessions/import", take)
    daemon.on("_agentd/sessions/list", lambda params, wire: {"sessions": []})
    argv = ["sessions", "import", str(tmp_path / "old"), str(tmp_path / "talk.jsonl"), "--json"]
    result = runner.invoke(app, argv)
    assert json.loads(result.output) == {
        "sessions": [{"key": "chat:long", "rows": 7}, {"key": "chat:talk", "rows": 7}]
    }
    *pieces, last = daemon.params_of("_agentd/sessions/import")
    assert len(pieces) > 1
    assert [piece["more"] for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    assert [line for piece in pieces for line in piece["lines"]] == [message] * 7
    assert last == {"key": "chat:talk", "lines": [], "more": False}


def test_only_a_name_that_the_user_has_given_is_sent_as_chosen(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    (tmp_path / "talk.jsonl").write_text('{"role": "user", "content": "hello"}\n')
    daemon.on("_agentd/sessions/import", lambda params, wire: {"key": params["key"], "rows": 1})
    daemon.on("_agentd/sessions/list", lambda params, wire: {"sessions": []})
    for name in ([], ["--as", "chat:mine"]):
        runner.invoke(app, ["sessions", "import", str(tmp_path / "talk.jsonl"), *name])
    sent = daemon.params_of("_agentd/sessions/import")
    assert [(one["key"], one.get("chosen", False)) for one in sent] == [
        ("chat:talk", False),
        ("chat:mine", True),
    ]


def test_a_file_that_is_no_transcript_is_refused_before_anything_is_sent(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"role": "user"}\n')
    (tmp_path / "b.jsonl").write_text("[1]\n")
    argv = ["sessions", "import", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    result = runner.invoke(app, argv)
    assert result.exit_code == 2
    assert "a.jsonl, line 1" in result.stderr
    assert "b.jsonl, line 1" in result.stderr
    assert daemon.calls == []


def test_of_a_file_with_bad_lines_the_rest_is_imported_and_they_are_named(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    good = {"role": "user", "content": "one"}
    lines = [json.dumps(good), "nonsense", '{"role": "judge", "content": "no"}', json.dumps(good)]
    (tmp_path / "talk.jsonl").write_text("\n".join(lines))
    daemon.on("_agentd/sessions/list", lambda params, wire: {"sessions": []})
    daemon.on("_agentd/sessions/import", lambda params, wire: {"key": params["key"], "rows": 2})
    result = runner.invoke(app, ["sessions", "import", str(tmp_path / "talk.jsonl")])
    assert result.exit_code == 0
    assert "talk.jsonl, line 2: not a JSON object" in result.stderr
    assert "talk.jsonl, line 3: the role is not one of" in result.stderr
    (sent,) = daemon.params_of("_agentd/sessions/import")
    assert sent["lines"] == [good, good]


def test_files_of_an_export_become_the_sessions_that_they_were(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    daemon.on("_agentd/sessions/list", lambda params, wire: {"sessions": []})
    daemon.on("_agentd/sessions/import", lambda params, wire: {"key": params["key"], "rows": 1})
    names = ["chat:chat:x", "chat:work", "group:team", "main", "old notes"]
    for name in names:
        (tmp_path / f"{name}.jsonl").write_text('{"role": "user", "content": "hi"}\n')
    assert runner.invoke(app, ["sessions", "import", str(tmp_path)]).exit_code == 0
    made = [params["key"] for params in daemon.params_of("_agentd/sessions/import")]
    assert made == [*names[:-1], "chat:old notes"]


def test_a_session_that_exists_is_told_before_anything_is_sent(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    listed = {"sessions": [{"key": "chat:b", "rows": 2}, {"key": "main", "rows": 0}]}
    daemon.on("_agentd/sessions/list", lambda params, wire: listed)
    daemon.on("_agentd/sessions/import", lambda params, wire: {"key": params["key"], "rows": 1})
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"role": "user", "content": "hi"}\n')
    refused = runner.invoke(app, ["sessions", "import", str(tmp_path), "--json"])
    assert (refused.exit_code, json.loads(refused.output)["error"]["code"]) == (2, "invalid")
    assert daemon.params_of("_agentd/sessions/import") == []
    file = str(tmp_path / "b.jsonl")
    renamed = runner.invoke(app, ["sessions", "import", file, "--as", "chat:c", "--json"])
    assert json.loads(renamed.output) == {"sessions": [{"key": "chat:c", "rows": 1}]}
    both = runner.invoke(app, ["sessions", "import", str(tmp_path), "--as", "chat:c"])
    assert both.exit_code == 2


def test_a_long_file_is_read_page_by_page(daemon: ScriptedDaemon) -> None:
    def read(params, wire):
        first = params.get("from", 1)
        return {"text": f"line {first}\n", "lines": 1, "next": 2 if first == 1 else None}

    daemon.on("_agentd/memory/read", read)
    assert runner.invoke(app, ["memory", "read", "MEMORY.md"]).output == "line 1\nline 2\n"


def test_export_prints_every_page_one_message_a_line(daemon: ScriptedDaemon) -> None:
    pages = {
        1: {"lines": [{"seq": 1}, {"seq": 2}], "next": 3},
        3: {"lines": [{"seq": 3}], "next": None},
    }
    daemon.on("_agentd/sessions/export", lambda params, wire: pages[params["first"]])
    result = runner.invoke(app, ["sessions", "export", "main"])
    assert [json.loads(line) for line in result.output.splitlines()] == [
        {"seq": 1},
        {"seq": 2},
        {"seq": 3},
    ]


def test_without_a_daemon_the_exit_code_is_69_and_the_cure_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    plain = runner.invoke(app, ["status"])
    assert (plain.exit_code, plain.stdout) == (69, "")
    assert "agentd up" in plain.stderr
    as_json = runner.invoke(app, ["status", "--json"])
    error = json.loads(as_json.stdout)["error"]
    assert as_json.exit_code == 69
    assert error["code"] == "unreachable"
    assert set(error) == {"code", "message", "cure"}


@pytest.mark.parametrize(
    ("code", "status"), [("busy", 75), ("invalid", 2), ("not_found", 1), ("anything", 1)]
)
def test_the_daemons_refusal_becomes_words_and_an_exit_code(
    daemon: ScriptedDaemon, code: str, status: int
) -> None:
    def refuse(params: dict[str, object], wire: object) -> None:
        raise Refusal(-32000, "not now", code=code, cure="try later")

    daemon.on("_agentd/heartbeat/run", refuse)
    plain = runner.invoke(app, ["heartbeat", "run"])
    assert (plain.exit_code, plain.stdout) == (status, "")
    assert plain.stderr == "error: not now\n→ try later\n"
    as_json = runner.invoke(app, ["heartbeat", "run", "--json"])
    assert as_json.exit_code == status
    assert json.loads(as_json.stdout) == {
        "error": {"code": code, "message": "not now", "cure": "try later"}
    }


@pytest.mark.parametrize(
    ("outcome", "reason", "text", "told"),
    [
        ("alert", "alert", "Due now: tea", "alerted: Due now: tea\n"),
        ("quiet", "ack", "", "quiet: ack\n"),
        (
            "skipped",
            "outside_active_hours",
            "",
            "skipped: outside_active_hours (`agentd heartbeat run --force` runs it anyway)\n",
        ),
        ("skipped", "budget", "", "skipped: budget\n"),
        ("failed", "provider_error", "no key", "failed: provider_error\nno key\n"),
    ],
)
def test_a_beat_is_told_in_words(
    daemon: ScriptedDaemon, outcome: str, reason: str, text: str, told: str
) -> None:
    beat = {"outcome": outcome, "reason": reason, "text": text}
    daemon.on("_agentd/heartbeat/run", lambda params, wire: beat)
    done = runner.invoke(app, ["heartbeat", "run"])
    assert (done.output, done.exit_code) == (told, outcome == "failed")


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["words", "json"])
@pytest.mark.parametrize(
    ("argv", "told", "status"),
    [
        (["jobs", "run", "1"], {"outcome": "failed", "reason": "provider_error"}, 1),
        (["jobs", "run", "1"], {"outcome": "alert", "reason": "reminder"}, 0),
        (["sessions", "compact"], {"compacted": False, "reason": "provider_auth"}, 1),
        (["sessions", "compact"], {"compacted": False, "reason": "nothing_to_compact"}, 0),
        (["sessions", "compact"], {"compacted": True, "reason": "manual"}, 0),
        (["sessions", "reset", "main"], {"compacted": False, "reason": "stale"}, 1),
        (["sessions", "flush"], {"flushed": False, "reason": "flush"}, 1),
        (["sessions", "flush"], {"flushed": False, "reason": "below_threshold"}, 0),
        (["sessions", "flush", "--explain"], {"would_flush": False, "reason": "flush"}, 0),
    ],
)
def test_what_failed_ends_with_one_though_the_daemon_has_answered(
    daemon: ScriptedDaemon,
    argv: list[str],
    told: dict[str, object],
    status: int,
    options: list[str],
) -> None:
    daemon.on(f"_agentd/{argv[0]}/{argv[1]}", lambda params, wire: told)
    assert runner.invoke(app, [*argv, *options]).exit_code == status


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        ("end_turn", ""),
        ("max_tokens", "the answer was cut at the length limit\n"),
        ("refusal", "the model refused\n"),
        ("max_turn_requests", "the agent stopped: too many steps for one turn\n"),
    ],
)
def test_an_answer_that_did_not_end_by_itself_says_so_beside_it(
    daemon: ScriptedDaemon, stop: str, words: str
) -> None:
    daemon.on(
        "session/prompt",
        lambda params, wire: {"stopReason": stop, "_meta": {"agentd/text": "So far"}},
    )
    sent = runner.invoke(app, ["send", "Hello"])
    assert (sent.stdout, sent.stderr, sent.exit_code) == ("So far\n", words, 0)
    as_json = runner.invoke(app, ["send", "Hello", "--json"])
    assert (json.loads(as_json.stdout)["stop_reason"], as_json.stderr) == (stop, "")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"flushed": False, "reason": "flush"}, "nothing could be saved; `agentd logs` says why"),
        ({"flushed": False, "reason": "below_threshold"}, "all that was said is saved already"),
        ({"flushed": True, "reason": "flush"}, ""),
        ({"would_flush": True, "reason": "flush"}, ""),
    ],
)
def test_a_flush_that_saved_nothing_says_so(
    daemon: ScriptedDaemon, told: dict[str, object], words: str
) -> None:
    daemon.on("_agentd/sessions/flush", lambda params, wire: told)
    said = runner.invoke(app, ["sessions", "flush"]).output
    assert words in said
    assert bool(words) == ("saved" in said)


def test_a_flush_says_what_becomes_of_what_could_not_be_saved(daemon: ScriptedDaemon) -> None:
    report = CompactionReport(False, False, "flush", 9, 9, unsaved=2, unsaved_reason="failed")
    daemon.on("_agentd/sessions/flush", lambda params, wire: report.as_json())
    said = runner.invoke(app, ["sessions", "flush"]).output
    assert "2 messages could not be saved to memory (failed)" in said


def test_a_wrong_command_line_is_told_like_every_other_failure() -> None:
    wrong = runner.invoke(app, ["restore"])
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    message, cure = wrong.stderr.splitlines()
    assert message == "error: Missing argument 'FILE'."
    assert cure.startswith("→ Usage: ")
    assert "restore --help` says what it takes" in cure
    alone = runner.invoke(app, ["heartbeat"])
    assert "error" not in alone.output
    assert "history" in alone.output


def test_the_history_says_what_made_a_beat_run_what_was_due_and_what_was_told_before(
    daemon: ScriptedDaemon,
) -> None:
    beat = {
        "id": 7,
        "at": "2021-01-01T09:00:00+00:00",
        "outcome": "quiet",
        "reason": "duplicate",
        "tokens": 9,
        "cost_usd": 0.0,
        "text": "",
        "trigger": "force",
        "repeats": 3,
        "repeats_at": "2021-01-01T08:00:00+00:00",
        "due_entries": ["- call (due: 2021-01-01)", None],
    }
    daemon.on("_agentd/heartbeat/history", lambda params, wire: {"runs": [beat]})
    said = runner.invoke(app, ["heartbeat", "history"]).output
    assert "7   2021-01-01 09:00  force" in said
    assert "duplicate of alert 3 (2021-01-01 08:00)" in said
    assert "- call (due: 2021-01-01), 1 no longer listed" in said


def test_a_beat_is_explained_by_what_it_would_look_at(daemon: ScriptedDaemon) -> None:
    items = [
        {"text": "- [ ] call (due: 2031-01-01 09:00)", "due": False, "done_at": None},
        {"text": "- [ ] stretch (every: 2h)", "due": True, "done_at": None},
        {
            "text": "- [ ] post (due: 2021-01-01 09:00)",
            "due": False,
            "done_at": "2021-01-01T09:00:00+00:00",
            "next": None,
        },
        {
            "text": "- [ ] water (every: 7d)",
            "due": False,
            "done_at": "2021-01-01T09:00:00+00:00",
            "next": "2021-01-08T09:00:00+00:00",
        },
    ]
    checklist = {
        "file_hash": "374c0aa8",
        "missing": False,
        "unreadable": "",
        "mistakes": [],
        "open": True,
        "items": items,
        "more_items": 2,
    }
    watched = {
        "text": "- mail from Anna",
        "calls": [{"name": "mail.list", "input": {"page": 1}}],
        "asks_model": "when an answer changes",
        "looked_at": "2031-01-01T09:00:00+00:00",
        "told": "Anna wrote",
        "told_at": "2031-01-01T08:00:00+00:00",
        "failing_since": "2031-01-01T09:30:00+00:00",
        "failure": "no connection",
    }
    told = {
        "would_run": False,
        "reason": "paused",
        "decided_by": "pause",
        "gates": [
            {"gate": "on", "reason": None},
            {"gate": "pause", "reason": "paused"},
            {"gate": "hours", "reason": "quiet_hours"},
            {"gate": "budget", "reason": None},
        ],
        "next_due": "2021-01-01T09:30:00+00:00",
        "not_before": "2021-01-01T22:00:00+00:00",
        "next_opening": "2021-01-01T22:00:00+00:00",
        "paused_until": "2021-01-01T10:00:00+00:00",
        "times_in": "UTC",
        "zone": "Asia/Tokyo",
        "hours": "08:00-22:00",
        "tokens_today": 1200,
        "daily_tokens": 500000,
        "checklist": checklist,
        "tools": ["mail.list"],
        "watched": [watched],
    }
    daemon.on("_agentd/heartbeat/explain", lambda params, wire: told)
    said = runner.invoke(app, ["heartbeat", "explain"]).output
    assert "374c0aa8" not in said
    *lines, last = (" ".join(line.split()) for line in said.splitlines())
    assert lines == [
        "a beat now is skipped: paused (the gate 'pause' decides)",
        "next due 2021-01-01 09:30: skipped; none can run before 2021-01-01 22:00",
        "gates",
        "on passes",
        "pause stops it: paused, until 2021-01-01 10:00",
        "hours stops it: quiet_hours (08:00-22:00 in Asia/Tokyo), open again 2021-01-01 22:00",
        "budget passes (1,200 today; [budget] heartbeat_daily_tokens: 500,000 tokens)",
        "checklist",
        "entries for each beat yes",
        "entries with a time - [ ] call (due: 2031-01-01 09:00)",
        "- [ ] stretch (every: 2h) (now)",
        "- [ ] post (due: 2021-01-01 09:00) (done 2021-01-01 09:00, and does not come again)",
        "- [ ] water (every: 7d) (done 2021-01-01 09:00; next 2021-01-08 09:00)",
        "and 2 more",
        "times in UTC; entries and hours in Asia/Tokyo",
        "tools mail.list",
    ]
    assert last.startswith(
        'watched - mail from Anna: mail.list {"page": 1}; a model is asked when an answer changes; '
        "answered last 2031-01-01 09:00"
    )
    assert ": no connection; told 2031-01-01 08:00" in last
    assert last.endswith(": Anna wrote")


@pytest.mark.parametrize("command", [[], ["facts"], ["facts", "graph"], ["logs"], ["status"]])
def test_a_short_option_asks_for_help_too(command: list[str]) -> None:
    helped = runner.invoke(app, [*command, "-h"])
    assert helped.exit_code == 0
    assert helped.output == runner.invoke(app, [*command, "--help"]).output


def test_status_for_people_names_problems_and_cures(daemon: ScriptedDaemon) -> None:
    full = {
        **STATUS,
        "provider": {"kind": "offline", "model": "offline", "why": "no key"},
        "sessions": [{"key": "main", "updated_at": "2020-01-01T23:30:00+00:00", "busy": True}],
        "heartbeat": {
            "enabled": True,
            "next_due": "2020-06-01T10:00:00+00:00",
            "last": {"at": "2019-12-31T11:00:00+00:00", "outcome": "quiet", "reason": "ack"},
        },
        "compaction": {"last": None},
        "index": {
            "files": 3,
            "chunks": 1,
            "pending": 0,
            "state": "ready",
            "embedder": "mini-L6-8199be6f699a+many-e5-0123456789ab-0.7",
        },
        "facts": {
            "active": 4,
            "proposed": 1,
            "refused": {"unknown_id": 2},
            "waiting": 1,
            "merged": 4,
        },
        "graph": {"enabled": True, "concepts": 2, "facts": 1, "episodes": 1},
        "cost": {"today_usd": 0.0, "today_tokens": 1234, "month_usd": 2, "month_tokens": 5678},
        "problems": [{"code": "no_key", "text": "no key is set", "cure": "set it"}],
    }
    daemon.on("_agentd/status", lambda params, wire: full)
    daemon.on("initialize", lambda params, wire: {"_meta": {"agentd/zone": "Asia/Tokyo"}})
    said = runner.invoke(app, ["status"]).output
    assert "offline (no key)" in said
    assert "1, 1 at work; last used 2020-01-02 08:30" in said
    assert "next 2020-06-01 19:00; last 2019-12-31 20:00: quiet (ack)" in said
    assert "today 1,234 tokens; this month $2.00 (5,678 tokens)" in said
    assert "3 files, 1 chunk, 0 pending; ready, embedder mini-L6 and many-e5" in said
    assert (
        "facts       4 known, 1 waiting for your yes, 1 conversation to be read; "
        "the last review merged 4 into others: `agentd facts changes`, `facts undo ID`; "
        "not kept: 2 unknown id"
    ) in said
    assert "2 concepts, 1 fact, 1 episode; not consolidated yet" in said
    assert "no key is set (no_key)" in said
    assert "→ set it" in said
    assert "forgotten" not in said


@pytest.mark.parametrize(
    ("compacted", "words"),
    [
        (True, "in main (manual), 5086 → 900 tokens"),
        (False, "in main (manual), nothing left out of 5086 tokens"),
    ],
)
def test_the_status_gives_figures_of_a_cut_only_where_one_was_made(
    daemon: ScriptedDaemon, compacted: bool, words: str
) -> None:
    last = {"session": "main", "reason": "manual", "compacted": compacted}
    last |= {"at": "2020-01-01T23:30:00+00:00", "tokens_before": 5086}
    last["tokens_after"] = 900 if compacted else 5086
    daemon.on("_agentd/status", lambda params, wire: {"compaction": {"last": last}})
    assert words in runner.invoke(app, ["status"]).output


def test_the_status_says_what_is_still_to_be_erased_and_when_all_was(
    daemon: ScriptedDaemon,
) -> None:
    daemon.on("initialize", lambda params, wire: {"_meta": {"agentd/zone": "Asia/Tokyo"}})
    facts: dict[str, object] = {"erasing": ["transcripts", "log"], "erased": None}
    daemon.on("_agentd/status", lambda params, wire: {"facts": facts})
    said = runner.invoke(app, ["status"]).output
    assert "forgotten   still to be erased: transcripts, log" in said
    assert "facts   " not in said, "as where facts are off"
    facts |= {"erasing": [], "erased": "2020-01-01T23:30:00+00:00"}
    assert (
        "forgotten   erased everywhere, 2020-01-02 08:30" in runner.invoke(app, ["status"]).output
    )


def test_lists_for_people_are_aligned(daemon: ScriptedDaemon) -> None:
    alerts = [
        {"id": 1, "at": "t", "text": "milk\nis out", "delivered": {"main": "sent"}, "acked": False},
        {"id": 12, "at": "t", "text": "x" * 300, "delivered": {}, "acked": True},
    ]
    daemon.on("_agentd/alerts/list", lambda params, wire: {"alerts": alerts})
    header, first, second = runner.invoke(app, ["alerts", "list"]).output.splitlines()
    assert header.index("text") == first.index("milk is out") == second.index("xxx")
    assert second.endswith("…")
    daemon.on("_agentd/alerts/list", lambda params, wire: {"alerts": []})
    assert runner.invoke(app, ["alerts", "list"]).output == "no alerts\n"


def test_send_prints_the_reply(daemon: ScriptedDaemon) -> None:
    def answer(params: dict[str, object], wire: object) -> dict[str, object]:
        meta = {"agentd/text": "Hello.", "agentd/usage": {"total_tokens": 3}}
        return {"stopReason": "end_turn", "_meta": meta}

    daemon.on("session/prompt", answer)
    assert runner.invoke(app, ["send", "hi"]).output == "Hello.\n"
    result = runner.invoke(app, ["send", "hi", "--message-id", "m1", "--json"])
    assert json.loads(result.output) == {
        "session": "main",
        "message_id": "m1",
        "text": "Hello.",
        "stop_reason": "end_turn",
        "usage": {"total_tokens": 3},
        "tool_calls": [],
    }
    assert all("_meta" in params for params in daemon.params_of("initialize"))


def test_a_reply_too_long_for_the_result_is_put_together_from_its_chunks(
    daemon: ScriptedDaemon,
) -> None:
    def answer(params: dict[str, object], wire: object) -> dict[str, object]:
        wire.words("main", "let me look")
        update = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "x"}
        wire.notify("session/update", {"sessionId": "main", "update": update})
        wire.words("main", "cut off")
        wire.words("main", "[cut]", **{"agentd/retracted": True})
        wire.words("chat:other", "not ours")
        wire.words("main", "note", **{"agentd/notice": "compaction"})
        wire.words("main", "remembered: tea", **{"agentd/notice": "facts", "agentd/facts": []})
        wire.words("main", "It is ")
        wire.words("main", "noon.")
        return {"stopReason": "end_turn", "_meta": {}}

    daemon.on("session/prompt", answer)
    assert runner.invoke(app, ["send", "hi"]).output == "It is noon.\n"


def test_a_failed_turn_ends_send_with_1(daemon: ScriptedDaemon) -> None:
    def fail(params: dict[str, object], wire: object) -> None:
        raise Refusal(-32010, "the model is down", code="provider_overloaded", cure="wait")

    daemon.on("session/prompt", fail)
    result = runner.invoke(app, ["send", "hi"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the model is down" in result.stderr


def test_send_shows_images_that_the_daemon_takes(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    meta = {"agentd/maxImageBytes": 100, "agentd/maxFrameBytes": 4096}
    daemon.on("initialize", lambda params, wire: {"protocolVersion": 1, "_meta": meta})
    answer = {"stopReason": "end_turn", "_meta": {"agentd/text": "A cat."}}
    daemon.on("session/prompt", lambda params, wire: answer)
    file = tmp_path / "cat.png"
    file.write_bytes(PNG + b"cat")
    shown = ["send", "what is it?", "--image", str(file), "--image", str(file)]
    assert runner.invoke(app, shown).output == "A cat.\n"
    (params,) = daemon.params_of("session/prompt")
    image = {"type": "image", "data": b64encode(PNG + b"cat").decode(), "mimeType": "image/png"}
    assert params["prompt"] == [image, image, {"type": "text", "text": "what is it?"}]
    file.write_bytes(PNG + bytes(200))
    refused = runner.invoke(app, [*shown, "--json"])
    assert refused.exit_code == 2
    assert "cat.png cannot be opened to make it smaller" in refused.output
    daemon.on("initialize", lambda params, wire: {"protocolVersion": 1})
    assert "takes no images" in runner.invoke(app, [*shown, "--json"]).output
    assert len(daemon.params_of("session/prompt")) == 1


@pytest.mark.parametrize(
    "argv",
    [
        ["backup", "~nobody-of-that-name/x"],
        ["restore", "~nobody-of-that-name/x"],
        ["config", "show"],
    ],
)
def test_a_home_folder_that_nobody_has_is_told_and_no_traceback(
    argv: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if argv == ["config", "show"]:
        monkeypatch.setenv("AGENTD_HOME", "~nobody-of-that-name/x")
    result = runner.invoke(app, argv)
    assert (result.exit_code, result.exception.__class__) == (2, SystemExit)
    assert "'~nobody-of-that-name/x' has no home folder" in result.output


@pytest.mark.parametrize(
    ("over", "reason", "told"),
    [
        (0, "blocked", "never over 100 ms; worst 4.0 ms (a call waited), noon\n"),
        (1, "machine", "1 time over 100 ms; worst 4.0 ms (the machine was busy), noon\n"),
    ],
)
def test_status_says_in_words_what_delayed_the_loop(
    daemon: ScriptedDaemon, over: int, reason: str, told: str
) -> None:
    worst = {"ms": 4.0, "reason": reason, "at": "noon", "stack": ["asyncio/runners.py:118 in run"]}
    loop = {"limit_ms": 100.0, "over_limit": over, "p99_ms": 3.3, "worst": worst}
    daemon.on("_agentd/status", lambda params, wire: {"loop": loop})
    assert told in runner.invoke(app, ["status"]).output


def test_status_says_in_words_what_a_search_has_to_do_without(daemon: ScriptedDaemon) -> None:
    index = {"files": 1, "chunks": 2, "pending": 2, "state": "embedding", "embedder": "minilm"}
    lacks = {**index, "reason": "vectors_missing"}
    daemon.on("_agentd/status", lambda params, wire: {"index": lacks})
    told = "embedding, embedder minilm; not all can be found by its meaning yet\n"
    assert told in runner.invoke(app, ["status"]).output


def test_status_says_why_alerts_wait_beside_their_sink(daemon: ScriptedDaemon) -> None:
    socket = {"sink": "socket", "waiting": 1, "next_try": "at 10:00", "error": "Nobody is there."}
    daemon.on("_agentd/status", lambda params, wire: {"alerts": [socket, {"sink": "main"}]})
    told = "socket: 1 waiting, next at 10:00 (Nobody is there); main\n"
    assert told in runner.invoke(app, ["status"]).output


def test_the_end_of_a_conversation_says_what_stands_before_it(daemon: ScriptedDaemon) -> None:
    daemon.on("_agentd/sessions/show", lambda params, wire: {"key": "main", "rows": 9})
    said = {"role": "user", "at": "10:00", "content": [{"type": "text", "text": "hello"}]}
    daemon.on("_agentd/sessions/export", lambda params, wire: {"lines": [said]})
    shown = runner.invoke(app, ["sessions", "show", "main", "--last", "2"]).output
    assert "\n… 7 earlier rows left out; `--last 9` shows all\n\nyou, 10:00\n" in shown
    assert "left out" not in runner.invoke(app, ["sessions", "show", "main"]).output


@pytest.mark.parametrize(
    ("word", "meant"), [("search", "memory search"), ("pause", "heartbeat pause")]
)
def test_a_command_without_its_group_is_named_with_it(word: str, meant: str) -> None:
    refused = runner.invoke(app, [word, "dog"])
    said = " ".join(refused.stderr.split())
    assert (refused.exit_code, f" {meant}`?" in said) == (2, True)
