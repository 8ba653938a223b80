"""The concept graph: kept level with facts and text, asked, and looked after."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentd.assembly.ground import Ground, Work
from agentd.assembly.memory import Memory
from agentd.assembly.storage import Stores
from agentd.domain.belief import Consolidated
from agentd.domain.health import Problem
from agentd.engine.daily import Daily
from agentd.engine.nudged import Nudged
from agentd.graph.chain import Chain
from agentd.graph.desk import GraphDesk
from agentd.graph.exchange import Exchange
from agentd.graph.journal import Journal
from agentd.graph.keeper import GraphKeeper
from agentd.graph.leg import GraphLeg
from agentd.graph.recall import Recollection
from agentd.graph.sharing import Sharing
from agentd.ports import GraphStore, Recall
from agentd.storage.keys import kept_key
from agentd.workspace.logfiles import LogFiles


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph; `work` runs on, and `desk` answers, unless it is switched off. Its text is erased from
    all the same. `recall` is the search of memory, with the graph as a leg if that is wanted.
    """

    keeper: GraphKeeper
    daily: Daily
    level: Nudged
    recall: Recall
    exchange: Exchange
    sharing: Sharing
    journal: Journal
    store: GraphStore
    desk: GraphDesk | None = None

    @property
    def work(self) -> tuple[Work, ...]:
        """What runs on."""
        return (self.journal.look, self.level.run, self.daily.run) if self.desk else ()

    @property
    def is_on(self) -> bool:
        """Whether it is kept and answers."""
        return self.desk is not None

    @property
    def next_due(self) -> datetime | None:
        """When it is consolidated next; None before that runs."""
        return self.daily.next_due

    async def consolidate(self) -> Consolidated:
        """Do that now. Raises WorkspaceError, StorageError."""
        await self.daily.now()
        (done,) = await self.store.consolidations(1)
        return done

    async def consolidations(self, limit: int) -> Sequence[Consolidated]:
        """What came of it, the newest first. Raises StorageError."""
        return await self.store.consolidations(limit)

    def changed(self) -> None:
        """Facts have changed. Never blocks."""
        self.keeper.touch()
        self.level.nudge()

    def problems(self) -> tuple[Problem, ...]:
        """What of its text cannot be used, and what could not be done."""
        parts = (self.keeper, self.sharing, self.journal, self.daily)
        return tuple(problem for part in parts for problem in part.problems())

    async def status(self) -> dict[str, Any]:
        """`{enabled, concepts, facts, episodes, consolidated}`, the last `{at, promoted, swept}` or
        None. Raises StorageError.
        """
        counts, last = await self.keeper.counts(), await self.keeper.last()
        done = (
            {"at": last.at.isoformat(), "promoted": last.promoted, "swept": last.swept}
            if last
            else None
        )
        held = {"concepts": counts.concepts, "facts": counts.facts, "episodes": counts.episodes}
        return {"enabled": self.is_on, **held, "consolidated": done}


def build_graph(ground: Ground, stores: Stores, memory: Memory) -> Graph:
    """The graph, level once its work runs. Where facts are off, nothing is fed to it."""
    config, clock = ground.config, ground.clock
    fed = config.graph.enabled and config.facts.enabled
    journal = Journal(Chain(LogFiles(ground.workspace), clock) if config.graph.chain else None)
    keeper = GraphKeeper(
        memory.files,
        stores.graph,
        stores.chunks,
        clock,
        stores.facts.facts,
        fed=fed,
        journal=journal,
    )
    key = ground.places.facts_key

    async def agent() -> str:
        secret = await asyncio.to_thread(kept_key, key)
        return hmac.digest(secret, b"graph", "sha256").hex()[:16]

    sharing = Sharing(keeper, memory.files, config.graph.spaces, agent, journal, fed=fed)
    exchange = Exchange(keeper, stores.graph, sharing, clock, journal)

    async def levelled() -> None:
        await keeper.level()
        await exchange.level()

    level = Nudged("graph", levelled)

    async def upkeep() -> None:
        await keeper.consolidate()
        await journal.look()

    daily = Daily("graph_upkeep", upkeep, clock)
    if not config.graph.enabled:
        return Graph(keeper, daily, level, memory.recall, exchange, sharing, journal, stores.graph)
    memory.watching.listen(level.nudge)
    level.nudge()
    recollection = Recollection(stores.graph, clock, resolve=keeper.resolve)
    desk = GraphDesk(keeper, recollection, stores.graph, clock)
    search = config.memory_search
    recall: Recall = memory.recall
    if search.graph:
        recall = GraphLeg(recall, recollection, search.max_tokens)
    return Graph(keeper, daily, level, recall, exchange, sharing, journal, stores.graph, desk)
