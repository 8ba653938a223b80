"""Semantic memory: what is held to be so, whenever it was said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.belief import Trace, belief, read_evidence
from agentd.domain.concept import FactHash
from agentd.ports import GraphStore


@dataclass(frozen=True, slots=True)
class Held:
    """A fact that stands.

    `confidence` is `p · (1 − q)`: the noisy-OR of what was said for it, lowered by that of what was
    said against it; in [0, 1], whatever the order. `observations` are the independent sayings it rests
    on, those of one context counted once; `denials` those against it.
    """

    fact: FactHash
    confidence: float
    observations: int
    denials: int
    first_seen: datetime
    last_seen: datetime


class SemanticMemory:
    """The facts of the store that stand: those that the page of facts vouches for, and promotions."""

    def __init__(self, store: GraphStore) -> None:
        self._store = store

    async def held(
        self, facts: Sequence[FactHash], *, scopes: Sequence[str] | None = None
    ) -> Mapping[FactHash, Held]:
        """Those of these facts that stand."""
        by_fact: dict[FactHash, list[Trace]] = {}
        for trace in await self._store.traces(facts, scopes=scopes):
            by_fact.setdefault(trace.relation.fact, []).append(trace)
        found = (summary(traces) for traces in by_fact.values())
        return {held.fact: held for held in found if held is not None}


def summary(traces: Iterable[Trace]) -> Held | None:
    """What the episodes of one fact that stand come to, None if none of them does. An episode that is
    there twice counts once.
    """
    standing = {trace.relation.episode: trace for trace in traces if trace.stands}
    if not standing:
        return None
    support = [trace for trace in standing.values() if not trace.relation.denied]
    denial = [trace for trace in standing.values() if trace.relation.denied]
    seen = [at for trace in standing.values() for at in _times(trace)]
    return Held(
        fact=next(iter(standing.values())).relation.fact,
        confidence=belief(_confidences(support), _confidences(denial)),
        observations=sum(trace.observations for trace in support),
        denials=sum(trace.observations for trace in denial),
        first_seen=min(seen),
        last_seen=max(seen),
    )


def _confidences(traces: Iterable[Trace]) -> list[float]:
    return [trace.relation.confidence for trace in traces]


def _times(trace: Trace) -> list[datetime]:
    if not trace.is_promotion:
        return [trace.said]
    return [trace.said, *(read_evidence(ref)[1] for ref in trace.relation.refs)]
