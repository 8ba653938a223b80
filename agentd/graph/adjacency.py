"""What is around concepts: their facts as steps, asked for one batch at a time."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.concept import Around, ConceptHash, Edge
from agentd.graph.path import Limits, Step


@dataclass(frozen=True, slots=True)
class View:
    """What of the graph is seen: the facts of these audiences (None: of all), as sure as they are at
    `now` (None: as they were when they were said).
    """

    scopes: Sequence[str] | None = None
    now: datetime | None = None


WHOLE = View()


class Adjacency:
    """The facts around concepts, each concept asked for once.

    `preferred` are the predicates that a question is about: of their facts another `fanout` are taken
    per concept, so that a concept with many others does not hide them.
    """

    def __init__(
        self,
        limits: Limits,
        view: View = WHOLE,
        *,
        preferred: Collection[str] = (),
    ) -> None:
        self._limits = limits
        self._view = view
        self._preferred = frozenset(preferred)
        self._steps: dict[bytes, tuple[Step, ...]] = {}

    def load(self, concepts: Iterable[ConceptHash]) -> Generator[Around, Sequence[Edge], None]:
        """Ask for the facts about those that were not asked for yet: once, or not at all."""
        wanted = {c.value: c for c in concepts if c.value not in self._steps}
        if not wanted:
            return
        view, about = self._view, sorted(self._preferred)
        edges = yield Around([*wanted.values()], view.scopes, view.now, self._limits.fanout, about)
        for concept, steps in _around(wanted, edges, self._limits.least).items():
            self._steps[concept] = self._chosen(steps)

    def steps(self, concept: ConceptHash) -> tuple[Step, ...]:
        """The steps from a concept that was loaded. A fact about itself is one step."""
        return self._steps[concept.value]

    def _chosen(self, steps: list[Step]) -> tuple[Step, ...]:
        most = self._limits.fanout
        if len(steps) <= most:
            return tuple(steps)
        steps.sort(key=_surest)
        about = [step for step in steps if step.edge.predicate in self._preferred][:most]
        return tuple(
            sorted({step.key: step for step in (*steps[:most], *about)}.values(), key=_surest)
        )


def _around(
    concepts: Iterable[bytes], edges: Iterable[Edge], least: float
) -> dict[bytes, list[Step]]:
    """The steps from each concept along what is sure enough."""
    found: dict[bytes, list[Step]] = {concept: [] for concept in concepts}
    for edge in edges:
        if edge.confidence < least:
            continue
        subject, target = edge.subject.value, edge.object.value
        if (out := found.get(subject)) is not None:
            out.append(Step(edge, True))
        if target != subject and (back := found.get(target)) is not None:
            back.append(Step(edge, False))
    return found


def _surest(step: Step) -> tuple[float, float, bytes]:
    edge = step.edge
    return -edge.confidence, -edge.newest.timestamp(), edge.fact.value
