"""What is around concepts: their facts as steps, read from the store one batch at a time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.concept import ConceptHash, Edge, FactHash
from agentd.graph.path import Limits, Step
from agentd.ports import GraphStore


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

    `preferred` are facts that a question is about: of these another `fanout` are taken per concept,
    so that a concept with many others does not hide them.
    """

    def __init__(
        self,
        store: GraphStore,
        limits: Limits,
        view: View = WHOLE,
        *,
        preferred: Callable[[Edge], bool] | None = None,
    ) -> None:
        self._store = store
        self._limits = limits
        self._view = view
        self._preferred = preferred
        self._steps: dict[ConceptHash, tuple[Step, ...]] = {}

    async def load(self, concepts: Iterable[ConceptHash]) -> None:
        """Read the facts about those that were not read yet: one call of the store, or none."""
        wanted = [c for c in dict.fromkeys(concepts) if c not in self._steps]
        if not wanted:
            return
        view = self._view
        edges = await self._store.edges(wanted, scopes=view.scopes, now=view.now)
        self._steps.update(_around(wanted, edges, self._chosen))

    def steps(self, concept: ConceptHash) -> tuple[Step, ...]:
        """The steps from a concept that was loaded, the surest first. A fact about itself is one step."""
        return self._steps[concept]

    def _chosen(self, steps: list[Step]) -> tuple[Step, ...]:
        most, least = self._limits.fanout, self._limits.least
        sure = [step for step in steps if step.edge.confidence >= least]
        if len(sure) <= most:
            return tuple(sorted(sure, key=_surest))
        taken = heapq.nsmallest(most, sure, key=_surest)
        if self._preferred is not None:
            about = [step for step in sure if self._preferred(step.edge)]
            taken += heapq.nsmallest(most, about, key=_surest)
        return tuple(sorted(dict.fromkeys(taken), key=_surest))


def _around(
    concepts: Sequence[ConceptHash],
    edges: Iterable[Edge],
    choose: Callable[[list[Step]], tuple[Step, ...]],
) -> Mapping[ConceptHash, tuple[Step, ...]]:
    found: dict[ConceptHash, list[Step]] = {concept: [] for concept in concepts}
    for edge in edges:
        if (out := found.get(edge.subject)) is not None:
            out.append(Step(edge, forward=True))
        if edge.object != edge.subject and (back := found.get(edge.object)) is not None:
            back.append(Step(edge, forward=False))
    return {concept: choose(steps) for concept, steps in found.items()}


def _surest(step: Step) -> tuple[float, FactHash]:
    return -step.edge.confidence, step.edge.fact
