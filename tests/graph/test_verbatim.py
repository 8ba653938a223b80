"""Texts that stand as they were written: the same is read of them without running them, or nothing."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.domain.belief import check
from agentd.domain.concept import Concept, Record
from agentd.errors import GraphError
from agentd.graph import compiler
from agentd.graph.decompiler import Decompiled, decompile
from agentd.graph.emitter import emit
from agentd.graph.hashing import concept_hash
from agentd.graph.tuples import CompilerInput
from agentd.graph.verbatim import read_verbatim
from agentd.graph.zero import parse
from tests.graph.test_compiler import MAIN, TUPLES, records

TEXT = compiler.compile(CompilerInput(TUPLES, MAIN, "said")).graph_text


def read(text: str) -> Decompiled | None:
    """What running the text gives, and nothing if it is refused."""
    try:
        said = decompile(parse(text))
        check(said.record)
    except GraphError:
        return None
    return said


@settings(max_examples=50, deadline=None)
@given(records(), st.text(max_size=5), st.dictionaries(st.text(max_size=3), st.text(max_size=3)))
def test_what_was_written_is_read_as_by_running_it(record, utterance, metadata) -> None:
    try:
        text = emit(record, utterance=utterance, metadata=metadata)
    except GraphError:
        return
    assert (said := read_verbatim(text)) == read(text)
    assert said is None or said.record == record


def test_most_of_what_is_written_is_read_so() -> None:
    assert (said := read_verbatim(TEXT)) is not None
    assert said == read(TEXT)
    empty = compiler.compile(CompilerInput((), MAIN)).graph_text
    assert (said := read_verbatim(empty)) is not None
    assert said == read(empty)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_changed_text_is_left_to_running_it_or_says_the_same(data: st.DataObject) -> None:
    pieces = re.findall(r'"[^"]*"|[\w.]+|\s+|.', TEXT)
    at = data.draw(st.integers(0, len(pieces) - 1))
    new = st.sampled_from([*pieces, "", "{", "]", "1e999", "\u2028", "null", "true", "-1", "7"])
    pieces[at] = data.draw(new)
    changed = "".join(pieces)
    assert (said := read_verbatim(changed)) is None or said == read(changed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"confidence": 0.97', '"confidence": 0.98'),
        ('"aliases": []', '"aliases": [1]'),
        ('"aliases": []', '"aliases": "x"'),
        ("}\n", "}\n\n"),
        ("Graph {", "Graph  {"),
        ('"version": 1', '"version": 1, "version": 1'),
        (TEXT, "Graph " + "[" * 100_000),
        (TEXT, "Graph 1"),
        (TEXT, "Graph {}"),
        (TEXT, 'Graph {"nodes": [1]}'),
        (TEXT, "# a\n" + TEXT),
        (TEXT, ""),
        ("concept_hash_0", "concept_hash_-1"),
        ("concept_hash_0", "concept_hash_9"),
        ('"Hash"', '"Timestamp"'),
        ("utterance", "utterances"),
    ],
)
def test_any_other_text_is_left_to_running_it(old: str, new: str) -> None:
    assert old in TEXT
    assert read_verbatim(TEXT.replace(old, new, 1)) is None


@pytest.mark.parametrize("wrong", [{"confidence": 2.0}, {"label": ""}])
def test_what_would_be_refused_is_not_read_although_it_is_written_so(wrong) -> None:
    record = compiler.compile(CompilerInput(TUPLES[:1], MAIN)).record
    first, other = record.concepts
    if "label" in wrong:
        first = Concept(concept_hash(""), "", 1.0, MAIN.event_time, MAIN.event_time)
        record = Record((first,))
    else:
        record = replace(record, concepts=(replace(first, **wrong), other))
    text = emit(record)
    assert read_verbatim(text) is None
    assert read(text) is None
