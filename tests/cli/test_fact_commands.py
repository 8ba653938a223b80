"""`agentd facts …`: what is asked, how it reads, how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentd.app.cli.app import app
from tests.cli.test_terminal import Screen
from tests.scripted_daemon import Refusal, ScriptedDaemon

runner = CliRunner()
AT = "2026-05-04T09:40:00+00:00"
NOTHING: dict[str, Any] = {
    "places": {},
    "also": [],
    "pending": [],
    "backups": [],
    "more": 0,
    "besides": [],
}
ERASED: dict[str, Any] = {
    "places": {"transcripts": 2, "notes": 0},
    "also": [
        {
            "n": 1,
            "where": "memory/2026-05-04.md:3",
            "text": "The Kassel client calls.",
            "others": ["sessions/main.jsonl:2", "sessions/main.jsonl:8"],
        }
    ],
    "pending": ["log"],
    "backups": ["/backups/a.tar.gz"],
    "more": 0,
    "besides": ["sessions/main.jsonl:4"],
}


def a_fact(fact_id: str, text: str | None, status: str = "active", **fields: Any) -> dict[str, Any]:
    return {
        "id": fact_id,
        "text": text,
        "status": status,
        "category": "personal",
        "source": "explicit",
        "valid_from": AT,
        "valid_to": None,
        "superseded_by": None,
        **fields,
    }


KASSEL = a_fact("aaaaaaaa", "The user lives in Kassel.", "superseded", superseded_by="bbbbbbbb")
FULDA = a_fact("bbbbbbbb", "The user lives in Fulda.")
TEA = a_fact("cccccccc", "The user likes tea.")
MOVE: dict[str, Any] = {
    "id": 12,
    "at": AT,
    "session": "chat:a",
    "op": "replace",
    "new": "bbbbbbbb",
    "old": ["aaaaaaaa"],
    "undone": False,
}


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    with ScriptedDaemon(tmp_path / "home" / "agentd.sock") as daemon:
        daemon.on("_agentd/facts/list", listing(KASSEL, FULDA, TEA))
        yield daemon


def listing(*facts: dict[str, Any]) -> Any:
    def found(params: dict[str, Any], _wire: object) -> dict[str, Any]:
        chosen = [fact for fact in facts if "ids" not in params or fact["id"] in params["ids"]]
        return {"facts": chosen, "total": len(chosen)}

    return found


def facts(daemon: ScriptedDaemon, *argv: str, answer: Any = None) -> Any:
    """What the command does where its method answers so."""
    if answer is not None:
        daemon.on(f"_agentd/facts/{argv[0]}", lambda params, wire: answer)
    return runner.invoke(app, ["facts", *argv])


def asked(daemon: ScriptedDaemon, method: str) -> list[dict[str, Any]]:
    return daemon.params_of(f"_agentd/facts/{method}")


def test_a_list_shows_the_status_of_each_fact(daemon: ScriptedDaemon) -> None:
    ended = a_fact("dddddddd", "The user rents a garage.", "ended", valid_to=AT)
    daemon.on("_agentd/facts/list", listing(FULDA, KASSEL, ended, a_fact("e" * 8, None)))
    lines = facts(daemon, "list", "--all").output.splitlines()
    assert lines[0] == "bbbbbbbb  active      The user lives in Fulda.  (personal, explicit)"
    assert lines[1].startswith("aaaaaaaa  superseded  The user lives in Kassel.")
    assert lines[2].startswith("dddddddd  ended ")
    assert "until 2026-05-04" in lines[2]
    assert "(forgotten)" in lines[3]
    assert asked(daemon, "list") == [{"all": True, "limit": 200}]


def test_what_is_added_is_told_with_what_it_replaced(daemon: ScriptedDaemon) -> None:
    why = [{"reason": "secret", "text": "it looks like a secret"}]
    added = {
        "fact": FULDA,
        "new": True,
        "superseded": [KASSEL, a_fact("d" * 8, "The user rents.", "ended")],
        "before": [TEA],
        "refused": why,
    }
    done = facts(daemon, "add", "I like tea and live in Fulda", answer=added)
    assert done.output.splitlines() == [
        "remembered: The user likes tea.",
        "remembered: The user lives in Fulda.",
        "  replaces: The user lives in Kassel.",
        "  no longer so: The user rents.",
        "not remembered: it looks like a secret",
    ]
    assert json.loads(facts(daemon, "add", "x", "--json").output) == added
    known = {**added, "new": False, "superseded": [], "before": [], "refused": []}
    assert facts(daemon, "add", "x", answer=known).output == (
        "known already: The user lives in Fulda.\n"
    )


def test_what_is_forgotten_is_not_said_again_and_what_is_left_is_named(
    daemon: ScriptedDaemon,
) -> None:
    done = facts(
        daemon, "forget", "aaaaaaaa", answer={"forgotten": ["aaaaaaaa"], "candidates": [], **ERASED}
    )
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "forgotten, with 2 in transcripts",
        "all that you said beside it goes, too: sessions/main.jsonl:4",
        "what mentions the same stays:",
        "  1  memory/2026-05-04.md:3 and 2 places more  The Kassel client calls.",
        "a copy may still hold it: /backups/a.tar.gz",
        "still to be erased: log",
        "it goes on by itself; `agentd status` says when it is done",
    ]
    assert asked(daemon, "forget") == [{"query": "aaaaaaaa", "all": False, "dry_run": False}]


def test_a_dry_run_shows_the_sentence_and_how_to_name_what_stays(daemon: ScriptedDaemon) -> None:
    seen = {"forgotten": ["bbbbbbbb"], "candidates": [], **ERASED}
    done = facts(daemon, "forget", "Fulda", "--dry-run", answer=seen)
    assert done.exit_code == 0
    assert done.output.splitlines()[:2] == [
        "bbbbbbbb  The user lives in Fulda.",
        "would be forgotten, with 2 in transcripts",
    ]
    assert "--also N" in done.output
    assert asked(daemon, "forget") == [{"query": "Fulda", "all": False, "dry_run": True}]
    assert json.loads(facts(daemon, "forget", "Fulda", "--dry-run", "--json").output) == seen


@pytest.mark.parametrize(
    "argv", [("--also", "1", "3"), ("--also", "1", "--also", "3"), ("3", "--also", "1")]
)
def test_lines_are_named_by_their_numbers(daemon: ScriptedDaemon, argv: tuple[str, ...]) -> None:
    done = {"forgotten": ["bbbbbbbb"], "candidates": [], **NOTHING}
    assert facts(daemon, "forget", "Fulda", *argv, answer=done).exit_code == 0
    assert asked(daemon, "forget")[0]["also"] == [1, 3]


def test_a_text_is_shown_before_a_yes_is_asked_for(daemon: ScriptedDaemon) -> None:
    sentence = {"n": 1, "where": "a.md:3", "text": "The boiler hums.", "others": ["a.md:9"]}
    seen = {**NOTHING, "places": {"notes": 1}, "goes": [sentence], "dry_run": True}
    daemon.on("_agentd/memory/forget", lambda params, wire: seen)
    refused = runner.invoke(app, ["memory", "forget", "boiler"])
    assert (refused.exit_code, "add --yes" in refused.output) == (2, True)
    assert refused.output.startswith(
        "The boiler hums.\n    a.md:3 and one place more\nwould be forgotten, with 1 in notes\n"
    )
    asked_for = {"text": "boiler", "dry_run": True}
    assert daemon.params_of("_agentd/memory/forget") == [asked_for]


def test_where_several_facts_may_be_meant_they_are_listed_with_their_ids(
    daemon: ScriptedDaemon,
) -> None:
    several = {"forgotten": [], "candidates": [FULDA, TEA], **NOTHING}
    done = facts(daemon, "forget", "user", answer=several)
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        "several facts may be meant; give one's id:",
        "bbbbbbbb  The user lives in Fulda.",
        "cccccccc  The user likes tea.",
    ]
    told = facts(daemon, "forget", "user", "--json")
    assert (told.exit_code, json.loads(told.output)) == (1, several)
    none = facts(daemon, "forget", "Ulm", answer={**several, "candidates": []})
    assert (none.exit_code, "agentd memory forget" in none.output) == (1, True)


@pytest.mark.parametrize(
    "argv", [("tea", "--all"), ("my", "dog"), ("x", "3"), ("x", "--also", "0")]
)
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(
    daemon: ScriptedDaemon, argv: tuple[str, ...]
) -> None:
    assert facts(daemon, "forget", *argv).exit_code == 2
    assert asked(daemon, "forget") == []


def test_changes_are_shown_with_the_sentences_that_are_still_there(daemon: ScriptedDaemon) -> None:
    changes = [
        {**MOVE, "id": 15, "op": "forget", "new": None, "old": ["ffffffff"], "session": None},
        {**MOVE, "id": 14, "op": "end", "new": None, "old": ["cccccccc"], "undone": True},
        {**MOVE, "id": 13, "op": "accept", "new": "cccccccc", "old": ["cccccccc"]},
        MOVE,
    ]
    told = facts(daemon, "changes", "--limit", "4", answer={"changes": changes})
    lines = [" ".join(line.split()) for line in told.output.splitlines()]
    assert lines == [
        "id at op session fact",
        "15 2026-05-04 09:40 forget - ffffffff",
        "14 2026-05-04 09:40 end (taken back) chat:a The user likes tea.",
        "13 2026-05-04 09:40 accept chat:a The user likes tea.",
        f"12 2026-05-04 09:40 replace chat:a {FULDA['text']} (was: {KASSEL['text']})",
    ]
    assert asked(daemon, "changes") == [{"limit": 4}]
    assert json.loads(facts(daemon, "changes", "--json").output) == {"changes": changes}
    assert "nothing has changed" in facts(daemon, "changes", answer={"changes": []}).output


def test_what_is_taken_back_is_told(daemon: ScriptedDaemon) -> None:
    again = {**KASSEL, "status": "active", "superseded_by": None}
    waits = {**TEA, "status": "proposed"}
    done = {"change": {**MOVE, "undone": True}, "removed": [FULDA], "restored": [again, waits]}
    assert facts(daemon, "undo", answer=done).output.splitlines() == [
        "taken back: The user lives in Fulda.",
        "holds again: The user lives in Kassel.",
        "waits for your yes again: The user likes tea.",
    ]
    assert json.loads(facts(daemon, "undo", "12", "--json").output) == done
    assert asked(daemon, "undo") == [{}, {"id": 12}]


def test_where_nothing_is_left_to_take_back_the_words_say_so(daemon: ScriptedDaemon) -> None:
    def refuse(params: dict[str, Any], wire: object) -> None:
        raise Refusal(-32002, "nothing is left to take back", code="not_found", cure="look")

    daemon.on("_agentd/facts/undo", refuse)
    done = facts(daemon, "undo")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "nothing is left to take back" in done.stderr
    told = facts(daemon, "undo", "--json")
    assert (told.exit_code, json.loads(told.output)["error"]["code"]) == (1, "not_found")


def test_merged_facts_are_told_with_the_one_that_stands_for_them(daemon: ScriptedDaemon) -> None:
    done = {"change": {**MOVE, "op": "merge"}, "fact": FULDA, "superseded": [KASSEL, TEA]}
    told = facts(daemon, "merge", "bbbbbbbb", "aaaaaaaa", "cccccccc", answer=done)
    assert told.output.splitlines() == [
        "kept: The user lives in Fulda.",
        "  stands for: The user lives in Kassel.",
        "  stands for: The user likes tea.",
    ]
    assert asked(daemon, "merge") == [{"keep": "bbbbbbbb", "others": ["aaaaaaaa", "cccccccc"]}]
    assert facts(daemon, "merge", "bbbbbbbb").exit_code == 2


def test_what_waits_for_a_yes_is_listed_and_decided(daemon: ScriptedDaemon) -> None:
    waiting = [{**FULDA, "status": "proposed", "replaces": [TEA]}]
    told = facts(daemon, "pending", answer={"facts": waiting}).output.splitlines()
    assert told == [
        "bbbbbbbb  The user lives in Fulda.  (personal, explicit)",
        "  would replace: The user likes tea.",
    ]
    assert facts(daemon, "pending", answer={"facts": []}).output == "nothing waits for your yes\n"
    yes = {"facts": [FULDA], "superseded": [KASSEL], "refused": []}
    assert facts(daemon, "accept", "bbbbbbbb", "cccccccc", answer=yes).output.splitlines() == [
        "remembered: The user lives in Fulda.",
        "  replaces: The user lives in Kassel.",
    ]
    assert facts(daemon, "reject", "cccccccc", answer={"facts": [TEA]}).output == (
        "dropped: The user likes tea.\n"
    )
    assert asked(daemon, "accept") == [{"ids": ["bbbbbbbb", "cccccccc"]}]
    assert asked(daemon, "reject") == [{"ids": ["cccccccc"]}]


def test_terminal_codes_in_facts_do_nothing(daemon: ScriptedDaemon) -> None:
    evil = a_fact("bbbbbbbb", "Rex\x1b[2J")
    daemon.on("_agentd/facts/list", listing(evil))
    assert "\x1b" not in facts(daemon, "list").output
    assert "\x1b" not in facts(daemon, "changes", answer={"changes": [MOVE]}).output
    also = [{"n": 1, "where": "a.md:1", "text": "\x1b[2J", "others": []}]
    done = {"forgotten": ["bbbbbbbb"], "candidates": [], **NOTHING, "also": also}
    assert "\x1b" not in facts(daemon, "forget", "x", answer=done).output


def test_on_a_terminal_the_owner_sees_what_goes_and_says_yes(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    def forget(params: dict[str, Any], wire: object) -> dict[str, Any]:
        if params["query"] == "Fulda":
            return {"forgotten": [], "candidates": [TEA, FULDA], **NOTHING}
        return {"forgotten": ["bbbbbbbb"], "candidates": [], **ERASED}

    daemon.on("_agentd/facts/forget", forget)
    for answer in ("n", "y"):
        with Screen("facts", "forget", "Fulda", home=tmp_path / "home") as screen:
            assert "1  The user likes tea." in screen.wait_for("Which one?")
            screen.type("2\r")
            seen = screen.wait_for("for good?")
            assert "The user lives in Fulda." in seen
            assert "The Kassel client calls." in seen
            screen.type(f"{answer}\r")
            if answer == "y":
                screen.wait_for("forgotten, with 2 in transcripts")
            assert screen.process.ended(20) == (0 if answer == "y" else 1)
    done = [params["query"] for params in asked(daemon, "forget") if not params["dry_run"]]
    assert done == ["bbbbbbbb"]


@pytest.mark.parametrize("words", [["list"], ["add", "I like tea"]], ids=" ".join)
def test_a_category_that_no_fact_has_is_refused_with_those_that_some_have(words: list[str]) -> None:
    refused = runner.invoke(app, ["facts", *words, "--category", "foo"])
    assert refused.exit_code == 2
    assert "none of personal, preference, project, decision" in " ".join(refused.stderr.split())
