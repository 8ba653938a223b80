"""Spreading activation: what comes to mind with some concepts, after Collins and Loftus (1975)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentd.domain.concept import ConceptHash, FactHash
from agentd.graph.adjacency import WHOLE, Adjacency, View
from agentd.graph.path import LIMITS, Limits
from agentd.ports import GraphStore

DECAY = 0.5  # of what a fact passes on
THRESHOLD = 0.05  # activation from which on a concept passes it on
ROUNDS = 4


async def spread(
    store: GraphStore,
    seeds: Sequence[ConceptHash],
    limits: Limits = LIMITS,
    view: View = WHOLE,
) -> Mapping[ConceptHash, float]:
    """The activation of every concept that has at least 0.05, in (0, 1], the highest first.

    Seeds have 1. In each of at most four rounds, the concepts that have 0.05 and have not passed it
    on yet do so, all at once: `a_j += a_i · confidence · 0.5`, at most 1. A fact carries activation
    once, both ways only if both its ends pass on in the same round: there is no echo, and the work
    ends. Of `limits`, `least`, `fanout` and `breadth` count, and `results` for all but the seeds. The
    store is asked once per round.
    """
    around = Adjacency(store, limits, view)
    active = dict.fromkeys(sorted(set(seeds)), 1.0)
    passed: set[ConceptHash] = set()
    spent: set[FactHash] = set()
    for _ in range(ROUNDS):
        firing = [one for one in _highest(active) if one not in passed][: limits.breadth]
        if not firing:
            break
        await around.load(firing)
        gains = _gains(firing, active, around, spent)
        for concept, gain in gains.items():
            active[concept] = min(1.0, active.get(concept, 0.0) + gain)
        passed.update(firing)
    others = [one for one in _highest(active) if one not in seeds][: limits.results]
    kept = {*seeds, *others}
    return {one: active[one] for one in _highest(active) if one in kept}


def _gains(
    firing: Sequence[ConceptHash],
    active: Mapping[ConceptHash, float],
    around: Adjacency,
    spent: set[FactHash],
) -> dict[ConceptHash, float]:
    """What each concept gets in a round; the facts that carried it become `spent`."""
    gains: dict[ConceptHash, float] = {}
    carried: set[FactHash] = set()
    for concept in firing:
        for step in around.steps(concept):
            if step.is_loop or step.edge.fact in spent:
                continue
            carried.add(step.edge.fact)
            gain = active[concept] * step.edge.confidence * DECAY
            gains[step.target] = gains.get(step.target, 0.0) + gain
    spent |= carried
    return gains


def _highest(active: Mapping[ConceptHash, float]) -> list[ConceptHash]:
    """Those above the threshold, the most active first."""
    above = [one for one, activation in active.items() if activation >= THRESHOLD]
    return sorted(above, key=lambda one: (-active[one], one))
