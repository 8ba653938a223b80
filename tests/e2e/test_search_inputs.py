"""Whatever is asked of the search or of reading: an answer or a refusal with its reason, never a
fault.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentd.core.search import EmptyReason, SearchShortfall
from tests.e2e.contract import Json, Wire, World
from tests.e2e.shell import Shell, a_shell

NOTE = "memory/2026-03-01.md"
NOTES = {
    NOTE: (
        "- The boiler code is 4417, Übung macht den Meister.\n- 明日のランチを予約する\n- "
        "مفتاح القبو خلف الساعة\n"
    ),
    "projects/boat.md": "# Boat\n\nThe boat lies in Kiel; its licence is DE-KI-4711-B. 🚤\n",
}
FINE = frozenset({"", *SearchShortfall})  # what an answer with hits may say


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with a_shell() as shell:
        for path, text in NOTES.items():
            file = shell.workspace / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        shell.wake()
        shell.ok("memory", "index")
        yield shell


@pytest.fixture
def wire(shell: Shell) -> Iterator[Wire]:
    with Wire(shell.socket) as wire:
        yield wire


@pytest.mark.parametrize(
    "query",
    [
        *('"boiler code"', '"boiler', "'boiler'", "boiler AND code", "NOT boiler", "boiler OR"),
        *("NEAR(boiler code)", "text:boiler", "boiler*", "^boiler", "-boiler", "{boiler}"),
        *(
            "boiler'; DROP TABLE chunks; --",
            "boiler\\",
            "boiler%",
            "(((boiler",
            "boi\u200bler boiler",
        ),
        *(
            "BOILER",
            "boiler\x00code",
            "boiler\n\tcode\r",
            "🔥 boiler 🔥",
            "\u202eboiler\u202c boiler",
        ),
        *("ubung", "ÜBUNG", "U\u0308bung", "ランチ", "予約", "مفتاح", "4417", "boiler " * 14_000),
        "boiler " + "x" * 100_000,
    ],
    ids=lambda query: ascii(query[:30]),
)
def test_the_note_is_found_whatever_stands_around_its_words(wire: Wire, query: str) -> None:
    found = wire.call("_agentd/memory/search", {"query": query})
    assert NOTE in [hit["path"] for hit in found["results"]]
    assert found["reason"] in FINE


@pytest.mark.parametrize(
    "query",
    [
        *("what is it to the", "🚤", "\u202e\u202c", "\ufeff", "SELECT * FROM chunks", "{}", "0"),
        *(
            "\U0010ffff",
            "a" * 100_000,
            "\u0301" * 50_000,
            "?" * 100_000,
            "北" * 30_000,
            "\x7f\x1b[31m",
        ),
    ],
    ids=lambda query: ascii(query[:30]),
)
def test_any_text_gets_hits_or_the_reason_why_there_are_none(wire: Wire, query: str) -> None:
    found = wire.call("_agentd/memory/search", {"query": query, "min_score": 0.999})
    assert bool(found["results"]) or found["reason"] in {*EmptyReason, *SearchShortfall}


@pytest.mark.parametrize("query", ["", "   \n", "?!…", '"""', "*()", "→" * 9, "--", "\u200b"])
def test_a_query_without_a_letter_says_so(wire: Wire, query: str) -> None:
    found = wire.call("_agentd/memory/search", {"query": query})
    assert (found["results"], found["reason"]) == ([], "empty_query")


@pytest.mark.parametrize("query", ["🚤" * 9, " " * 100_000 + "licence"])
def test_emoji_and_words_behind_blanks_are_looked_for(wire: Wire, query: str) -> None:
    found = wire.call("_agentd/memory/search", {"query": query})
    assert found["results"][0]["path"] == "projects/boat.md"


@pytest.mark.parametrize("query", [rb"boiler \ud800", rb"\udc00boiler", rb"\ud83d\ud83d boiler"])
def test_half_a_character_is_refused_and_the_next_search_answers(wire: Wire, query: bytes) -> None:
    wire.write(
        b'{"jsonrpc": "2.0", "id": 77, "method": "_agentd/memory/search", "params": {"query": "%s"}}'
        % query
    )
    assert wire.heard(lambda frame: "method" not in frame)["error"]["code"] in {-32700, -32602}
    assert wire.call("_agentd/memory/search", {"query": "boiler"})["results"]


def test_reasons_are_those_of_what_was_asked(wire: Wire) -> None:
    def reason(**params: Any) -> str:
        found = wire.call("_agentd/memory/search", {"query": "boiler code", **params})
        assert found["results"] == []
        told: str = found["reason"]
        return told

    assert reason(min_score=1) == "below_threshold"
    assert reason(max_tokens=1) == "budget"


def test_a_command_says_why_it_found_nothing_and_what_to_do(shell: Shell) -> None:
    done = shell.ok("memory", "search", "?!")
    assert done.out == "the query has no word to look for\n→ name a person, a thing or a date\n"
    long = shell.ok("memory", "search", "-", "--json", given="boiler " * 14_000)
    assert NOTE in [hit["path"] for hit in long.json["results"]]
    odd = shell.ok("memory", "search", "boiler \udcff code", "--json")
    assert NOTE in [hit["path"] for hit in odd.json["results"]]
    far = shell.ok("memory", "search", "boiler", "--min-score", "1")
    assert "--min-score" in far.out


def test_a_query_is_asked_in_other_words_and_languages_too(shell: Shell, wire: Wire) -> None:
    alone = shell.ok("memory", "search", "Wasserfahrzeug", "--json").json
    assert "projects/boat.md" not in [hit["path"] for hit in alone["results"]]
    options = ("--also", "ランチ", "--also", "boat licence", "--json")
    found = shell.ok("memory", "search", "Wasserfahrzeug", *options).json
    assert {"projects/boat.md", NOTE} <= {hit["path"] for hit in found["results"]}
    assert 0 <= found["confidence"] <= 1
    asked = {"query": "Wasserfahrzeug", "queries": ["ランチ", "boat licence"]}
    assert wire.call("_agentd/memory/search", asked) == found
    refused = shell("memory", "search", "a", *["--also", "b"] * 6)
    assert (refused.code, "up to 5 times" in refused.err) == (2, True)


@pytest.fixture(scope="module")
def traps(shell: Shell) -> Iterator[dict[str, str]]:
    """Paths that are no files of the workspace, each with a word of its refusal."""
    (shell.root / "secret.md").write_text("the vault opens with 0000\n")
    os.mkfifo(shell.workspace / "pipe.md")
    (shell.workspace / "out.md").symlink_to(shell.root / "secret.md")
    (shell.workspace / "null.md").symlink_to("/dev/null")
    (shell.workspace / "up").symlink_to(shell.root)
    (shell.workspace / "folder.md").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(shell.workspace / "sock.md"))
        yield {
            path: path
            for path in (
                *("../secret.md", str(shell.root / "secret.md"), "memory/../../secret.md"),
                *("/dev/zero", "/proc/self/environ", "pipe.md", "out.md", "null.md"),
                *("up/secret.md", "folder.md", "sock.md", "sessions/../../state/state.db"),
            )
        }


def test_only_files_of_the_workspace_are_read_and_refusals_name_them(
    wire: Wire, traps: dict[str, str]
) -> None:
    for path in traps:
        error = wire.error("_agentd/memory/read", {"path": path})
        assert error["data"]["code"] in {"path_refused", "file_unreadable", "file_missing"}, path
        assert Path(path).name in error["message"]
        assert error["data"]["cure"] or error["data"]["code"] == "file_missing"
    assert (
        wire.error("_agentd/memory/read", {"path": "a\x00b.md"})["data"]["code"] == "path_refused"
    )
    wire.call("_agentd/memory/index")
    found = wire.call("_agentd/memory/search", {"query": "vault opens 0000"})
    assert "vault" not in str(found["results"])


def outputs(world: World, session: str) -> list[Json]:
    """What the tools of a session's only turn have answered."""
    rows = world.wire.call("_agentd/sessions/export", {"key": session})["lines"]
    return [block for row in rows for block in row["content"] if block["type"] == "tool_result"]


def told(block: Json) -> str:
    content = block["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def test_the_model_is_told_its_hits_with_place_date_and_source(world: World) -> None:
    asked = {"query": "cellar key", "limit": 1, "recencyBoost": False, "sources": ["notes"]}
    world.shell.ok("send", f"do search {json.dumps(asked)}; say done", "--session", "chat:hits")
    (block,) = outputs(world, "chat:hits")
    head, bar, *_ = told(block).split("\n")
    assert head.startswith("memory/")
    assert head.endswith(", notes)")
    assert set(bar) > {"`"}


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({"query": "key", "limit": 99}, "limit must be smaller than or equal to 20"),
        ({"query": "key", "halfLifeDays": 0}, "halfLifeDays must be"),
        ({"query": "key", "sources": ["dreams"]}, "sources"),
        ({"limit": 5}, "must contain ['query']"),
        ({"query": "?"}, "[empty_query]"),
        ({"query": "key", "max_tokens": 1, "sources": ["notes"]}, "[budget]"),
    ],
)
def test_the_model_is_told_what_is_wrong_with_its_search(
    world: World, asked: Json, word: str
) -> None:
    session = f"chat:wrong{next(world.numbers)}"
    world.shell.ok("send", f"do search {json.dumps(asked)}; say done", "--session", session)
    (block,) = outputs(world, session)
    assert word in told(block)


def test_a_group_that_asks_for_transcripts_finds_none_but_its_own(world: World) -> None:
    asked = json.dumps({"query": "cellar key", "sources": ["sessions"]})
    world.shell.ok("send", f"do search {asked}; say done", "--session", "group:scope")
    (block,) = outputs(world, "group:scope")
    assert "[no_match]" in told(block)


def test_the_model_reads_nothing_outside_the_workspace(world: World) -> None:
    os.mkfifo(world.shell.workspace / "tube.md")
    (world.shell.workspace / "away.md").symlink_to(world.shell.root / "config.toml")
    for path in ("../config.toml", "/dev/zero", "tube.md", "away.md"):
        session = f"chat:trap{next(world.numbers)}"
        world.shell.ok("send", f"do read {path}; say done", "--session", session)
        (block,) = outputs(world, session)
        assert block["is_error"]
        assert Path(path).name in told(block)
        assert "base_url" not in told(block)
