"""Pictures of a neighbourhood: what is in them, and that no label breaks them."""

from __future__ import annotations

import re
from datetime import timedelta
from html.parser import HTMLParser

from agentd.memory.graph.answer import AnswerRow, GraphAnswer, Unknown, one_line
from agentd.memory.graph.drawing import align, as_dot, as_html, columns
from agentd.memory.graph.paths import TraversalMode
from agentd.memory.graph.picture import Arrow, FactHistory, Picture, PictureNode
from agentd.memory.graph.query import QuestionKind
from agentd.memory.graph.recall import Recollection
from agentd.testing import FakeClock
from agentd.zero.naming import normal_label
from tests.graph.lines import NOW, LineGraph

SVG = "{http://www.w3.org/2000/svg}"
HOME = """
    user owns dog 0.9
    dog is_called rex 0.9
    user works_at acme 0.8
    acme is_in berlin 0.9
    user lives_in berlin 1
    user knows user 0.4
    user likes tea 0.3
"""
NASTY = [
    "</text><script>alert(1)</script>", '"onload="x', "a\\", '\\"]; evil [label="', "&amp; &lt;", "]]>",
    "a\nb\r\n\x00\x1b[31m", "\ud800", "\N{PILE OF POO}\N{ZERO WIDTH JOINER}", "漢字" * 30, "x" * 10_000, "", "\\N\\G",
]  # fmt: skip


async def drawn(lines, *names, **options):
    return await Recollection(LineGraph(lines), FakeClock(NOW)).picture(names, **options)


def told(picture):
    return {
        f"{picture.nodes[a.source].label} {a.predicate} {picture.nodes[a.target].label}"
        for a in picture.arrows
    }


def of_labels(labels):
    nodes = [PictureNode(label, place % 4, 0.5) for place, label in enumerate(labels)]
    arrows = [
        Arrow(place, (place * 7 + 1) % len(nodes), label, 0.5) for place, label in enumerate(labels)
    ]
    return Picture(labels[0], tuple(nodes), tuple(arrows))


async def test_a_picture_has_what_is_around_a_name():
    picture = await drawn(HOME, "User")
    assert picture.title == "Around User"
    assert {node.label: node.depth for node in picture.nodes} == {
        "user": 0, "dog": 1, "rex": 2, "acme": 1, "berlin": 1, "tea": 1,
    }  # fmt: skip
    assert len(told(picture)) == 7
    assert picture.left_out == ""


async def test_steps_are_counted_along_the_shortest_way_and_not_the_surest():
    picture = await drawn("a to b 0.2\n a to c 0.9\n c to b 0.9", "a")
    assert {node.label: node.depth for node in picture.nodes}["b"] == 1


async def test_what_is_left_out_is_told_and_what_is_shown_hangs_together():
    rows = "\n".join(f"a to b{i} 0.{9 - i}\n b{i} to c{i} 1" for i in range(8))
    picture = await drawn(rows, "a", most=5)
    assert len(picture.nodes) == 6
    joined = {end for arrow in picture.arrows for end in (arrow.source, arrow.target)}
    assert joined == set(range(6))
    assert (
        picture.left_out
        == f"{17 - 6} more concepts and {16 - len(picture.arrows)} more facts not shown"
    )


async def test_arrows_are_bounded_and_the_surest():
    names = "abcdefgh"
    rows = "\n".join(f"{s} to {t} 0.{9 - i}" for i, s in enumerate(names) for t in names if s < t)
    picture = await drawn(rows, "a")
    assert len(picture.nodes) == 8
    assert len(picture.arrows) == 16
    assert picture.hidden_arrows == 28 - 16


async def test_an_unknown_name_is_an_empty_picture_that_says_so():
    picture = await drawn(HOME, "nobody")
    assert picture == Picture("nothing is known about 'nobody'")
    assert "nobody" in as_html(picture)
    assert as_dot(picture).count("->") == 0
    assert align(picture.as_table()).count("\n") == 1


async def test_the_same_graph_is_drawn_the_same_way():
    backwards = "\n".join(reversed(HOME.splitlines()))
    assert as_html(await drawn(HOME, "user")) == as_html(await drawn(backwards, "user"))


async def test_a_page_lists_every_fact():
    page = as_html(await drawn(HOME, "user"))
    assert "<h1>Around user</h1>" in page
    assert page.count("<tr>") == 1 + len((await drawn(HOME, "user")).arrows)
    assert "<td>works_at</td>" in page


class Tags(HTMLParser):
    """Notes what a page is made of."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.data = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data):
        self.data.append(data)


def plain_tags(page):
    reader = Tags()
    reader.feed(page)
    return reader.tags, reader.attributes


PLAIN = plain_tags(
    as_html(of_labels(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"]))
)


def test_labels_are_words_whatever_they_hold():
    page = as_html(of_labels(NASTY))
    tags, attributes = plain_tags(page)
    assert tags <= PLAIN[0]
    assert attributes <= PLAIN[1]
    assert page.encode()
    assert not re.search(r"(?:src|href)\s*=|@import|url\(|https?://", page)


def test_a_text_that_is_not_escaped_would_be_seen_by_that_proof():
    page = as_html(of_labels(["a"])).replace("<table", f"{NASTY[0]}<table")
    assert "script" in plain_tags(page)[0] - PLAIN[0]


DOT_LINE = re.compile(
    r'n\d+ (?:-> n\d+ )?\[\w+=(?P<label>"(?:[^"\\&]|\\["\\]|&amp;)*")(?:, \w+=(?:"[^"\\]*"'
    r"|[\d.]+))*\];"
)


def test_dot_is_escaped():
    lines = as_dot(of_labels(NASTY)).splitlines()
    assert lines[0] == "digraph agentd {"
    assert lines[-1] == "}"
    found = [DOT_LINE.fullmatch(line.strip()) for line in lines[4:-1]]
    assert all(found)
    assert len(found) == 2 * len(NASTY)
    labels = [match["label"] for match in found]
    assert labels[2] == '"a\\\\"'
    assert labels[4] == '"&amp;amp; &amp;lt;"'


async def test_a_table_tells_the_history_of_each_fact_that_is_still_there():
    picture = await drawn("a needs b 0.9\n a needs c 0.8", "a")
    told = FactHistory(3, 1, 2, NOW - timedelta(days=9), NOW, stands=False)
    heads, first, second = picture.with_history({picture.edges[0].fact: told}).as_table()
    assert dict(zip(heads, first, strict=True)) == {
        "subject": "a", "predicate": "needs", "object": "b", "confidence": "0.90", "said": "3",
        "denied": "1", "promoted": "2", "first": "2026-11-13", "last": "2026-11-22", "memory": "episodic",
    }  # fmt: skip
    assert second == ("a", "needs", "c", "0.80", "", "", "", "", "", "")


async def test_the_way_decides_what_is_shown_first_and_what_its_score_is():
    lines = "a to b 0.2\n a to c 1\n c to d 1"
    shown = {}
    for by in TraversalMode:
        picture = await drawn(lines, "a", most=2, by=by)
        shown[by] = {node.label: node.score for node in picture.nodes}
        assert picture.by is by
        assert picture.title == ("Around a" if by is TraversalMode.PATHS else f"Around a, by {by}")
    assert shown[TraversalMode.PATHS].keys() == {"a", "c", "d"}
    assert shown[TraversalMode.BREADTH].keys() == {"a", "b", "c"}
    assert shown[TraversalMode.BREADTH]["c"] == shown[TraversalMode.PATHS]["c"]
    assert shown[TraversalMode.ACTIVATION] == {"a": 1.0, "c": 0.5, "d": 0.25}


async def test_a_picture_goes_as_far_as_its_way():
    chain = "a to b 1\n b to c 1\n c to d 1\n d to e 1\n e to f 1"
    for by, depth, far in (
        (TraversalMode.PATHS, None, 2), (TraversalMode.BREADTH, 3, 3), (TraversalMode.ACTIVATION, None, 4), (TraversalMode.ACTIVATION, 1, 1),
    ):  # fmt: skip
        picture = await drawn(chain, "a", by=by, depth=depth)
        assert max(node.depth for node in picture.nodes) == far


def test_letters_stay_joined_and_what_steers_a_terminal_is_a_blank():
    for word in ("\U0001f469\u200d\U0001f467", "می\u200cخواهم", "क\u094d\u200dष"):
        assert one_line(word) == word
        assert word in align((("a", "b"), (word, "x")))
    assert one_line("a\x1b[31m\u202e\u2028b\n") == "a [31m b"
    assert columns("a\u0301\u200d\ufe0f") == 1


def test_a_hyphen_that_means_something_is_shown_as_people_type_it():
    label = normal_label("AB-")
    row = AnswerRow("user", label, (), 1.0, 1.0)
    for told in (
        align((("blood",), (label,))),
        as_html(Picture(label, (PictureNode(label, 0, 1.0),), ())),
        align(GraphAnswer(QuestionKind.CONCEPT, (row,)).as_table()),
        str(Unknown(label)),
    ):
        assert "ab-" in told
        assert "\u2212" not in told
    assert normal_label(one_line(label)) == label


async def test_tables_are_aligned():
    table = align(
        (await drawn("漢字 is_a word 0.5\n 漢字 needs paper-and-ink 1", "漢字")).as_table()
    )
    lines = table.splitlines()
    assert lines[0].split() == ["subject", "predicate", "object", "confidence"]
    assert lines[2].split() == ["漢字", "needs", "paper-and-ink", "1.00"]
    assert len({columns(line) for line in lines}) == 1
    wide = align((("a", "b"), ("x" * 90, "漢" * 90)), widest=10)
    assert {columns(line) <= 22 for line in wide.splitlines()} == {True}
    assert wide.count("…") == 2
