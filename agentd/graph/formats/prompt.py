"""Facts as lines for a prompt: one for each subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentd.domain.concept import ConceptHash, Edge

_SURE = 0.995  # from here on a confidence is 1.00 in two digits, and goes without saying


def grouped(edges: Iterable[Edge], labels: Mapping[ConceptHash, str]) -> str:
    """One line for each subject, the subjects and the facts of each in the order they come in:
    `- agent needs memory (0.98); uses python`. Of the confidence two digits are said, and nothing where
    they are 1.00.
    """
    lines: dict[ConceptHash, list[str]] = {}
    for edge in edges:
        lines.setdefault(edge.subject, []).append(_said(edge, labels))
    return "".join(f"- {_line(labels[one])} {'; '.join(said)}\n" for one, said in lines.items())


def _said(edge: Edge, labels: Mapping[ConceptHash, str]) -> str:
    said = f"{_line(edge.predicate)} {_line(labels[edge.object])}"
    return said if edge.confidence >= _SURE else f"{said} ({edge.confidence:.2f})"


def _line(text: str) -> str:
    """Normal labels have no line breaks; one that came in by another way must not begin a line."""
    return " ".join(text.split())
