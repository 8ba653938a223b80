from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.times import date_in, without_dates
from agentd.memory.index.chunks import (
    BOILERPLATE,
    PARAGRAPHS,
    chunker_of,
    chunks_of_note,
    without_boilerplate,
)
from agentd.memory.settings import IndexSettings

LINE = st.one_of(
    st.text(alphabet=st.sampled_from("ab #\r\u2028é\t*-:|`>."), max_size=30),
    st.sampled_from(
        ("", "# One", "## Two", "- item", "  below", "```", "> so", "| a | b |", "---")
    ),
    st.sampled_from(("**Ann:** hi there", "Bo: hello", "What for:", "1. first", "word " * 300)),
    st.sampled_from(("x" * 3000, "漢字" * 400, "One end. Two ends! " * 80)),
)
CHUNKERS = st.builds(
    IndexSettings,
    chunker=st.sampled_from(("paragraphs", "lines", "words", "tokens")),
    chunk_size=st.one_of(st.none(), st.integers(10, 300)),
    chunk_overlap=st.one_of(st.none(), st.sampled_from((0.0, 0.15, 0.5))),
).map(chunker_of)


@given(st.lists(LINE, max_size=60).map("\n".join), CHUNKERS)
def test_every_line_is_found_at_its_own_number(text, chunker):
    lines = text.removesuffix("\n").split("\n")
    found: set[int] = set()
    place = (0, 0)
    for chunk in chunks_of_note("a.md", text, scope="main", chunker=chunker):
        span = range(chunk.start_line, chunk.end_line + 1)
        whole = "\n".join(lines[n - 1] for n in span)
        assert chunk.text in whole
        assert chunk.text.strip()
        assert (chunk.start_line, chunk.end_line) >= place
        place = (chunk.start_line, chunk.end_line)
        found |= set(span)
    missing = set(range(1, len(lines) + 1)) - found
    assert not any(lines[n - 1].strip() for n in missing)


@given(st.lists(LINE, max_size=40).map("\n".join), CHUNKERS)
def test_no_word_is_lost_and_nothing_is_added(text, chunker):
    said = [chunk.text for chunk in chunks_of_note("a.md", text, scope="main", chunker=chunker)]
    for word in text.split():
        pieces = [word[i : i + 30] for i in range(0, len(word), 30)]  # a blob may be cut anywhere
        assert all(any(piece[:5] in one for one in said) for piece in pieces)
    assert set("".join(said)) <= set(text) | {"\n"}


@given(st.lists(LINE.filter(lambda line: len(line) < 200), max_size=40).map("\n".join))
def test_text_is_exactly_its_lines_where_no_line_is_too_long(text):
    lines = text.removesuffix("\n").split("\n")
    for chunk in chunks_of_note("a.md", text, scope="main"):
        assert chunk.text == "\n".join(lines[chunk.start_line - 1 : chunk.end_line])


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n\n"])
@pytest.mark.parametrize("name", ["paragraphs", "lines", "words", "tokens"])
def test_blank_files_have_no_chunks(text, name):
    chunker = chunker_of(IndexSettings(chunker=name))
    assert chunks_of_note("a.md", text, scope="main", chunker=chunker) == ()


def test_every_way_of_cutting_has_an_identity_of_its_own():
    settings = [
        IndexSettings(),
        IndexSettings(chunk_size=100),
        IndexSettings(chunker="lines"),
        IndexSettings(chunker="words"),
        IndexSettings(chunker="words", chunk_overlap=0.1),
        IndexSettings(chunker="tokens"),
        IndexSettings(chunker="tokens", chunk_size=500),
    ]
    assert len({chunker_of(one).identity for one in settings}) == len(settings)
    same = IndexSettings(chunker="words", chunk_size=800, chunk_overlap=0.15)
    assert chunker_of(same).identity == chunker_of(settings[3]).identity


def test_a_chunk_carries_the_day_of_the_heading_above_or_else_of_the_path():
    text = "before\n\n# 2026-02-03 Tuesday\n\nsaid then\n\n## Later\n\nsaid later\n"
    chunks = chunks_of_note("memory/2026-01-01.md", text, scope="")
    days = {chunk.text.split("\n")[-1]: chunk.date for chunk in chunks}
    assert days == {
        "before": date(2026, 1, 1),
        "said then": date(2026, 2, 3),
        "said later": date(2026, 2, 3),
    }
    assert not any(chunk.scope for chunk in chunks)


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("memory/2026-11-20.md", date(2026, 11, 20)),
        ("2025-01-01/2026-02-03 talk.md", date(2026, 2, 3)),
        ("2025-01-01/2026-02-31.md", date(2025, 1, 1)),
        ("memory/x/2026-02-20.md", date(2026, 2, 20)),
        ("MEMORY.md", None),
        ("12026-11-201.md", None),
    ],
)
def test_the_date_of_a_path(path, day):
    assert date_in(path) == day


@pytest.mark.parametrize(
    ("title", "left"),
    [
        ("2026-02-03 Tuesday", ""),
        ("2026-02-03 09:15", ""),
        ("Tuesday 2026-02-03: the boiler", "Tuesday 2026-02-03: the boiler"),
        ("Plans", "Plans"),
    ],
)
def test_a_heading_that_only_names_a_day_says_nothing(title, left):
    assert without_dates(title) == left


def test_what_was_shipped_counts_little_and_what_the_user_added_fully():
    shipped = "# Tools\n\nHow to reach things.\n\n## Doors\n\nWho opens what.\n"
    own = (
        "# Tools\n\nHow to reach things.\n\n## Doors\n\nWho opens what.\n\nThe gate code is 7715.\n"
    )
    lines = frozenset(line.strip() for line in shipped.split("\n"))
    chunker = without_boilerplate(chunker_of(IndexSettings(chunk_size=10)), lines)

    def weights(text):
        chunks = chunks_of_note("TOOLS.md", text, scope="", chunker=chunker)
        return {chunk.text.split("\n")[-1]: chunk.importance for chunk in chunks}

    assert set(weights(shipped).values()) == {BOILERPLATE}
    assert weights(own)["The gate code is 7715."] == 1.0
    assert weights(own)["How to reach things."] == BOILERPLATE
    assert set(weights("How to reach things, and me.\n").values()) == {1.0}


def test_other_shipped_lines_are_another_way_of_cutting():
    one, same, other = (
        without_boilerplate(PARAGRAPHS, frozenset(lines)).identity
        for lines in (["a", "b"], ["b", "a"], ["a"])
    )
    assert one == same
    assert len({one, other, PARAGRAPHS.identity}) == 3
