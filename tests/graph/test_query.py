"""The language of questions: what is read, and where an error is."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentd.core.errors import GraphError, QueryError
from agentd.memory.graph.conditions import normalise
from agentd.memory.graph.paths import TraversalMode
from agentd.memory.graph.query import (
    Comparison,
    Conjunction,
    Disjunction,
    GraphQuery,
    Negation,
    QuestionKind,
    parse,
)

NEEDS = Comparison("predicate", "=", "needs")
SURE = Comparison("confidence", ">", 0.5)
NEAR = Comparison("depth", "<=", 1.0)


def where(text):
    return parse(f"FIND concept WHERE {text}").where


def test_a_whole_question_is_read():
    text = "FIND concept WHERE predicate = needs AND confidence > 0.5 FROM agent DEPTH 2 LIMIT 10"
    assert parse(text) == GraphQuery(
        QuestionKind.CONCEPT, Conjunction((NEEDS, SURE)), ("agent",), 2, 10
    )


@pytest.mark.parametrize("text", ["FIND fact", "find FACTS", "Find\n\tfact "])
def test_all_but_what_is_asked_for_may_be_left_out(text):
    assert parse(text) == GraphQuery(QuestionKind.FACT, None, (), 2, 10)


def test_clauses_stand_in_any_order_and_keywords_in_any_case():
    text = "find Path limit 3 from agent, tool depth 1 where Predicate = needs"
    assert parse(text) == GraphQuery(QuestionKind.PATH, NEEDS, ("agent", "tool"), 1, 3)


@pytest.mark.parametrize(
    ("text", "by", "depth"),
    [
        ("FIND concept FROM a", TraversalMode.PATHS, 2),
        ("FIND concept FROM a BY paths", TraversalMode.PATHS, 2),
        ("FIND concept WHERE predicate = is BY paths", TraversalMode.PATHS, 2),
        ("find path by Breadth from a", TraversalMode.BREADTH, 2),
        ("FIND fact BY BREADTH FROM a DEPTH 3", TraversalMode.BREADTH, 3),
        ("FIND fact FROM a BY activation", TraversalMode.ACTIVATION, 4),
        ("FIND fact DEPTH 4 FROM a BY activation", TraversalMode.ACTIVATION, 4),
        ("FIND concepts DEPTH 1 BY activation FROM a", TraversalMode.ACTIVATION, 1),
    ],
)  # fmt: skip
def test_by_chooses_the_way_and_the_way_how_far(text, by, depth):
    asked = parse(text)
    assert (asked.by, asked.depth) == (by, depth)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": QuestionKind.PATH, "names": ("a",), "by": TraversalMode.ACTIVATION},
        {"by": TraversalMode.ACTIVATION},
        {"by": TraversalMode.BREADTH},
    ],
)
def test_a_question_without_a_meaning_cannot_be_made_otherwise_either(wrong):
    with pytest.raises(QueryError) as caught:
        GraphQuery(**wrong)
    assert caught.value.cure


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ((
            "depth <= 1 OR predicate = needs AND confidence > .5"
            ), Disjunction((NEAR, Conjunction((NEEDS, SURE))))),
        ((
            "(depth <= 1 OR predicate = needs) AND confidence > 0.50"
            ), Conjunction((Disjunction((NEAR, NEEDS)), SURE))),
        ("NOT predicate=needs AND confidence>0.5", Conjunction((Negation(NEEDS), SURE))),
        ("not (not depth<=1)", Negation(Negation(NEAR))),
        ("((predicate = needs))", NEEDS),
        ("label != 'it\\'s \"so\"'", Comparison("label", "!=", "it's \"so\"")),
        ('label = "a\nb"', Comparison("label", "=", "a\nb")),
        ('label = "FROM"', Comparison("label", "=", "FROM")),
        ("label = 2024", Comparison("label", "=", "2024")),
        ("label = python-3.11", Comparison("label", "=", "python-3.11")),
        ("label = o'brien", Comparison("label", "=", "o'brien")),
        ("label = c++", Comparison("label", "=", "c++")),
        ("direction = IN", Comparison("direction", "=", "IN")),
        ("episodes >= 2", Comparison("episodes", ">=", 2.0)),
    ],
)  # fmt: skip
def test_conditions_are_read(text, condition):
    assert where(text) == condition


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, 1, "a question begins with FIND, not with the end"),
        ("SELECT x", 1, 1, "not with 'SELECT'"),
        ("FIND", 1, 5, "concept, fact or path is expected after FIND, not the end"),
        ("FIND things", 1, 6, "not 'things'"),
        ("FIND concept agent", 1, 14, (
            "WHERE, FROM, BY, DEPTH, LIMIT, or the end is expected, not 'agent'"
            )),
        ("FIND concept FROM long memory", 1, 24, "a name of several words stands in quotes"),
        ("FIND concept FROM", 1, 18, "a name is expected, not the end"),
        ("FIND concept FROM a, ", 1, 22, "a name is expected"),
        ("FIND concept FROM limit LIMIT 2", 1, 19, "in quotes it would be one"),
        ("FIND concept FROM ''", 1, 19, "at least one letter"),
        ('FIND concept FROM "a', 1, 19, "never closed"),
        ("FIND concept FROM a FROM b", 1, 21, "FROM stands here a second time"),
        ("FIND concept\nWHERE predicate > needs", 2, 17, "one of = != is expected after predicate"),
        ((
            "FIND concept\nWHERE\n  confidence > high"
            ), 3, 16, "a number is expected after confidence >"),
        ("FIND concept WHERE confidence > \"0.5\"", 1, 33, "a number is expected"),
        ("FIND concept WHERE color = red", 1, 20, "a field (label, predicate"),
        ("FIND concept WHERE direction = up", 1, 32, "the direction is in or out"),
        ("FIND concept WHERE label = ! a", 1, 28, "the sign '!' has no meaning here"),
        ("FIND concept WHERE (depth = 1", 1, 30, "AND, OR or ) is expected, not the end"),
        ("FIND concept WHERE depth = 1 )", 1, 30, "is expected, not ')'"),
        ("FIND concept WHERE depth = 1 AND", 1, 33, "a field"),
        ("FIND concept FROM a BY", 1, 23, (
            "paths, breadth or activation is expected after BY, not the end"
            )),
        ("FIND concept FROM a BY luck", 1, 24, (
            "paths, breadth or activation is expected after BY, not 'luck'"
            )),
        ("FIND concept FROM a BY 'paths'", 1, 24, "is expected after BY"),
        ("FIND concept FROM a BY paths BY paths", 1, 30, "BY stands here a second time"),
        ("FIND concept FROM a WHERE depth = 1 BY FROM", 1, 40, "is expected after BY"),
        ("FIND concept FROM by", 1, 19, "in quotes it would be one"),
        ("FIND path BY Activation\nFROM a", 1, 14, "finds concepts and facts, no paths"),
        ("FIND path FROM a\n BY activation LIMIT 3", 2, 5, "finds concepts and facts, no paths"),
        ((
            "FIND fact WHERE predicate = is BY breadth"
            ), 1, 35, (
            "BY breadth goes on from names, and the question has no FROM"
            )),
        ("FIND fact BY activation WHERE predicate = is", 1, 14, "BY activation goes on from names"),
        ("FIND concept DEPTH 5 BY breadth FROM a", 1, 20, "DEPTH is a number from 1 to 4"),
        ("FIND concept FROM a BY activation DEPTH 5", 1, 41, "DEPTH is a number from 1 to 4"),
        ("FIND concept DEPTH 5", 1, 20, "DEPTH is a number from 1 to 4"),
        ("FIND concept DEPTH 0", 1, 20, "DEPTH is a number from 1 to 4"),
        ("FIND concept DEPTH 1.5", 1, 20, "a whole number"),
        ("FIND concept LIMIT -1", 1, 20, "a whole number"),
        ("FIND concept LIMIT " + "9" * 5000, 1, 20, "LIMIT is a number from 1 to 50"),
        ("FIND concept LIMIT 51", 1, 20, "LIMIT is a number from 1 to 50"),
        ("FIND concept FROM " + ",".join("abcdefghijklmnopqrstu"), 1, 59, "at most 20 names"),
        ("FIND concept WHERE " + "NOT " * 33 + "depth = 1", 1, 148, "inside each other"),
        ("FIND concept WHERE " + "(" * 5000, 1, 52, "inside each other"),
        ("x" * 8001, 1, 1, "at most 8000 characters"),
    ],
)  # fmt: skip
def test_an_error_says_where_and_what(text, line, column, words):
    with pytest.raises(QueryError) as caught:
        parse(text)
    error = caught.value
    assert words in error.message
    assert (error.line, error.column) == (line, column)
    assert error.message.startswith(f"line {line}, column {column}: ")
    assert error.cure
    assert len(error.message) < 250


def test_leading_zeros_are_no_other_number():
    assert parse("FIND fact LIMIT " + "0" * 5000 + "7").limit == 7


def test_conditions_as_deep_as_allowed_are_read():
    assert where("NOT " * 32 + "depth <= 1")
    assert where("(" * 32 + "depth <= 1" + ")" * 32) == NEAR


PIECES = st.sampled_from(
    [
        "FIND",
        "concept",
        "fact",
        "path",
        "WHERE",
        "FROM",
        "DEPTH",
        "LIMIT",
        "BY",
        "activation",
        "breadth",
        "AND",
        "OR",
        "NOT",
        "(",
        ")",
        ",",
        "=",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "!",
        "predicate",
        "confidence",
        "label",
        "direction",
        "needs",
        "in",
        "0.5",
        "2",
        ".",
        "1.2.3",
        "'a'",
        '"b',
        'c"',
        "'",
        '"',
        "\\",
        "ü",
        "🙂",
        "\x00",
    ]
)
WHOLE = (
    "FIND fact WHERE NOT (label = 'a' OR depth < 2) AND score >= .1 FROM \"x y\", z DEPTH 3 LIMIT 5"
    " BY activation"
)


def reads_or_refuses(text):
    found = outcome(text)
    if isinstance(found, QueryError):
        lines = text.split("\n")
        assert 1 <= found.line <= len(lines)
        assert 1 <= found.column <= len(lines[found.line - 1]) + 1
    else:
        assert 1 <= found.depth <= found.by.most
        assert 1 <= found.limit <= 50
    return found


def outcome(text):
    try:
        return parse(text)
    except QueryError as error:
        return error


@given(st.text(max_size=200) | st.lists(PIECES, max_size=40).map(" ".join))
@example("FIND fact FROM \udcff")
def test_any_text_is_read_or_refused_at_a_place_in_it(text):
    alone = reads_or_refuses(text)
    assert isinstance(alone, QueryError) or text.lstrip()[:4].upper() == "FIND"
    assert reads_or_refuses(f"FIND fact WHERE {text}") is not None


@given(st.integers(0, len(WHOLE)), st.integers(0, 9), st.text(max_size=3))
def test_a_damaged_question_is_read_or_refused_at_a_place_in_it(at, lost, new):
    damaged = WHOLE[:at] + new + WHOLE[at + lost :]
    found = reads_or_refuses(damaged)
    assert damaged != WHOLE or not isinstance(found, QueryError)


def test_names_are_compared_in_normal_form():
    found = normalise(
        where("predicate = 'Is A' AND label = 'Long Term_Memory' AND direction = OUT")
    )
    parts = [comparison.value for comparison in found.condition.conditions]
    assert parts == ["is_a", "long-term-memory", "out"]
    assert found.needs_labels


def test_a_name_that_is_none_is_refused():
    with pytest.raises(GraphError, match="says nothing"):
        normalise(where("predicate = '_'"))


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("predicate = needs", "needs"),
        ("depth = 1 AND (predicate = needs AND depth = 1)", "needs"),
        ("predicate != needs", None),
        ("NOT predicate = needs", None),
        ("predicate = needs OR predicate = uses", None),
    ],
)
def test_a_predicate_is_demanded_only_where_nothing_else_can_hold(text, predicate):
    assert normalise(where(text)).predicate == predicate


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("depth = 1", True), ("depth != 1", False), ("depth < 1", False), ("depth <= 1", True),
        ("confidence > 0.5", False), ("confidence >= 0.5", True), ("label = b", True),
        ("label = bee", True), ("label != bee", False), ("label != c", True), ("predicate = Needs", True),
        ("NOT label = b", False), ("label = c OR depth = 1", True), ("label = b AND depth = 2", False),
    ],
)  # fmt: skip
def test_a_condition_holds_or_not(text, holds):
    path = {"depth": 1, "confidence": 0.5, "label": frozenset(("b", "bee")), "predicate": "needs"}
    assert normalise(where(text)).holds(path.__getitem__) is holds
