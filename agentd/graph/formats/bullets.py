"""Facts as lines for a prompt: what models read best, in fewer tokens than one bullet for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentd.domain.concept import ConceptHash, Edge

_SURE = 0.995  # from here on a confidence is 1.00 in two digits, and goes without saying


def bullets(edges: Iterable[Edge], labels: Mapping[ConceptHash, str]) -> str:
    """One line `- subject predicate object (0.98)` for each fact, in their order."""
    return "".join(f"- {_line(labels[one.subject])} {_said(one, labels)}\n" for one in edges)


def grouped(edges: Iterable[Edge], labels: Mapping[ConceptHash, str]) -> str:
    """The same facts with one line for each subject, the subjects and the facts of each in the order
    they come in: `- agent needs memory (0.98); uses python`. Of the confidence two digits are said,
    and nothing where they are 1.00.
    """
    lines: dict[ConceptHash, list[str]] = {}
    for edge in edges:
        sure = edge.confidence >= _SURE
        lines.setdefault(edge.subject, []).append(_said(edge, labels, is_sure=sure))
    return "".join(f"- {_line(labels[one])} {'; '.join(said)}\n" for one, said in lines.items())


def _said(edge: Edge, labels: Mapping[ConceptHash, str], *, is_sure: bool = False) -> str:
    said = f"{_line(edge.predicate)} {_line(labels[edge.object])}"
    return said if is_sure else f"{said} ({edge.confidence:.2f})"


def _line(text: str) -> str:
    """Normal labels have no line breaks; one that came in by another way must not begin a line."""
    return " ".join(text.split())
