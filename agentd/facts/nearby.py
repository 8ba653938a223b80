"""What is near a statement, as far as the index tells in time.

Nobody waits for ever to learn something: without an answer a statement is judged by its words alone.
At worst a fact is then kept twice, which the daily upkeep sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

import structlog

from agentd.domain.fact import Fact, Neighbour
from agentd.domain.health import Problem
from agentd.facts.judge import MINILM, STATIC, Bands, bands
from agentd.ports import Clock, FactIndex

PATIENCE = 20.0  # seconds; an index gives up a slow embedder before that
REST = 60.0  # seconds in which an index that did not answer is not asked again

_MOST = 8
_FLOOR = min(MINILM.related, STATIC.related)

Current: TypeAlias = Callable[[str], Fact | None]

log = structlog.get_logger()


class Nearby:
    """The neighbours of texts; `patience` is in seconds."""

    def __init__(self, index: FactIndex, clock: Clock, patience: float = PATIENCE) -> None:
        self._index = index
        self._clock = clock
        self._patience = patience
        self._asks_from = 0.0
        self._failure: Problem | None = None

    async def find(self, text: str, current: Current) -> tuple[list[Neighbour], Bands]:
        """Active facts near the text, as `current` gives them by id, and what their cosines say; none
        if the index does not answer in time.
        """
        if self._failure is not None and self._clock.monotonic() < self._asks_from:
            return [], bands(self._index.model)
        try:
            async with asyncio.timeout(self._patience):
                near = await self._index.near(text, _FLOOR, _MOST)
        except TimeoutError:
            self._asks_from = self._clock.monotonic() + REST
            log.warning("facts_unjudged", seconds=self._patience, again_in=REST)
            self._failure = Problem(
                "facts_unjudged",
                "what is learnt was not compared with what is known: no answer of the index in"
                f" {self._patience:g} seconds",
                "nothing is lost, `agentd facts validate` finds what is there twice; restart agentd if"
                " this stays",
            )
            return [], bands(self._index.model)
        self._failure = None
        known = ((current(one.fact.id), one.cosine) for one in near)
        found = [Neighbour(fact, cosine) for fact, cosine in known if fact and fact.is_active]
        return found, bands(self._index.model)

    def problems(self) -> tuple[Problem, ...]:
        """That the index did not answer the last time."""
        return (self._failure,) if self._failure else ()
