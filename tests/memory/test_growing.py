"""A note that grew is cut from where it grew, as if it were cut as a whole."""

from __future__ import annotations

import hashlib
from datetime import date

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentd.core.workspace import FileView
from agentd.memory.index.chunks import FACTS, PARAGRAPHS, chunks_of, chunks_of_note, lines_of
from agentd.memory.index.note_growth import CutPoints, NoteCutting, NoteTail

WAY = NoteCutting(PARAGRAPHS, "main")
LINES = st.sampled_from(
    [
        "",
        "# Day",
        "## 2026-05-04",
        "### Later",
        "---",
        "```",
        "- one",
        "- [09:00] a somewhat longer entry about the garden and the tools in it",
        "  below it",
        "Shopping:",
        "Anna: yes",
        "Ben: no",
        "- Anna: perhaps",
        "Some words.",
        "some more words that follow on the line before, up to its end",
        "| a | b |",
        "> said",
        "-",
        "1. first",
    ]
)


def view(text: str) -> FileView:
    return FileView("a.md", text, hashlib.sha256(text.encode()).hexdigest())


class Index:
    """What it holds of one note that is cut again and again."""

    def __init__(self) -> None:
        self.growing = CutPoints()
        self.state, self.chunks = "", ()
        self.cut: list[int] = []

    def take(self, text: str, way: NoteCutting = WAY) -> None:
        now = view(text)
        part = self.growing.cut(now, way, self.state, now.digest)
        self.state = now.digest
        if isinstance(part, NoteTail):
            held = tuple(chunk for chunk in self.chunks if chunk.start_line < part.since)
            self.chunks = (*held, *part.chunks)
            self.cut.append(len(part.chunks))
            return
        self.chunks = patched(self.chunks, part)
        self.cut.append(sum(len(one.pieces) for one in part))


def patched(chunks, patches):
    """What stands where after patches, as the port says it."""
    kept = [c for c in chunks if not any(p.first <= c.start_line < p.end for p in patches)]
    moved = [c.moved(sum(p.by for p in patches if p.end <= c.start_line)) for c in kept]
    pieces = [piece for one in patches for piece in one.pieces]
    return tuple(sorted((*moved, *pieces), key=lambda chunk: chunk.start_line))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(LINES, min_size=1, max_size=6), min_size=1, max_size=8), st.booleans())
@example([["- a", "-"], ["x", "- b"]], False)
@example([["Anna: yes", "", "one", "", "two", ""], ["Anna: no", "", "Anna: yes"]], True)
def test_what_grows_is_indexed_as_what_came_at_once(additions, ended) -> None:
    index, text = Index(), ""
    for lines in additions:
        text += "\n".join(lines) + "\n" * ended
        index.take(text)
        assert index.chunks == chunks_of_note("a.md", text, scope="main")


@settings(max_examples=100, deadline=None)
@given(st.lists(LINES, min_size=4, max_size=20), st.data())
def test_edits_by_hand_in_between_are_seen(lines, data) -> None:
    index = Index()
    for _ in range(4):
        index.take("\n".join(lines) + "\n")
        index.take("\n".join([*lines, "- one more"]) + "\n")
        at = data.draw(st.integers(0, len(lines) - 1))
        lines = [*lines[:at], data.draw(LINES), *lines[at + 1 :]]
    text = "\n".join(lines)
    index.take(text)
    assert index.chunks == chunks_of_note("a.md", text, scope="main")


def test_a_line_added_to_a_long_note_has_few_pieces_cut_again() -> None:
    index = Index()
    text = "".join(
        f"- [09:00] note {n} of the day, with a few more words to it\n" for n in range(500)
    )
    for n in range(5):
        text += f"- [10:00] one more, number {n}, which is to be found\n"
        index.take(text)
    first, *others = index.cut
    assert first > 400
    assert max(others) < 20


def test_another_way_of_cutting_cuts_all_of_it() -> None:
    index = Index()
    text = "".join(f"- note {n} of the day, with a few more words to it\n" for n in range(50))
    index.take(text)
    index.take(text + "- one more\n", NoteCutting(PARAGRAPHS, "main", date(2026, 5, 4)))
    assert len({chunk.date for chunk in index.chunks}) == 1


FACTS_WAY = NoteCutting(FACTS, "main")
FACT_LINES = st.sampled_from(
    [
        "",
        "# Facts",
        "## Earlier",
        "Some words.",
        "- a",
        "- b <!-- fact id=aaaa since=2026-03-02 -->",
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(FACT_LINES, max_size=12), st.lists(st.integers(0, 12), max_size=6))
def test_a_page_of_facts_is_indexed_as_a_whole_wherever_lines_come_in(lines, places) -> None:
    index = Index()
    for number, place in enumerate(places):
        lines = [*lines[:place], f"- fact {number}", *lines[place:]]
        text = "\n".join(lines)
        index.take(text, FACTS_WAY)
        pieces = list(FACTS.pieces(lines_of(text)))
        assert index.chunks == tuple(chunks_of("a.md", pieces, scope="main", day=None))


def test_a_fact_before_those_that_no_longer_hold_has_few_pieces_cut_again() -> None:
    index = Index()
    known = [f"- fact {n} <!-- fact id=a{n} -->" for n in range(500)]
    earlier = ["", "## Earlier", "", "- old <!-- fact id=old1 -->"]
    for n in range(5):
        known.append(f"- one more, {n} <!-- fact id=b{n} -->")
        index.take("\n".join(["# Facts", "", *known, *earlier]), FACTS_WAY)
    first, *others = index.cut
    assert first == 502
    assert set(others) == {1}


@settings(max_examples=300, deadline=None)
@given(st.lists(FACT_LINES, max_size=20), st.data())
def test_a_page_of_facts_is_indexed_as_a_whole_whatever_lines_change(lines, data) -> None:
    index = Index()
    for number in range(4):
        index.take("\n".join(lines) + "\n" * data.draw(st.integers(0, 2)), FACTS_WAY)
        for _ in range(data.draw(st.integers(0, 4))):
            at = data.draw(st.integers(0, len(lines)))
            new = data.draw(st.lists(st.one_of(FACT_LINES, st.just(f"- new {number}")), max_size=3))
            lines = [*lines[:at], *new, *lines[at + data.draw(st.integers(0, 3)) :]]
    text = "\n".join(lines)
    index.take(text, FACTS_WAY)
    pieces = list(FACTS.pieces(lines_of(text)))
    assert index.chunks == chunks_of("a.md", pieces, scope="main", day=None)


def test_lines_that_went_from_a_long_page_have_nothing_else_cut_again() -> None:
    index = Index()
    known = [f"- fact {n} <!-- fact id=a{n} -->" for n in range(5_000)]
    index.take("\n".join(["# Facts", "", *known, ""]), FACTS_WAY)
    del known[4_000], known[70]
    graves = ["", "## Forgotten", "", "<!-- forgotten id=a70 at=2026-11-22T05:11:15Z -->"]
    text = "\n".join(["# Facts", "", *known, *graves, ""])
    index.take(text, FACTS_WAY)
    assert index.cut[1] == 0
    assert index.chunks == chunks_of("a.md", FACTS.pieces(lines_of(text)), scope="main", day=None)


def test_a_page_that_the_index_holds_in_another_state_is_cut_as_a_whole() -> None:
    index = Index()
    index.take("- a\n- b\n- c\n", FACTS_WAY)
    index.state, index.chunks = "another", ()
    index.take("- a\n- b\n- d\n", FACTS_WAY)
    assert [chunk.text for chunk in index.chunks] == ["a", "b", "d"]
