"""Statements as people write them, made into `.0`."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.errors import GraphError
from agentd.zero import parse
from agentd.zero.compiler import compile as compiled
from agentd.zero.decompiler import decompile
from agentd.zero.statements import ContextMeta, SemanticTuple, read_statements

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)


def test_lines_are_statements():
    found = read_statements("# a list\n\nKlara | works at | Bosch\nBosch|city|Jena| 0.5\n", NOW)
    assert found.tuples == (
        SemanticTuple("Klara", "works at", "Bosch"),
        SemanticTuple("Bosch", "city", "Jena", 0.5),
    )
    assert found.context == ContextMeta(NOW, "file", "main")


def test_json_is_the_same_with_more():
    rows = [["Klara", "works at", "Bosch"], {"subject": "a", "predicate": "b", "object": "c"}]
    assert [one.predicate for one in read_statements(json.dumps(rows), NOW).tuples] == [
        "works at",
        "b",
    ]
    whole = {
        "utterance": "so it is",
        "context": {"event_time": "2026-01-02T03:04:05Z", "source": "me"},
        "tuples": [
            {"subject": "a", "predicate": "b", "object": "c", "denied": True, "refs": ["x"]}
        ],
    }
    found = read_statements(json.dumps(whole), NOW)
    assert found.utterance == "so it is"
    assert (found.context.source, found.context.event_time.year) == ("me", 2026)
    assert found.tuples == (SemanticTuple("a", "b", "c", denied=True, refs=("x",)),)


def test_what_was_compiled_is_read_back():
    made = compiled(read_statements("Klara | works at | Bosch", NOW))
    assert decompile(parse(made.graph_text)).record == made.record


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a | b", "line 1.*no statement"),
        ("a | b | c\na | b | c | d", "line 2.*no confidence"),
        ("a | | c", "no statement"),
        ("[1]", "is no statement"),
        ("{", "no JSON"),
        ('{"a": 1}', "no list"),
        ('[["a", "b", 3]]', "is no statement"),
        ("[" * 100_000, "no JSON"),
        (f'[["a", "b", "c", {10**400}]]', "is no statement"),
        ('[{"subject": "a", "predicate": "b", "object": "c", "denied": "no"}]', "no statement"),
        ('[{"subject": "a", "predicate": "b", "object": "c", "refs": "xy"}]', "no statement"),
        ('{"tuples": [], "context": {"when": 1}}', "context"),
        ('{"tuples": [], "utterance": 1}', "utterance"),
    ],
)
def test_anything_else_is_refused_with_its_place(text, why):
    with pytest.raises(GraphError, match=why):
        read_statements(text, NOW)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    found = outcome(text)
    if isinstance(found, GraphError):
        assert found.cure
    elif text.lstrip()[:1] not in {"[", "{"}:
        said = [line for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]
        assert len(found.tuples) == len(said)


def outcome(text):
    try:
        return read_statements(text, NOW)
    except GraphError as error:
        return error
