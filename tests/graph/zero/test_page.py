"""What docs/zero.md claims of the language is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

from agentd.core.errors import ZeroError
from agentd.zero import Hash32, ProgramLimits, execute, faults, parse
from agentd.zero.builtins import BUILTINS
from agentd.zero.call import MAX_WORK
from agentd.zero.tokens import MAX_TEXT
from agentd.zero.values import MAX_DEPTH, MAX_SIZE

PAGE = (Path(__file__).resolve().parents[3] / "docs/zero.md").read_text(encoding="utf-8")


def fence(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def first_cells(heading: str) -> list[str]:
    """The words in the first column of the section's tables."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]


def test_the_example_does_what_the_page_says() -> None:
    asked = re.search(r'`message` = `"(.*?)"`', PAGE)
    assert asked
    run = execute(parse(fence("zero")), {"message": asked[1]})
    shown = {name: str(value) for name, value in run.outputs.items()}
    assert {**shown, "confidence": run.confidence} == json.loads(fence("json"))
    assert isinstance(run.outputs["hash"], Hash32)
    assert execute(parse(fence("zero")), {"message": "Well."}).outputs["target"] == "listen"


def test_the_page_lists_every_operation() -> None:
    assert sorted(first_cells("Operations")) == sorted(BUILTINS)


def test_the_page_lists_every_error() -> None:
    words = {
        kind.code
        for kind in vars(faults).values()
        if isinstance(kind, type) and issubclass(kind, ZeroError) and kind is not ZeroError
    }
    assert set(first_cells("Errors")) == words


def test_the_page_names_the_limits() -> None:
    section = PAGE.split("\n## Limits\n")[1]
    mebibyte = 1024 * 1024
    assert f"{ProgramLimits().steps:,} steps and {ProgramLimits().seconds:g} seconds" in section
    assert MAX_TEXT == MAX_SIZE
    assert f"{MAX_SIZE // mebibyte} MiB for a text or a value, {MAX_DEPTH} levels" in section
    assert f"{MAX_WORK // mebibyte} MiB that operations" in section
