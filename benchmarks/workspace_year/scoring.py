"""Whether ranked hits hold the lines that answer a question. Knows no search engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from msgspec import Struct

from benchmarks.workspace_year.reading import Asked, Place

Search = Callable[[Asked], Sequence["Span"]]


class Span(Struct, frozen=True):
    """A hit: some lines of one file, both ends included, what it costs, and how sure it is."""

    path: str
    start_line: int
    end_line: int
    tokens: int
    score: float = 1.0

    def holds(self, place: Place) -> bool:
        """Whether the line is among these."""
        return self.path == place.path and self.start_line <= place.line <= self.end_line


class Marks(Struct, frozen=True):
    """How an engine did on some questions; shares from 0 to 1. None where no question asks for
    it.
    """

    questions: int
    hit1: float  # as many hits as lines are needed
    hit3: float
    recall: float  # of gold lines within 1,000 tokens
    newest: float | None  # the current line stands above every stale one


def answered(asked: Asked, spans: Sequence[Span]) -> bool:
    """Whether these hold one gold line, or all of them where all are needed."""
    found = [any(span.holds(place) for span in spans) for place in asked.gold]
    return all(found) if asked.need == "all" else any(found)


def recall_within(asked: Asked, spans: Sequence[Span], budget: int = 1000) -> float:
    """The share of what is needed that lies in the first hits that fit the budget together."""
    inside: list[Span] = []
    for span in spans:
        budget -= span.tokens
        if budget < 0:
            break
        inside.append(span)
    found = [any(span.holds(place) for span in inside) for place in asked.gold]
    return fmean(found) if asked.need == "all" else float(any(found))


def newest_above(asked: Asked, spans: Sequence[Span]) -> bool:
    """Whether a current line is found, above every stale one."""
    current = min(_rank(place, spans) for place in asked.gold)
    return current < min(len(spans), *(_rank(place, spans) for place in asked.stale))


def mark(asked: Sequence[Asked], answers: Sequence[Sequence[Span]]) -> Marks:
    """The marks for questions that have an answer; `answers` are ranked hits, in the same order."""
    pairs = list(zip(asked, answers, strict=True))
    changed = [newest_above(one, spans) for one, spans in pairs if one.stale]
    return Marks(
        questions=len(pairs),
        hit1=fmean(answered(one, spans[: _needed(one)]) for one, spans in pairs),
        hit3=fmean(answered(one, spans[:3]) for one, spans in pairs),
        recall=fmean(recall_within(one, spans) for one, spans in pairs),
        newest=fmean(changed) if changed else None,
    )


def _needed(asked: Asked) -> int:
    return len(asked.gold) if asked.need == "all" else 1


def _rank(place: Place, spans: Sequence[Span]) -> int:
    return next((n for n, span in enumerate(spans) if span.holds(place)), len(spans))
