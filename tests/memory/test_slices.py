from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from agentd.core.message import Image, Text, ToolResult, ToolUse
from agentd.core.transcript import Row, RowRole
from agentd.engine import tokens
from agentd.memory.flush import RESULT_CHARS, clip, split

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
WORDS = st.text(min_size=1, max_size=400)


@st.composite
def transcripts(draw):
    rows: list[Row] = []

    def add(role: RowRole, *blocks) -> None:
        rows.append(Row(len(rows) + 1, role, blocks, NOON))

    for turn in range(draw(st.integers(1, 6))):
        add(RowRole.USER, Text(draw(WORDS)))
        for call in range(draw(st.integers(0, 3))):
            name = f"t{turn}c{call}"
            add(RowRole.ASSISTANT, Text(draw(WORDS)), ToolUse(name, "memory_read", {"path": "a"}))
            add(RowRole.USER, ToolResult(name, "é" * draw(st.integers(0, 5000))))
        add(RowRole.ASSISTANT, Text(draw(WORDS)))
    return rows


@given(transcripts(), st.integers(1, 2000))
def test_every_row_is_shown_in_order_and_no_call_loses_its_result(rows, budget):
    parts = split(rows, budget)
    assert [r.seq for part in parts for r in part.rows if part.piece < 2] == [r.seq for r in rows]
    assert parts[-1].covered == rows[-1].seq
    assert [p.covered for p in parts] == sorted(p.covered for p in parts)
    assert len({p.name for p in parts}) == len(parts)
    for part in parts:
        calls = {b.id for r in part.rows for b in r.blocks if isinstance(b, ToolUse)}
        answers = {b.tool_use_id for r in part.rows for b in r.blocks if isinstance(b, ToolResult)}
        assert calls == answers
    for row in rows:
        shown = [r.text for part in parts for r in part.rows if r.seq == row.seq]
        assert "".join(shown) == row.text


@given(transcripts(), st.integers(100, 2000))
def test_a_part_of_several_units_fits_the_budget(rows, budget):
    for part in split(rows, budget):
        units = sum(not any(isinstance(b, ToolResult) for b in r.blocks) for r in part.rows)
        if units > 1:
            assert tokens.of_rows(part.rows) <= budget


def test_long_results_are_cut_between_characters():
    long = Row(1, RowRole.USER, (ToolResult("c", "é" * 2001),), NOON)
    (block,) = clip(long).blocks
    assert block.text == "é" * RESULT_CHARS + "\n[… 1 of 2001 characters left out]"
    short = Row(1, RowRole.USER, (ToolResult("c", "é" * 2000),), NOON)
    assert clip(short) == short


def test_an_image_is_offered_as_words():
    row = Row(1, RowRole.USER, (Image("image/png", "a" * 64, 34_000), Text("look")), NOON)
    assert clip(row).blocks == (Text("[image image/png, 34 kB]"), Text("look"))
