"""No character that a yes would write is left out of the question."""

from __future__ import annotations

import difflib
from pathlib import PurePath

from hypothesis import given
from hypothesis import strategies as st

from agentd.core.screening.lookalikes import spell_out
from agentd.core.tool import Approval
from agentd.interfaces.acp.permissions import pages

ROOT = PurePath("/ws")
LINES = st.lists(st.text(st.sampled_from("ab\u200b\u202e\u0430é\r"), max_size=3), max_size=8)


def texts(approval: Approval) -> str:
    return "".join(part["content"]["text"] for page in pages(approval, ROOT) for part in page)


def padded(lines: list[str]) -> str:
    """So long that it goes out in pages."""
    return "\n".join([*lines, "x" * 200_000])


@given(LINES, LINES)
def test_the_pages_of_a_change_make_the_new_text_of_the_old(old: list[str], new: list[str]) -> None:
    before, after = padded(old), padded(new)
    told = texts(Approval("t", "d", "a.md", before, after)).split("\n")
    assert told[0].startswith("@@ ")
    was = [line[1:] for line in told[1:] if line[:1] in " -"]
    now = [line[1:] for line in told[1:] if line[:1] in " +"]
    spelled_before = [spell_out(line) for line in before.split("\n")]
    spelled_after = [spell_out(line) for line in after.split("\n")]
    assert is_part(was, spelled_before)
    assert is_part(now, spelled_after)
    differing = [line for line in difflib.ndiff(spelled_before, spelled_after) if line[0] in "+-"]
    assert {line[2:] for line in differing} <= {line[1:] for line in told[1:] if line[:1] in "+-"}


def is_part(lines: list[str], whole: list[str]) -> bool:
    starts = range(len(whole) - len(lines) + 1)
    return any(whole[start : start + len(lines)] == lines for start in starts)


def test_one_line_without_an_end_is_cut_into_pages_and_none_of_it_is_lost() -> None:
    approval = Approval("t", "d", "a.md", None, "y" * 250_000)
    found = pages(approval, ROOT)
    assert len(found) == 7
    assert texts(approval).count("y") == 250_000


def test_a_line_that_is_added_to_a_large_file_is_one_short_page() -> None:
    before = "z\n" * 200_000
    ((part,),) = pages(Approval("t", "d", "a.md", before, f"{before}new\n"), ROOT)
    lines = part["content"]["text"].split("\n")
    assert lines[1:] == [" z", " z", " z", "+new", " "]


def test_a_short_change_without_anything_odd_is_the_diff_alone() -> None:
    ((diff,),) = pages(Approval("t", "d", "a.md", "old", "é 中 ❤️ می‌خواهم"), ROOT)
    assert diff == {
        "type": "diff",
        "path": "/ws/a.md",
        "newText": "é 中 ❤️ می‌خواهم",
        "oldText": "old",
    }
