"""Texts that stand as they were written, read without running them.

A record is written in one way only. So a text that is to the letter what its words are written as
needs no further proof: every node, every hash and the proof in it are those that running it would give.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agentd.domain.belief import check
from agentd.domain.concept import Concept, Context, Record, Relation
from agentd.errors import GraphError
from agentd.graph.decompiler import Decompiled
from agentd.graph.emitter import emit
from agentd.graph.hashing import concept_hash, context_hash, episode_hash, fact_hash, utc

_BEGINS = "Graph "

Fields = Mapping[str, Any]


def read_verbatim(text: str) -> Decompiled | None:
    """What a text says that `emit` would write to the letter, as `decompile` tells it. None for every
    other text, damaged or not: parse and decompile that.
    """
    if not text.startswith(_BEGINS):
        return None
    try:
        said = _said(json.loads(text[len(_BEGINS) :]))
        check(said.record)
        is_same = emit(said.record, utterance=said.utterance, metadata=said.metadata) == text
    except (GraphError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None  # of another shape
    except RecursionError:  # nested deeper than any record
        return None
    return said if is_same else None


def _said(graph: Fields) -> Decompiled:
    nodes = {node["id"]: node for node in graph["nodes"]}
    concepts = [_concept(row) for row in _rows(nodes, "concept")]
    contexts = [_context(row) for row in _rows(nodes, "context")]
    relations = [
        _relation(row, _ends(nodes, at), concepts, contexts)
        for at, row in enumerate(_rows(nodes, "relation"))
    ]
    record = Record(tuple(concepts), tuple(contexts), tuple(relations))
    beside = graph.get("metadata", {})
    metadata = {_text(k): _text(v) for k, v in beside.get("metadata", {}).items()}
    return Decompiled(record, _text(beside.get("utterance", "")), metadata)


def _rows(nodes: Mapping[str, Fields], kind: str) -> list[Fields]:
    rows: list[Fields] = []
    while (node := nodes.get(f"{kind}_data_{len(rows)}")) is not None:
        rows.append(node["value"])
    return rows


def _ends(nodes: Mapping[str, Fields], at: int) -> list[int]:
    """The numbers of its subject, object and context."""
    steps = [nodes[f"relation_step_{at}_{step}"]["inputs"][1] for step in (1, 2, 3)]
    return [int(name.rpartition("_")[2]) for name in steps]


def _concept(row: Fields) -> Concept:
    label = _text(row["label"])
    if not label:
        raise GraphError("a label says nothing")
    return Concept(
        concept_hash(label),
        label,
        float(row["confidence"]),
        _time(row["created_at"]),
        _time(row["updated_at"]),
        tuple(map(_text, row["aliases"])),
    )


def _context(row: Fields) -> Context:
    at, source, scope = _time(row["event_time"]), _text(row["source"]), _text(row["scope"])
    names = source, scope, _text(row.get("agent_id", "")), _text(row.get("session_id", ""))
    return Context(context_hash(at, *names), at, *names)


def _relation(
    row: Fields, ends: Sequence[int], concepts: Sequence[Concept], contexts: Sequence[Context]
) -> Relation:
    subject, object_, context = concepts[ends[0]], concepts[ends[1]], contexts[ends[2]]
    predicate, denied = _text(row["predicate"]), row.get("denied", False)
    if not isinstance(denied, bool):
        raise TypeError
    fact = fact_hash(subject.label, predicate, object_.label)
    return Relation(
        fact,
        episode_hash(fact, context.hash),
        context.hash,
        subject.hash,
        predicate,
        object_.hash,
        float(row["confidence"]),
        _time(row["created_at"]),
        denied,
        tuple(map(_text, row.get("source_refs", ()))),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _time(value: object) -> datetime:
    return utc(datetime.fromisoformat(_text(value)))
