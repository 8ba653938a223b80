"""The page of facts, in the hands of its owner, while a real daemon runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests import finding
from tests.e2e.contract import Wire
from tests.e2e.shell import Shell, a_shell
from tests.waiting import soon


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with a_shell() as shell:
        shell.wake()
        yield shell


@pytest.fixture
def wire(shell: Shell) -> Iterator[Wire]:
    with Wire(shell.socket) as wire:
        yield wire


def page(shell: Shell) -> Path:
    return shell.workspace / "memory" / "facts.md"


def add(wire: Wire, *texts: str) -> list[str]:
    """The ids of facts that were added."""
    return [wire.call("_agentd/facts/add", {"text": text})["fact"]["id"] for text in texts]


def known(wire: Wire) -> dict[str, str]:
    """The facts that hold, by id."""
    found = wire.call("_agentd/facts/list", {"limit": 2000})["facts"]
    return {fact["id"]: fact["text"] for fact in found}


def words(wire: Wire) -> set[str]:
    """The words of all facts that hold, in small letters."""
    return set(re.findall(r"\w+", " ".join(known(wire).values()).lower()))


def append(file: Path, line: str) -> None:
    """Add a line, again if the file was exchanged under the editor's hands."""
    is_there = False
    while not is_there:
        with file.open("a", encoding="utf-8") as open_:
            open_.write(line)
            open_.flush()
            is_there = file.stat().st_ino == os.fstat(open_.fileno()).st_ino


def holding(root: Path, word: str) -> set[str]:
    """The files that hold the word, in any case."""
    return finding.holding(root, word.encode(), least=10)


def change(shell: Shell, made: Callable[[str], str]) -> None:
    """Change the page as an editor does."""
    text = page(shell).read_text("utf-8")
    changed = made(text)
    assert changed != text
    page(shell).write_text(changed, "utf-8")


def without(*fact_ids: str) -> Callable[[str], str]:
    """The page without the lines of these facts."""
    ids = "|".join(fact_ids)
    return lambda text: re.sub(rf"^- .*<!-- fact id=(?:{ids}) .*\n", "", text, flags=re.MULTILINE)


def test_an_edited_line_is_a_new_version(shell: Shell, wire: Wire) -> None:
    (fact_id,) = add(wire, "My favourite tea is Wolkentee.")
    change(shell, lambda text: text.replace("Wolkentee", "Nebeltee"))
    assert soon(lambda: any("Nebeltee" in text for text in known(wire).values()))
    assert fact_id not in known(wire)
    versions = wire.call("_agentd/facts/history", {"fact": fact_id})["facts"]
    assert [("Wolkentee" in v["text"], v["status"]) for v in versions] == [
        (True, "superseded"),
        (False, "active"),
    ]


def test_a_deleted_line_is_forgotten_and_its_words_are_erased(shell: Shell, wire: Wire) -> None:
    note = "My cat is called Zwirbelina.\nThe neighbours have a cat, too."
    wire.call("_agentd/memory/write", {"content": note, "target": "notes/cats.md"})
    others = add(wire, *(f"I like sort {n} of Gouda." for n in range(6)))
    (fact_id,) = add(wire, "My cat is called Zwirbelina.")
    assert len(holding(shell.root, "zwirbelina")) >= 3
    change(shell, without(fact_id))
    assert soon(lambda: not holding(shell.root, "zwirbelina"))
    assert fact_id not in known(wire)
    assert set(others) <= known(wire).keys()
    assert "The neighbours have a cat, too." in (shell.workspace / "notes/cats.md").read_text(
        "utf-8"
    )


def test_many_deleted_lines_are_asked_about(shell: Shell, wire: Wire) -> None:
    ids = add(wire, *(f"I like the village Quellbach{n}." for n in range(8)))
    change(shell, without(*ids))
    parked = soon(lambda: shell.json("facts", "parked")["facts"])
    assert {fact["id"] for fact in parked} == set(ids)
    assert any(p["code"].startswith("facts") for p in shell.json("status")["problems"])
    assert shell.json("facts", "parked", "--restore")["done"] == "restored"
    assert set(ids) <= known(wire).keys()
    assert "Quellbach7" in page(shell).read_text("utf-8")

    change(shell, without(*ids))
    assert soon(lambda: shell.json("facts", "parked")["facts"])
    assert shell.json("facts", "parked", "--accept")["done"] == "forgotten"
    assert not set(ids) & known(wire).keys()
    assert soon(lambda: not holding(shell.root, "quellbach"))


def test_a_page_damaged_in_the_middle_loses_nothing(shell: Shell, wire: Wire) -> None:
    first, broken, last = add(
        wire, "I use Alphaset for maps.", "I use Betaset for notes.", "I use Gammaset for mail."
    )
    change(
        shell,
        lambda text: text.replace(f"id={broken}", f'id={broken} since="never', 1),
    )
    bad = next(line for line in page(shell).read_text("utf-8").splitlines() if broken in line)
    told = soon(
        lambda: (
            [c for c in shell("doctor", "--json").json["checks"] if "facts.md" in c["text"]]
            and shell("doctor").out
        )
    )
    assert "facts.md" in told
    number = page(shell).read_text("utf-8").splitlines().index(bad) + 1
    assert str(number) in told
    assert {first, last} <= known(wire).keys()
    add(wire, "I use Deltaset for chess.")
    text = page(shell).read_text("utf-8")
    assert bad in text
    assert all(name in text for name in ("Alphaset", "Betaset", "Gammaset", "Deltaset"))
    change(shell, lambda text: text.replace(' since="never', "", 1))
    assert soon(lambda: broken in known(wire))


def test_two_processes_that_edit_lose_none_of_each_others_lines(shell: Shell, wire: Wire) -> None:
    argv = [sys.executable, "-m", "agentd", "facts", "add"]
    texts = [f"I keep the Tresorschluessel{n} in the drawer." for n in range(6)]
    running = [
        subprocess.Popen(
            [*argv, text], env=shell.environ(), stdout=subprocess.DEVNULL, cwd=shell.root
        )
        for text in texts
    ]
    by_hand = 0
    while left := [process for process in running if process.poll() is None]:
        append(page(shell), f"- I keep the Handschluessel{by_hand} at home.\n")
        by_hand += 1
        with suppress(subprocess.TimeoutExpired):
            left[0].wait(0.5)
    assert [process.returncode for process in running] == [0] * len(running)
    wanted = {f"tresorschluessel{n}" for n in range(6)}
    wanted |= {f"handschluessel{n}" for n in range(by_hand)}
    assert soon(lambda: wanted <= words(wire)), wanted - words(wire)


def test_a_megabyte_is_refused_in_words(shell: Shell, wire: Wire) -> None:
    before = page(shell).read_bytes()
    error = wire.error("_agentd/facts/add", {"text": "I like tea " * 90_000})
    assert "too long" in error["message"]
    assert page(shell).read_bytes() == before


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "I like \u202eesrever\u202c tea\x00 and\x1b[31m red\u2066.",
            "I like esrever tea and[31m red.",
        ),
        ("I like <!-- fact id=aaaaaaaa --> tags.", "I like <!-- fact id=aaaaaaaa --> tags."),
        ("I like --> and <!-- very much.", "I like --> and <!-- very much."),
        (
            "I like `code` and **bold** and # marks\nand lines.",
            "I like `code` and **bold** and # marks and lines.",
        ),
    ],
)
def test_odd_characters_stay_in_one_line(shell: Shell, wire: Wire, said: str, kept: str) -> None:
    count = len(page(shell).read_text("utf-8").splitlines())
    made = wire.call("_agentd/facts/add", {"text": said, "category": "preference"})["fact"]
    assert len(page(shell).read_text("utf-8").splitlines()) <= count + 1
    told = made["text"].replace("The user likes", "I like").rstrip(".")
    assert told == kept.rstrip(".")
    page(shell).write_text(page(shell).read_text("utf-8") + "\n")
    assert known(wire)[made["id"]] == made["text"]
    assert json.loads(shell.ok("doctor", "--json").out)


def test_each_of_two_things_that_one_text_says_is_told(shell: Shell) -> None:
    said = shell.ok("facts", "add", "my sister is called Klara and lives in Bern")
    first, second = said.out.splitlines()
    assert first.startswith("remembered: ")
    assert second.startswith("remembered: ")
    assert "Klara" in first
    assert "Bern" in second
