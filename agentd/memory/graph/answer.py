"""Answers of the graph: rows with their facts in words, for people, models and programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple, assert_never

from msgspec import Struct

from agentd.core.graph import FactHash
from agentd.memory.graph.paths import TraversalMode
from agentd.memory.graph.query import QuestionKind
from agentd.zero.naming import MINUS

Table = tuple[tuple[str, ...], ...]  # the first row has the headings

_JOINERS: Final = "\u200c\u200d"
_HEADS: Final[Mapping[QuestionKind, tuple[str, ...]]] = {
    QuestionKind.CONCEPT: ("concept", "score", "confidence", "depth", "way"),
    QuestionKind.FACT: (
        "subject",
        "predicate",
        "object",
        "score",
        "confidence",
        "episodes",
        "newest",
    ),
    QuestionKind.PATH: ("way", "score", "confidence", "depth"),
}


class AnswerTriple(NamedTuple):
    """A fact with its labels."""

    # NamedTuples, because an answer makes hundreds.

    fact: FactHash
    subject: str
    predicate: str
    object: str
    confidence: float
    episodes: int
    newest: datetime

    def __str__(self) -> str:
        return one_line(f"{self.subject} {self.predicate.replace('_', ' ')} {self.object}")


class Hop(NamedTuple):
    """A fact of a path, walked from its subject to its object (`out`) or back (`in`)."""

    triple: AnswerTriple
    direction: str


class AnswerRow(NamedTuple):
    """One found item: a concept, a fact (the last of its path) or a path.

    `start` and `label` are where the path begins and ends. `confidence` is the product over the
    path, for a fact its own; `score` depends on the way of recall. Both are in [0, 1].
    """

    start: str
    label: str
    path: tuple[Hop, ...]
    confidence: float
    score: float

    @property
    def depth(self) -> int:
        """The number of facts in the path."""
        return len(self.path)

    @property
    def fact(self) -> AnswerTriple:
        """The last fact of the path."""
        return self.path[-1].triple

    @property
    def way(self) -> str:
        """The path in one line: `agent -needs-> memory <-uses- tool`."""
        words = [self.start]
        for hop in self.path:
            triple = hop.triple
            if hop.direction == "out":
                words += [f"-{triple.predicate}->", triple.object]
            else:
                words += [f"<-{triple.predicate}-", triple.subject]
        return one_line(" ".join(words))


class Unknown(Struct, frozen=True):
    """A name that is not in the graph, and labels similar to it."""

    name: str
    nearest: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = f"nothing is known about {one_line(self.name)!r}"
        if self.nearest:
            words += f"; did you mean {' or '.join(map(one_line, self.nearest))}?"
        return words


class GraphAnswer(Struct, frozen=True):
    """The rows, best first. `reason` says why there are none. `unknown` are names in the question
    that are not in the graph, also if others gave rows. `by` is the way of recall, which defines
    the scores.
    """

    kind: QuestionKind
    rows: tuple[AnswerRow, ...] = ()
    reason: str = ""
    unknown: tuple[Unknown, ...] = ()
    by: TraversalMode = TraversalMode.PATHS

    @property
    def triples(self) -> tuple[AnswerTriple, ...]:
        """The facts of all rows, each once, in the order of the rows: for facts the last one of
        each path, else whole paths.
        """
        hops = (
            hop
            for row in self.rows
            for hop in (row.path[-1:] if self.kind is QuestionKind.FACT else row.path)
        )
        return tuple({hop.triple.fact: hop.triple for hop in hops}.values())

    @property
    def proposed(self) -> frozenset[str]:
        """The labels that `as_prompt` proposes for unknown names."""
        return frozenset(name for one in self.unknown for name in one.nearest if not self.rows)

    def as_prompt(self) -> str:
        """Return one line `- subject predicate object` for each fact, for a model; without rows the
        reason.
        """
        return "\n".join(f"- {triple}" for triple in self.triples) or self.reason

    def as_table(self) -> Table:
        """Return the headings, and one line of cells for each row."""
        return (_HEADS[self.kind], *(_cells(self.kind, row) for row in self.rows))


def one_line(text: str) -> str:
    """Return the text with each run of white space and control characters as one blank. Joiners
    stay, because emoji, Persian and Indic scripts need them. The minus sign in labels becomes a
    hyphen.
    """
    shown = (c if c.isprintable() or c in _JOINERS else " " for c in text.replace(MINUS, "-"))
    return " ".join("".join(shown).split())


def _cells(kind: QuestionKind, row: AnswerRow) -> tuple[str, ...]:
    told = (_share(row.score), _share(row.confidence), str(row.depth))
    match kind:
        case QuestionKind.CONCEPT:
            return (one_line(row.label), *told, row.way)
        case QuestionKind.PATH:
            return (row.way, *told)
        case QuestionKind.FACT:
            fact = row.fact
            names = map(one_line, (fact.subject, fact.predicate, fact.object))
            said = (str(fact.episodes), f"{fact.newest:%Y-%m-%d}")
            return (*names, _share(row.score), _share(fact.confidence), *said)
    assert_never(kind)


def _share(value: float) -> str:
    return f"{value:.2f}"
