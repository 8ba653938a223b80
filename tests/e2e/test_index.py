"""The search index on a real daemon: gone, damaged, somebody else's, and answers all the same."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.shell import Shell, a_shell

QUESTIONS = ("when is the dentist", "boiler code 4417", "who likes green tea", "the blue boat")
NOTES = {
    "memory/2026-03-01.md": (
        "# Monday\n\n- The dentist is on Friday at nine.\n- Anna likes green tea.\n"
    ),
    "memory/2026-03-02.md": "- The boiler code is 4417.\n\nThe boat is blue and needs varnish.\n",
    "MEMORY.md": "# Memory\n\n- Anna is my sister.\n- The boat lies in Kiel.\n",
}


@pytest.fixture
def shell() -> Iterator[Shell]:
    with a_shell() as shell:
        for path, text in NOTES.items():
            file = shell.root / "workspace" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        lines = [
            {"role": "user", "content": "Remind me: the boat trip is on Sunday.", "at": AT},
            {
                "role": "assistant",
                "content": "Sunday, noted. The dentist stays on Friday.",
                "at": AT,
            },
        ]
        talk = shell.root / "boat.jsonl"
        talk.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        shell.wake()
        shell.ok("sessions", "import", str(talk))
        shell.ok("memory", "index")
        yield shell


AT = "2026-03-03T10:00:00+00:00"


def answers(shell: Shell) -> list[object]:
    """What every question finds, exactly."""
    return [shell.json("memory", "search", question) for question in QUESTIONS]


def index_file(shell: Shell) -> Path:
    return shell.root / "state" / "index.db"


def test_an_index_that_was_deleted_is_built_again_and_answers_the_same(shell: Shell) -> None:
    before = answers(shell)
    assert all(found["results"] for found in before)
    shell.ok("stop")
    for file in index_file(shell).parent.glob("index.db*"):
        file.unlink()
    shell.wake()
    shell.ok("memory", "index")
    assert answers(shell) == before
    shell.ok("memory", "index")
    assert answers(shell) == before


@pytest.mark.parametrize("damage", ["cut in half", "not a database", "somebody else's"])
def test_a_bad_index_is_put_aside_and_the_chat_goes_on(shell: Shell, damage: str) -> None:
    before = answers(shell)
    shell.ok("stop")
    file = index_file(shell)
    if damage == "cut in half":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif damage == "not a database":
        file.write_bytes(b"dear diary\n" * 1000)
    else:
        file.unlink()
        with sqlite3.connect(file) as theirs:
            theirs.execute("CREATE TABLE recipes (name TEXT)")
        theirs.close()
    shell.wake()
    assert shell.ok("send", "Hello there")
    shell.ok("memory", "index")
    shell.ok("sessions", "delete", "main", "--yes")
    shell.ok("memory", "index")
    assert answers(shell) == before
    assert [problem["code"] for problem in shell.json("status")["problems"]] == ["index_rebuilt"]
