"""Reviews the facts once a day: finds duplicates, conflicts, missing triples, stale facts, and
excess.

Nothing is erased. Facts are only ended or superseded: `agentd facts list --all` shows them, `facts
changes` lists what was merged, and `facts undo` reverses it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Any

import structlog
from msgspec import Struct, field

from agentd.core.errors import AgentdError, NotFound
from agentd.core.fact import (
    Category,
    Fact,
    FactOperation,
    FactSource,
    OperationKind,
    Triple,
)
from agentd.core.health import Problem
from agentd.core.paths import prompt
from agentd.core.ports import Clock, FactStore
from agentd.core.turn import Origin
from agentd.engine.completion import Completions
from agentd.engine.rendering import fence
from agentd.engine.workers import DailyWorker
from agentd.memory.facts.book import FactBook
from agentd.memory.facts.changes import LISTED, REVIEW
from agentd.memory.facts.fact_settings import FactsSettings
from agentd.memory.facts.model_answer import line, objects
from agentd.memory.facts.wire import fact_line
from agentd.memory.index.ranking.importance import DAILY, OLDEST, importance

log = structlog.get_logger()

_INSTRUCTIONS = prompt("review")
_ASK = "Say now which of these belong together."
_MAX_TOKENS = 2_048
_NEW = timedelta(days=2)
_UNDESCRIBED = timedelta(days=7)  # how long a fact without a triple is asked about
_MOST = 60  # new facts in one review
_NEAR = 4  # similar facts shown beside each
_MOST_OBJECTS = 200
_MOST_PART = 200  # characters
_STALE = timedelta(days=180)  # how long after reaching the lowest importance a fact is stale
_AT_FLOOR = timedelta(days=math.log(OLDEST) / math.log(DAILY))  # age of the lowest importance
_AGEING = frozenset({Category.PROJECT, Category.DECISION, Category.OUTCOME})
_LEFT = 0.9  # share of the cap that stays after an eviction


class Findings(Struct):
    """The findings of a review. `duplicates` and `conflicts` map the fact to end to the one that
    stays.
    """

    checked: int = 0
    duplicates: dict[str, str] = field(default_factory=dict)
    conflicts: dict[str, str] = field(default_factory=dict)
    triples: dict[str, Triple] = field(default_factory=dict)
    stale: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()

    def as_json(self, *, dry_run: bool) -> dict[str, Any]:
        """The shape in `agentd facts validate`."""
        return {
            "checked": self.checked,
            "duplicates": [{"id": i, "of": of} for i, of in self.duplicates.items()],
            "conflicts": [{"id": i, "by": by} for i, by in self.conflicts.items()],
            "triples": list(self.triples),
            "stale": list(self.stale),
            "evicted": list(self.evicted),
            "dry_run": dry_run,
        }


class Review:
    """Reviews the facts: daily in the background (`run`, until cancelled), or on request. Does
    nothing while facts are off.
    """

    def __init__(
        self,
        book: FactBook,
        store: FactStore,
        calls: Completions,
        clock: Clock,
        settings: FactsSettings,
    ) -> None:
        self._book = book
        self._store = store
        self._calls = calls
        self._clock = clock
        self._settings = settings
        self._model = settings.extraction_model or calls.cheap_model
        self._daily = DailyWorker("facts_review", self._if_due, clock)
        self._looking = asyncio.Lock()
        self._failure: Problem | None = None

    async def run(self) -> None:
        """Review every day, until cancelled."""
        if self._settings.enabled:
            await self._daily.run()

    async def validate(self, dry_run: bool) -> dict[str, Any]:
        """Review the facts and carry the findings out, unless `dry_run`; return the findings as
        `{checked, duplicates, conflicts, triples, stale, evicted, dry_run}`. Raises WorkspaceError,
        StorageError.
        """
        async with self._looking:
            parked = {fact.id for fact in await self._book.parked()}
            known = await self._book.all()
            facts = [fact for fact in known if fact.is_active and fact.id not in parked]
            found = Findings(len(facts))
            await self._judge(found, facts)
            await self._age(found, facts)
            if not dry_run:
                await self._carry_out(found)
        log.info("facts_reviewed", **found.as_json(dry_run=dry_run))
        return found.as_json(dry_run=dry_run)

    def problems(self) -> tuple[Problem, ...]:
        """Return why the last review failed."""
        return (*self._daily.problems(), *((self._failure,) if self._failure else ()))

    async def _if_due(self) -> None:
        today = self._clock.now().toordinal()
        if (await self._store.marks()).get(REVIEW, 0) != today:
            await self.validate(dry_run=False)
            await self._book.learn((), marks={REVIEW: today})

    async def _judge(self, found: Findings, facts: Sequence[Fact]) -> None:
        """Have the model compare the new facts with those similar to them."""
        shown = await self._for_review(facts)
        if not shown:
            return
        zone = self._clock.zone
        try:
            async with asyncio.timeout(self._settings.extraction_timeout.total_seconds()):
                answer = await self._calls.ask(
                    REVIEW,
                    Origin.EXTRACTION,
                    _INSTRUCTIONS,
                    _request(shown, zone),
                    self._model,
                    max_tokens=_MAX_TOKENS,
                )
        except (AgentdError, TimeoutError) as error:
            # Stale facts and excess need no model; the rest waits for tomorrow.
            reason = error.reason if isinstance(error, AgentdError) else "timeout"
            log.warning("facts_not_judged", reason=reason)
            text = f"what is known was not looked through for what is said twice: {reason}"
            cure = "nothing is lost; `agentd facts validate` tries it again"
            self._failure = Problem("facts_unjudged", text, cure)
            return
        self._failure = None
        _take(found, answer.text, {fact.id: fact for fact in shown}, await self._kept_apart())

    async def _kept_apart(self) -> frozenset[frozenset[str]]:
        """Return the pairs of facts whose merge the user has undone."""
        listed = await self._book.changes(LISTED)
        undone = [one for one in listed if one.undone and one.new]
        return frozenset(frozenset((one.new, old)) for one in undone for old in one.old)

    async def _for_review(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return the facts of the last days and those without a triple, each with similar ones."""
        known = {fact.id: fact for fact in facts}
        now = self._clock.now()
        new = [
            fact
            for fact in facts
            if now - fact.noted_at <= (_NEW if fact.triple is not None else _UNDESCRIBED)
        ]
        shown: dict[str, Fact] = {}
        for fact in sorted(new, key=lambda fact: fact.noted_at, reverse=True)[:_MOST]:
            shown[fact.id] = fact
            for hit in await self._book.find(fact.text, _NEAR):
                if hit.fact.id in known:
                    shown[hit.fact.id] = known[hit.fact.id]
        return sorted(shown.values(), key=lambda fact: (fact.noted_at, fact.id))

    async def _age(self, found: Findings, facts: Sequence[Fact]) -> None:
        now = self._clock.now()
        old = [fact for fact in facts if _is_old(fact, now)]
        seen = await self._store.evidence([fact.id for fact in old]) if old else {}
        found.stale = tuple(
            fact.id for fact in old if sum(not one.is_context for one in seen[fact.id]) < 2
        )
        gone = {*found.stale, *found.duplicates, *found.conflicts}
        left = [fact for fact in facts if fact.id not in gone]
        found.evicted = await asyncio.to_thread(
            partial(_over_cap, left, now, self._settings.max_facts)
        )

    async def _carry_out(self, found: Findings) -> None:
        for goes, stays in {**found.duplicates, **found.conflicts}.items():
            try:
                await self._book.merge(stays, [goes], REVIEW)
            except NotFound:
                log.info("facts_not_merged", reason="changed_meanwhile")
        now = self._clock.now()
        described = [
            FactOperation(
                OperationKind.SAME, now, FactSource.EXTRACTED, triple=triple, ids=(fact_id,)
            )
            for fact_id, triple in found.triples.items()
        ]
        if described:
            await self._book.learn(described)
        if aside := dict.fromkeys((*found.stale, *found.evicted), ""):
            await self._book.end_facts(aside)


def _request(shown: Sequence[Fact], zone: tzinfo) -> str:
    lines = (
        f"{fact_line(fact, zone)}{'' if fact.triple is not None else ' (no triple)'}"
        for fact in shown
    )
    return f"{fence('known facts', chr(10).join(lines))}\n\n{_ASK}"


def _take(
    found: Findings,
    answer: str,
    shown: Mapping[str, Fact],
    apart: Collection[Collection[str]],
) -> None:
    """Add the answer's findings on the facts that were shown, without contradictory ones and pairs
    to be kept `apart`.
    """
    for _, data in zip(range(_MOST_OBJECTS), objects(answer), strict=False):
        given = data.get("ids")
        ids = [i for i in given if isinstance(i, str)] if isinstance(given, list) else []
        if not ids or any(i not in shown for i in ids):
            continue
        stays, *go = dict.fromkeys(ids)
        parts = [line(data.get(name), _MOST_PART) for name in ("subject", "relation", "value")]
        if not go and all(parts) and shown[stays].triple is None:
            found.triples[stays] = Triple(*parts)
        for fact_id in go:
            taken = {*found.duplicates, *found.conflicts}
            standing = {*found.duplicates.values(), *found.conflicts.values()}
            if fact_id in taken | standing or stays in taken or {stays, fact_id} in apart:
                continue
            if data.get("op") == "same":
                found.duplicates[fact_id] = stays
            elif data.get("op") == "replace" and shown[stays].noted_at >= shown[fact_id].noted_at:
                found.conflicts[fact_id] = stays


def _is_old(fact: Fact, now: datetime) -> bool:
    """Whether a fact was read from a conversation and has been at the lowest importance for long.
    Facts on what somebody is and likes do not age; those on work do.
    """
    if fact.source is not FactSource.EXTRACTED or fact.category not in _AGEING:
        return False
    return now - fact.noted_at >= _AT_FLOOR + _STALE


def _over_cap(facts: Sequence[Fact], now: datetime, most: int) -> tuple[str, ...]:
    """Return the facts to end so that 90 % of the cap are left; the user's explicit facts go
    last.
    """
    if len(facts) <= most:
        return ()
    count = len(facts) - math.floor(_LEFT * most)

    def rank(fact: Fact) -> tuple[object, ...]:
        is_own = fact.source is not FactSource.EXTRACTED
        return is_own, importance(fact, now), fact.noted_at, fact.id

    return tuple(fact.id for fact in sorted(facts, key=rank)[:count])
