"""What docs/graph-recall.md says of the language, the ways and the forms, against the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentd.app.cli.graph import Format
from agentd.core.errors import QueryError
from agentd.memory.graph.paths import FANOUT, LEAST, MAX_RESULTS, TraversalMode
from agentd.memory.graph.picture import Arrow, Picture, PictureNode
from agentd.memory.graph.query import CLAUSES, LIMIT, MAX_NAMES, NUMBER_FIELDS, TEXT_FIELDS, parse
from agentd.memory.graph.service import with_pointer
from agentd.memory.graph.spreading import THRESHOLD

PAGE = (Path(__file__).parents[2] / "docs/graph-recall.md").read_text(encoding="utf-8")
QUESTIONS = [
    *re.findall(r"^FIND .*$", PAGE, re.MULTILINE),
    *re.findall(r'facts query "(FIND .*)"', PAGE),
]


def named(heading):
    """The words in code of the first column below a heading of a table."""
    rows = re.search(rf"^\| {re.escape(heading)} \|.*\n\|---.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [
        word for row in rows[1].splitlines() for word in re.findall(r"`(.+?)`", row.split("|")[1])
    ]


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_is_one(question):
    assert parse(question)


def test_all_is_named_and_nothing_else():
    assert len(QUESTIONS) > 4
    assert sorted(named("clause")) == sorted(CLAUSES)
    assert named("`BY`") == [way.value for way in TraversalMode]
    assert sorted(named("`--format`")) == sorted(form.value for form in Format)
    fields = PAGE[PAGE.index("`WHERE` knows") : PAGE.index("; `AND`, `OR`")]
    assert {*re.findall(r"`(\w+)`", fields)} == {"WHERE", *TEXT_FIELDS, *NUMBER_FIELDS}


def test_the_numbers_are_those_of_the_code():
    most = (
        {way.most for way in (TraversalMode.PATHS, TraversalMode.BREADTH)},
        TraversalMode.ACTIVATION.most,
    )
    usual = (
        {way.depth for way in (TraversalMode.PATHS, TraversalMode.BREADTH)},
        TraversalMode.ACTIVATION.depth,
    )
    assert (most, usual) == (({4}, 4), ({2}, 4))
    assert ": 1 to 4 | 2, `BY activation` 4 |" in PAGE
    assert f"| how many rows: 1 to {MAX_RESULTS} | {LIMIT} |" in PAGE
    assert (MAX_NAMES, THRESHOLD, MAX_RESULTS) == (20, 0.05, 50)
    assert f"Facts below {LEAST} are not walked" in PAGE
    assert f"more than {FANOUT} facts" in PAGE


def test_a_mistake_is_shown_as_on_the_page():
    with pytest.raises(QueryError) as caught:
        parse("FIND concpt FROM user")
    told = with_pointer("FIND concpt FROM user", caught.value).message
    assert f"```text\nerror: {told}\n```" in PAGE


def test_a_table_has_the_columns_of_the_page():
    line = next(line for line in PAGE.splitlines() if line.startswith("subject  predicate"))
    arrow = Arrow(0, 0, "is", 1.0)
    assert line.split()[:4] == list(
        Picture("", (PictureNode("a", 0, 1.0),), (arrow,)).as_table()[0]
    )
    assert line.split()[4:] == ["said", "denied", "promoted", "first", "last", "memory"]
