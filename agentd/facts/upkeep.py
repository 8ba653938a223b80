"""Looks at all facts together once a day: what is said twice, contradicts itself, or is too much.

Nothing is erased: what goes is put aside. `agentd facts list --all` shows it, `history` says since when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import structlog

from agentd.domain.fact import Fact
from agentd.domain.health import Problem
from agentd.engine.daily import Daily
from agentd.facts.findings import STALE, Findings
from agentd.facts.judge import Bands, bands
from agentd.facts.settings import FactsSettings
from agentd.ports import Clock, FactIndex, FactStore

log = structlog.get_logger()


class Book(Protocol):
    """The facts, and how they are put aside."""

    async def all(self) -> tuple[Fact, ...]:
        """Every fact."""

    async def parked(self) -> Sequence[Fact]:
        """Those of which it is in doubt whether the user wants them gone."""

    async def put_aside(self, successors: Mapping[str, str]) -> Sequence[Fact]:
        """Let facts hold no longer, each for the one named beside it, or for none."""


class Upkeep:
    """`run` is its long life. When facts are off, nothing happens."""

    def __init__(
        self,
        book: Book,
        store: FactStore,
        index: FactIndex,
        clock: Clock,
        settings: FactsSettings,
    ) -> None:
        self._book = book
        self._store = store
        self._index = index
        self._clock = clock
        self._settings = settings
        self._daily = Daily("facts_upkeep", partial(self.validate, dry_run=False), clock)
        self._looking = asyncio.Lock()

    async def run(self) -> None:
        """Do it every day, until cancelled."""
        if self._settings.enabled:
            await self._daily.run()

    async def validate(self, dry_run: bool) -> dict[str, Any]:
        """What there is to do, `{checked, duplicates, conflicts, stale, evicted, dry_run}`; unless that
        alone was asked, it is done. Raises WorkspaceError, StorageError.
        """
        async with self._looking:
            parked = {fact.id for fact in await self._book.parked()}
            known = await self._book.all()
            facts = [fact for fact in known if fact.is_active and fact.id not in parked]
            found = await self._found(facts) if facts else Findings()
            successors = found.successors()
            if successors and not dry_run:
                await self._count_for({i: successors[i] for i in found.duplicates})
                await self._book.put_aside(successors)
        log.info(
            "facts_reviewed",
            checked=found.checked,
            duplicates=len(found.duplicates),
            conflicts=len(found.conflicts),
            stale=len(found.stale),
            evicted=len(found.evicted),
            dry_run=dry_run,
        )
        return found.as_json(dry_run=dry_run)

    def problems(self) -> tuple[Problem, ...]:
        """Why it could not be done the last time."""
        return self._daily.problems()

    async def _count_for(self, kept: Mapping[str, str]) -> None:
        """Let each time that a duplicate was said count for the fact that stays. Twice is as once."""
        seen = await self._store.sightings(list(kept)) if kept else {}
        moved = [replace(one, fact_id=kept[i]) for i, each in seen.items() for one in each]
        if moved:
            await self._store.save((), sightings=moved)

    async def _found(self, facts: Sequence[Fact]) -> Findings:
        now = self._clock.now()
        old = [fact.id for fact in facts if now - fact.valid_from >= STALE]
        seen = await self._store.sightings(old) if old else {}
        repeated = frozenset(i for i, sightings in seen.items() if len(sightings) > 1)
        vectors = await self._vectors(facts)
        limits, most = bands(self._index.model), self._settings.max_facts
        return await asyncio.to_thread(_reviewed, facts, vectors, limits, repeated, now, most)

    async def _vectors(self, facts: Sequence[Fact]) -> Mapping[str, bytes]:
        """The vectors of the model that answers; none while there is no embedder."""
        await self._index.near(facts[-1].text, 1.0, 1)  # the index knows then which one that is
        return await self._store.vectors(self._index.model) if self._index.model else {}


def _reviewed(
    facts: Sequence[Fact],
    vectors: Mapping[str, bytes],
    limits: Bands,
    repeated: frozenset[str],
    now: datetime,
    most: int,
) -> Findings:
    from agentd.facts.review import review

    return review(facts, vectors, limits, repeated, now, most)
