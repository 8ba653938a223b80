"""Builds the concept graph: kept up to date with the facts, queried, and consolidated daily."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from msgspec import Struct

from agentd.app.assembly.memory import Memory
from agentd.app.assembly.runtime import RuntimeContext, Work
from agentd.app.assembly.storage import Stores
from agentd.core.errors import AgentdError
from agentd.core.evidence import Consolidated
from agentd.core.health import Problem
from agentd.core.ports import Clock, GraphStore, ProgramStates
from agentd.engine.workers import CoalescingWorker, DailyWorker
from agentd.memory.graph.earlier_text import EarlierText
from agentd.memory.graph.graph_exchange import Exchange
from agentd.memory.graph.journal import GraphJournal, JournalChain
from agentd.memory.graph.keeper import GraphKeeper
from agentd.memory.graph.recall import Recollection
from agentd.memory.graph.relevance import NameSimilarity
from agentd.memory.graph.service import GraphService
from agentd.memory.graph.sharing import Sharing
from agentd.memory.graph.text import GraphText
from agentd.storage.graph_records import SqliteGraphRecords
from agentd.storage.keys import load_key
from agentd.workspace.logfiles import LogFiles
from agentd.workspace.versions import Versions

log = structlog.get_logger()


_SHORT = 0.1  # seconds; after shorter work there is no pause
_RESTS = 9  # a pause is so many times as long as the work, which so takes a tenth of all time
_WRITTEN_AFTER = 60.0  # seconds between two writings of the days of the text that have changed


class GraphParts(Struct, frozen=True, kw_only=True):
    """The graph's parts. When the graph is off, `service` is None and there is no background
    `work`, but forgotten words are still erased from what it stored.
    """

    keeper: GraphKeeper
    daily: DailyWorker
    level: CoalescingWorker
    writing: Work
    exchange: Exchange
    sharing: Sharing
    journal: GraphJournal
    store: GraphStore
    programs: ProgramStates
    service: GraphService | None = None

    @property
    def work(self) -> tuple[Work, ...]:
        """The graph's background work; none when the graph is off."""
        return (
            (self.journal.look, self.level.run, self.daily.run, self.writing)
            if self.service
            else ()
        )

    @property
    def is_on(self) -> bool:
        """Whether the graph is on."""
        return self.service is not None

    @property
    def next_due(self) -> datetime | None:
        """When the graph is consolidated next; None before its work runs."""
        return self.daily.next_due

    async def consolidate(self) -> Consolidated:
        """Consolidate the graph now. Raises WorkspaceError, StorageError."""
        await self.daily.now()
        (done,) = await self.store.consolidations(1)
        return done

    async def consolidations(self, limit: int) -> Sequence[Consolidated]:
        """Return the results of the last consolidations, the newest first. Raises StorageError."""
        return await self.store.consolidations(limit)

    def changed(self) -> None:
        """Update the graph after a change of the facts, in the background. Never blocks."""
        self.keeper.touch()
        self.level.nudge()

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of the keeper, the journal and the daily consolidation."""
        parts = (self.keeper, self.journal, self.daily)
        return tuple(problem for part in parts for problem in part.problems())

    async def status(self) -> dict[str, Any]:
        """Return `{enabled, concepts, facts, episodes, consolidated}`, where `consolidated` is
        `{at, promoted, swept}` of the last consolidation, or None. Raises StorageError.
        """
        counts, last = await self.keeper.counts(), await self.keeper.last()
        done = (
            {"at": last.at.isoformat(), "promoted": last.promoted, "swept": last.swept}
            if last
            else None
        )
        held = {"concepts": counts.concepts, "facts": counts.facts, "episodes": counts.episodes}
        return {"enabled": self.is_on, **held, "consolidated": done}


def build_graph(runtime: RuntimeContext, stores: Stores, memory: Memory) -> GraphParts:
    """Build the graph. It catches up with the facts once its work runs; while facts are off, it
    gets none.
    """
    config, clock = runtime.config, runtime.clock
    fed = config.graph.enabled and config.facts.enabled
    files = LogFiles(runtime.workspace, Versions(runtime.places.versions))
    records = SqliteGraphRecords(stores.db)
    journal = GraphJournal(JournalChain(files, clock) if config.graph.chain else None)
    keeper = GraphKeeper(
        memory.files,
        stores.graph,
        records,
        stores.facts,
        GraphText(files, stores.graph, stores.chunks),
        EarlierText(memory.files, files, records, clock),
        clock,
        fed=fed,
        journal=journal,
    )
    agent = partial(_agent, runtime.places.facts_key)
    sharing = Sharing(keeper, records, config.graph.spaces, agent, journal, fed=fed)
    exchange = Exchange(keeper, stores.graph, sharing, clock, journal)

    async def levelled() -> None:
        begun = clock.monotonic()
        await keeper.level()
        await exchange.level()
        worked = clock.monotonic() - begun
        if worked > _SHORT:
            # A query brings the graph up to date first, so a series of new facts may wait.
            await clock.sleep(_RESTS * worked)

    async def upkeep() -> None:
        await keeper.consolidate()
        await journal.look()

    level, daily = CoalescingWorker("graph", levelled), DailyWorker("graph_upkeep", upkeep, clock)
    service = _service(keeper, stores, memory, clock) if config.graph.enabled else None
    if service is not None:
        memory.watching.listen(level.nudge)
        level.nudge()
    return GraphParts(
        keeper=keeper,
        daily=daily,
        level=level,
        writing=partial(_write, keeper, clock),
        exchange=exchange,
        sharing=sharing,
        journal=journal,
        store=stores.graph,
        programs=records,
        service=service,
    )


def _service(keeper: GraphKeeper, stores: Stores, memory: Memory, clock: Clock) -> GraphService:
    """Build the GraphService. It finds concepts by the meaning of their names if there is an
    embedder.
    """
    quickest = memory.embedders.chain[-1:]
    near = NameSimilarity(quickest[0]).near if quickest else None
    recollection = Recollection(stores.graph, clock, resolve=keeper.resolve, near=near)
    return GraphService(keeper, recollection, stores.graph, clock)


async def _agent(key: Path) -> str:
    """Return the name that identifies messages of this agent, derived from the key."""
    secret = await asyncio.to_thread(load_key, key)
    return hmac.digest(secret, b"graph", "sha256").hex()[:16]


async def _write(keeper: GraphKeeper, clock: Clock) -> None:
    """Write the days of the text that have changed, again and again until cancelled."""
    while True:
        await clock.sleep(_WRITTEN_AFTER)
        try:
            await keeper.write()
        except AgentdError as error:  # it is tried again; forgetting writes the text itself
            log.warning("graph_not_written", reason=error.reason)
