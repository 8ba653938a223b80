"""Converts answers and pictures to plain data for clients, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from agentd.core.graph import FactHash
from agentd.memory.graph.answer import AnswerRow, AnswerTriple, GraphAnswer, Hop, Unknown
from agentd.memory.graph.paths import TraversalMode
from agentd.memory.graph.picture import SEMANTIC, Arrow, FactHistory, Picture, PictureNode
from agentd.memory.graph.query import QuestionKind

_ARROW = ("source", "target", "predicate", "confidence")


def answer_json(answer: GraphAnswer) -> dict[str, Any]:
    """Return `{kind, by, rows, reason, unknown}`; each row is `{start, label, way, depth,
    confidence, score, path}`, where the path has the facts from `start` to `label` with their
    directions.
    """
    return {
        "kind": str(answer.kind),
        "by": str(answer.by),
        "rows": [
            {
                "start": row.start,
                "label": row.label,
                "way": row.way,
                "depth": row.depth,
                "confidence": row.confidence,
                "score": row.score,
                "path": [_hop_json(hop) for hop in row.path],
            }
            for row in answer.rows
        ],
        "reason": answer.reason,
        "unknown": [{"name": one.name, "nearest": list(one.nearest)} for one in answer.unknown],
    }


def answer_of(data: Mapping[str, Any]) -> GraphAnswer:
    """Rebuild the answer from the data of `answer_json`."""
    rows = tuple(
        AnswerRow(
            row["start"],
            row["label"],
            tuple(map(_hop, row["path"])),
            row["confidence"],
            row["score"],
        )
        for row in data["rows"]
    )
    unknown = tuple(Unknown(one["name"], tuple(one["nearest"])) for one in data["unknown"])
    return GraphAnswer(
        QuestionKind(data["kind"]), rows, data["reason"], unknown, TraversalMode(data["by"])
    )


def picture_json(picture: Picture) -> dict[str, Any]:
    """Return `{title, by, nodes: [{label, depth, score}], arrows: [{source, target, predicate,
    confidence, history}], hidden_nodes, hidden_arrows}`; arrows refer to nodes by index, and their
    history is `{said, denied, promoted, first, last, memory}` or None.
    """
    return {
        "title": picture.title,
        "by": str(picture.by),
        "nodes": [asdict(node) for node in picture.nodes],
        "arrows": [_arrow_json(arrow) for arrow in picture.arrows],
        "hidden_nodes": picture.hidden_nodes,
        "hidden_arrows": picture.hidden_arrows,
    }


def picture_of(data: Mapping[str, Any]) -> Picture:
    """Rebuild the picture from the data of `picture_json`."""
    return Picture(
        data["title"],
        tuple(PictureNode(**node) for node in data["nodes"]),
        tuple(map(_arrow, data["arrows"])),
        data["hidden_nodes"],
        data["hidden_arrows"],
        TraversalMode(data["by"]),
    )


def _arrow_json(arrow: Arrow) -> dict[str, Any]:
    told = {name: getattr(arrow, name) for name in _ARROW}
    if (history := arrow.history) is None:
        return {**told, "history": None}
    return {
        **told,
        "history": {
            "said": history.said,
            "denied": history.denied,
            "promoted": history.promoted,
            "first": history.first.isoformat(),
            "last": history.last.isoformat(),
            "memory": history.memory,
        },
    }


def _arrow(data: Mapping[str, Any]) -> Arrow:
    told = data["history"]
    history = told and FactHistory(
        told["said"],
        told["denied"],
        told["promoted"],
        datetime.fromisoformat(told["first"]),
        datetime.fromisoformat(told["last"]),
        told["memory"] == SEMANTIC,
    )
    return Arrow(**{name: data[name] for name in _ARROW}, history=history)


def _hop_json(hop: Hop) -> dict[str, Any]:
    triple = hop.triple
    return {
        "fact": triple.fact.hex,
        "subject": triple.subject,
        "predicate": triple.predicate,
        "object": triple.object,
        "confidence": triple.confidence,
        "episodes": triple.episodes,
        "newest": triple.newest.isoformat(),
        "direction": hop.direction,
    }


def _hop(data: Mapping[str, Any]) -> Hop:
    triple = AnswerTriple(
        FactHash.from_hex(data["fact"]),
        data["subject"],
        data["predicate"],
        data["object"],
        data["confidence"],
        data["episodes"],
        datetime.fromisoformat(data["newest"]),
    )
    return Hop(triple, data["direction"])
