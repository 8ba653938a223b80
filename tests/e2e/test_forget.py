"""A forgotten fact on a real daemon: no file below its home says it any more, and what merely
mentions the same stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import finding
from tests.e2e.shell import Shell, a_shell
from tests.waiting import soon, wait_until

WORD = "Quastelbury"
SAID = f"hamster is called {WORD}"
AT_ONCE = {"AGENTD__FACTS__IDLE": "0s"}


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with a_shell(**AT_ONCE) as shell:
        shell.wake()
        yield shell


def holding(root: Path) -> set[str]:
    """The files that say it, in any case."""
    return finding.holding(root, SAID.encode(), least=10)


def gone(root: Path) -> set[str]:
    """What says it when the time is over, or nothing as soon as nothing does."""
    soon(lambda: not holding(root))
    return holding(root)


def plant(shell: Shell) -> str:
    """The fact said, noted, searched for and typed; gives its id."""
    shell.ok("send", f"My {SAID}. What does it eat?")
    shell.ok("send", f"where does {WORD} sleep?", "--session", "chat:pets")
    shell.ok("memory", "write", f"my {SAID}")
    typed = shell.root / "state" / "chat_history"
    typed.write_text(f"\n# 2026-11-21 10:00:00.000001\n+My {SAID}.\n")
    (learnt,) = learnt_of(shell, WORD)
    shell.ok("memory", "index")
    shell.ok("memory", "search", WORD)
    assert WORD.lower() in shell.ok("facts", "query", "FIND fact FROM user").out
    places = holding(shell.root)
    for part in ("state.db", "index.db", "versions", "facts.md", "memory/20", "chat_history"):
        assert any(part in place for place in places), "the test could not fail"
    return learnt


def test_no_file_holds_a_byte_of_a_forgotten_fact(shell: Shell) -> None:
    fact_id = plant(shell)
    report = shell.json("facts", "forget", fact_id, "--yes")
    assert gone(shell.root) == set()
    assert report["pending"] == []
    assert not any(
        "hamster" in hit["text"] for hit in shell.json("memory", "search", WORD)["results"]
    )
    assert WORD not in shell.ok("facts", "list", "--json").out
    assert shell.json("facts", "graph", WORD)["nodes"] == []
    assert "[forgotten]. What does it eat?" in shell.ok("sessions", "export", "main").out
    assert WORD not in shell.ok("send", "what is my hamster called?").out
    shell.wake_again()
    assert holding(shell.root) == set()


def test_what_mentions_the_same_stays_and_is_named_and_goes_when_the_user_names_it(
    shell: Shell,
) -> None:
    fact_id = plant(shell)
    own = shell.root / "workspace" / "pets.md"
    own.write_text(f"one\n- {WORD} by hand\n")
    shown = shell.json("facts", "forget", fact_id, "--dry-run")["also"]
    assert holding(shell.root), "nothing is done by looking"
    by_place = {one["where"]: one for one in shown}
    assert by_place["pets.md:2"]["text"] == f"{WORD} by hand"
    asked = next(n for n in by_place if n.startswith("sessions/chat:pets"))
    number = by_place["pets.md:2"]["n"]
    out = shell.ok("facts", "forget", fact_id, "--yes", "--also", str(number)).out
    assert asked in out
    assert gone(shell.root) == set()
    assert own.read_text() == "one\n- [forgotten]\n"
    assert f"where does {WORD} sleep?" in shell.ok("sessions", "export", "chat:pets").out
    own.unlink()
    shell.ok("memory", "index")


def test_what_was_forgotten_since_a_backup_does_not_come_back_with_it(tmp_path: Path) -> None:
    with a_shell(**AT_ONCE) as shell:
        shell.wake()
        shell.ok("facts", "add", "I live in Ulm")
        fact_id = plant(shell)
        shell.ok("backup", str(tmp_path / "b.tar.gz"))
        shell.ok("facts", "forget", fact_id, "--yes")
        assert gone(shell.root) == set()
        shell.ok("stop")
        restored = shell.ok("restore", str(tmp_path / "b.tar.gz"), "--force").out
        assert "forgotten again: 1 fact " in restored
        assert holding(shell.root), "the test could not fail"
        shell.wake()
        assert gone(shell.root) == set()
        assert "Ulm" in shell.ok("facts", "list").out
        versions = shell.json("memory", "history", "memory/facts.md")["versions"]
        assert versions
        for version in versions:
            shell.ok("memory", "restore", "memory/facts.md", "--version", str(version["version"]))
            assert WORD not in shell.ok("facts", "list", "--all").out
        assert holding(shell.root) == set()


@pytest.mark.parametrize("point", ["erasure.begun", "erasure.place_done:2", "erasure.done"])
def test_a_kill_in_between_is_made_good_at_the_next_start(point: str) -> None:
    with a_shell(AGENTD_FAILPOINT=point, **AT_ONCE) as shell:
        shell.wake()
        fact_id = plant(shell)
        assert shell("facts", "forget", fact_id, "--yes").code != 0
        assert holding(shell.root)
        shell.variables.clear()
        shell.wake()
        assert gone(shell.root) == set()


@pytest.mark.parametrize(
    "way", ["/forget {id}", "/forget {word}", "Forget that my hamster is called {word}."]
)
def test_it_is_as_gone_when_it_was_asked_for_in_a_chat(shell: Shell, way: str) -> None:
    fact_id = plant(shell)
    shell.ok("send", way.format(id=fact_id, word=WORD))
    assert gone(shell.root) == set()
    assert WORD not in shell.ok("facts", "list", "--all", "--json").out


def test_a_line_by_hand_in_a_file_of_the_prompt_stays_and_is_named(shell: Shell) -> None:
    fact_id = plant(shell)
    own = shell.workspace / "MEMORY.md"
    before = own.read_text("utf-8")
    own.write_text(f"{before}\n{WORD} is the hamster.\n", "utf-8")
    shell.ok("memory", "index")
    report = shell.json("facts", "forget", fact_id, "--yes")
    assert any(one["where"].startswith("MEMORY.md:") for one in report["also"])
    assert own.read_text("utf-8") == f"{before}\n{WORD} is the hamster.\n"
    own.write_text(before, "utf-8")
    shell.ok("memory", "index")


def test_a_backup_that_still_has_it_is_named(shell: Shell) -> None:
    fact_id = plant(shell)
    kept = shell.workspace / "copy.tar.gz"
    shell.ok("backup", str(kept))
    report = shell.json("facts", "forget", fact_id, "--yes")
    assert [Path(copy).name for copy in report["backups"]] == ["copy.tar.gz"]
    assert gone(shell.root) == set()
    kept.unlink()


def test_it_is_gone_although_it_was_being_embedded(shell: Shell) -> None:
    shell.ok("memory", "write", "\n\n".join(f"row {n}: my {SAID}" for n in range(400)))
    shell.ok("send", f"My {SAID}.")
    (learnt,) = learnt_of(shell, WORD)
    shell.json("facts", "forget", learnt, "--yes")
    assert gone(shell.root) == set()
    shell.ok("memory", "index")
    assert holding(shell.root) == set()


def test_it_is_not_learnt_again_from_the_same_conversation() -> None:
    with a_shell(**AT_ONCE) as shell:
        shell.wake()
        for session in ("main", "chat:pets"):
            shell.ok("send", f"My hamster is called {WORD}. I like nuts.", "--session", session)
        (learnt,) = learnt_of(shell, WORD)
        shell.json("facts", "forget", learnt, "--yes")
        assert gone(shell.root) == set()
        shell.wake_again()
        shell.ok("send", "My cat is called Mopsine.", "--session", "chat:pets")
        assert learnt_of(shell, "Mopsine")
        assert holding(shell.root) == set()
        assert "[forgotten]. I like nuts." in shell.ok("sessions", "export", "main").out


def test_what_was_said_before_it_changed_in_the_same_breath_is_gone_too() -> None:
    with a_shell(AGENTD__FACTS__IDLE="1d") as shell:
        shell.wake()
        shell.ok("send", "My dog is called Rexelbury.")
        shell.ok("send", "My dog is called Maxelbury now.")
        shell.ok("send", "Forget my dog.")
        soon(lambda: not finding.holding(shell.root, b"elbury", least=5))
        assert not finding.holding(shell.root, b"elbury", least=5)
        assert "elbury" not in shell.ok("send", "What is my dog called?").out


def learnt_of(shell: Shell, word: str) -> list[str]:
    """The ids of facts that say the word, as soon as there is one."""

    def found() -> list[str]:
        facts = shell.json("facts", "list")["facts"]
        return [fact["id"] for fact in facts if word in fact["text"]]

    return soon(found)


def test_no_file_of_what_is_in_memory_has_a_forgotten_word_or_takes_it_back(tmp_path: Path) -> None:
    """A large index is written to a file of its own, with the words that it knows."""
    word = "zwirbelquast"
    with a_shell() as shell:
        shell.wake()
        lines = "".join(f"- line {n} about a thing{n}\n" for n in range(4_200))
        notes = shell.root / "workspace" / "memory"
        (notes / "2026-01-01.md").write_text(lines)
        shell.ok("send", f"the cellar is called {word}")
        shell.ok("memory", "index")
        shell.wake_again()
        file = shell.root / "state" / "index.arrays"
        wait_until(file.exists, "what is in memory is written")
        wait_until(lambda: in_place(shell.root, word, file.name), "it has the word")
        shell.ok("memory", "forget", word, "--yes")
        soon(lambda: not finding.holding(shell.root, word.encode(), least=10))
        assert finding.holding(shell.root, word.encode(), least=10) == set()
        assert shell.json("memory", "search", "what is about thing77?")["results"]
        shell.wake_again()
        wait_until(file.exists, "it is written again")
        assert finding.holding(shell.root, word.encode(), least=10) == set()


def in_place(root: Path, word: str, name: str) -> bool:
    return any(name in place for place in finding.holding(root, word.encode(), least=10))
