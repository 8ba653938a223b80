"""Episodic memory: single sayings, which fade unless they are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentd.domain.belief import LEAST
from agentd.domain.concept import ConceptHash, EpisodeHash, Relation
from agentd.ports import Clock, GraphStore


@dataclass(frozen=True, slots=True)
class Remembered:
    """An episode, and how much of its confidence is left: at least 0.01."""

    relation: Relation
    confidence: float


class EpisodicMemory:
    """The episodes of the store at the time of the clock.

    An episode of confidence c is worth `c · 2^(−age / 7 days)`, its age counted from when it was said
    or last touched, and is gone below 0.01. One of the future, or of before the clock was put back,
    has age zero. Those of facts and of promotions do not fade.
    """

    def __init__(self, store: GraphStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def recall(
        self,
        concepts: Sequence[ConceptHash],
        limit: int,
        *,
        scopes: Sequence[str] | None = None,
    ) -> tuple[Remembered, ...]:
        """What was said about these concepts, the surest first, of the same confidence the newest; at
        most `limit`. A promotion is no saying.
        """
        now = self._clock.now()
        edges = await self._store.edges(concepts, scopes=scopes, now=now)
        traces = await self._store.traces([edge.fact for edge in edges], scopes=scopes)
        found = [
            (trace.effective(now), trace.said, trace.relation)
            for trace in traces
            if not trace.is_promotion
        ]
        found = [one for one in found if one[0] >= LEAST]
        found.sort(key=lambda one: (one[0], one[1], one[2].episode), reverse=True)
        return tuple(Remembered(relation, left) for left, _, relation in found[: max(0, limit)])

    async def touch(self, episodes: Sequence[EpisodeHash]) -> int:
        """They were used: they are worth all of their confidence again, and fade from now on. Returns
        how many of them fade at all. This is known to the tables alone: who deletes these loses it.
        """
        return await self._store.touch(episodes, self._clock.now())

    async def sweep(self) -> Sequence[Relation]:
        """Take out what has faded, and return it. The text keeps it."""
        return await self._store.sweep(self._clock.now())
