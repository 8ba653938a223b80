"""What was told first and what was told later, asked for in a real daemon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.shell import Shell, a_shell
from tests.waiting import soon

_ASKED = "what is my dog called?"
_PAGE = "memory/facts.md"


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    """A daemon that was told of one dog, and later of another name for it."""
    with a_shell(AGENTD__FACTS__IDLE="0s") as shell:
        shell.wake()
        for name in ("Rex", "Max"):
            shell.ok("send", f"my dog is called {name}")
            assert soon(lambda name=name: any(name in fact["text"] for fact in known(shell)))
        shell.ok("memory", "write", "took Rex, the dog, to the park")
        yield shell


def known(shell: Shell) -> list[dict[str, Any]]:
    """The facts that hold."""
    return shell.json("facts", "list")["facts"]


def found(shell: Shell, *argv: str) -> list[dict[str, Any]]:
    return shell.json("memory", "search", _ASKED, *argv)["results"]


def test_search_and_answer_say_first_what_holds(shell: Shell) -> None:
    first, *others = found(shell)
    assert (first["path"], first["newer"]) == (_PAGE, "")
    assert "Max" in first["text"]
    place = f"{_PAGE}:{first['start_line']}"
    old = [hit for hit in others if "called Rex" in hit["text"] and "Max" not in hit["text"]]
    assert old
    assert [hit["newer"] for hit in others if "park" in hit["text"]] == [
        ""
    ]  # it says nothing of that
    assert {hit["newer"] for hit in old} == {place}
    assert f"older: {place} says something newer" in shell.ok("memory", "search", _ASKED).out
    [one] = found(shell, "--limit", "1")
    assert "Max" in one["text"]
    answer = shell.ok("send", _ASKED).out
    assert "Max" in answer.partition("Rex")[0]


def test_what_is_past_stays_past_when_what_came_after_it_is_forgotten(shell: Shell) -> None:
    [now] = known(shell)
    shell.ok("facts", "forget", now["id"], "--yes")
    assert known(shell) == []
    hits = found(shell)
    assert not any("Max" in hit["text"] for hit in hits)
    on_page = [hit for hit in hits if hit["path"] == _PAGE]
    assert on_page
    assert all(hit["text"].startswith("Until ") for hit in on_page)
    assert not any("current" in hit["scores"] for hit in hits)
