from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.chunks import chunks_of_note, date_in

LINE = st.text(alphabet=st.sampled_from("ab #\r\u2028é\t"), max_size=30)


@given(st.lists(LINE, max_size=90).map("\n".join))
def test_every_line_is_in_one_chunk_at_its_own_number(text):
    lines = text.split("\n")
    seen: list[int] = []
    for chunk in chunks_of_note("a.md", text, owner_only=True):
        span = range(chunk.start_line, chunk.end_line + 1)
        assert chunk.text == "\n".join(lines[n - 1] for n in span)
        assert 1 <= len(span) <= 20
        seen += span
    assert seen == sorted(set(seen))
    left_out = set(range(1, len(lines) + 1)) - set(seen)
    assert not any(lines[n - 1].strip() for n in left_out)


def test_a_chunk_begins_at_a_heading_and_after_twenty_lines():
    text = "intro\n# A\n" + "x\n" * 25 + "### deep\n## B\ny\n"
    chunks = chunks_of_note("memory/2026-11-20.md", text, owner_only=False)
    assert [(c.start_line, c.end_line) for c in chunks] == [(1, 1), (2, 21), (22, 28), (29, 30)]
    assert {c.date for c in chunks} == {date(2026, 11, 20)}
    assert not any(c.owner_only for c in chunks)


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n\n"])
def test_blank_files_have_no_chunks(text):
    assert chunks_of_note("a.md", text, owner_only=True) == ()


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("memory/2026-11-20.md", date(2026, 11, 20)),
        ("2025-01-01/2026-02-03 talk.md", date(2026, 2, 3)),
        ("2025-01-01/2026-02-31.md", date(2025, 1, 1)),
        ("MEMORY.md", None),
        ("12026-11-201.md", None),
    ],
)
def test_the_date_of_a_path(path, day):
    assert date_in(path) == day
