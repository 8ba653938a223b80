"""What looks after the daemon itself: its log, its checks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from agentd.doctor.examine import Check, examine
from agentd.doctor.memory import Injected, Readable, Required, Searchable
from agentd.doctor.work import (
    Budgets,
    Drift,
    Flushes,
    Problems,
    Ticks,
    Undelivered,
    Unfinished,
    Window,
)
from agentd.domain.health import Problem
from agentd.domain.turn import Kind, Origin
from agentd.engine.budget import SilentBudget
from agentd.engine.compaction.plan import Thresholds
from agentd.logs import OpenLog
from agentd.parts import Parts
from agentd.scheduler.aps import Scheduler
from agentd.server.methods.doctor import DoctorMethods
from agentd.server.methods.logs import LogMethods, LogPlace
from agentd.server.peer import Handler
from agentd.units import unit_of
from agentd.workspace.injection import CUT


class Upkeep:
    """The commands about the daemon itself."""

    def __init__(
        self, parts: Parts, scheduler: Scheduler, limits: Thresholds, output: OpenLog
    ) -> None:
        self._parts = parts
        self._scheduler = scheduler
        self._limits = limits
        self._output = output
        self._started = (parts.clock.now(), parts.clock.monotonic())

    def routes(self) -> dict[str, Handler]:
        """Their methods by name."""
        unit = unit_of() if self._output.is_journal else None
        return {
            **LogMethods(LogPlace(self._output.file, unit), self._parts.clock).routes(),
            **DoctorMethods(partial(examine, self._checks())).routes(),
        }

    def _checks(self) -> tuple[Check, ...]:
        parts = self._parts
        sessions, files = parts.stores.sessions, parts.memory.files
        return (
            Ticks(self._scheduler.ages, self._scheduler.interval),
            Drift(parts.clock, *self._started),
            Problems(parts.model.problems, "the model's service answers", "provider"),
            Problems(self._problems, "no part of the daemon complains", "parts"),
            Budgets(self._used_up(Origin.USER), self._used_up(Origin.HEARTBEAT)),
            Window(
                parts.config.provider.context_window,
                self._limits.window,
                self._limits.flush_at,
                parts.engine.fixed_tokens,
            ),
            Flushes(sessions, parts.config.compaction.memory_flush.enabled),
            Unfinished(sessions),
            Undelivered(parts.stores.outbox),
            Injected(files, CUT),
            Readable(files),
            Required(partial(parts.memory.injection.audit, Kind.MAIN)),
            Searchable(files, parts.memory.recall, parts.memory.indexer.state),
        )

    def _problems(self) -> tuple[Problem, ...]:
        """What parts say that no other check looks at."""
        stores = self._parts.stores
        parts = (stores.db, stores.index_db, self._parts.memory.indexer, self._parts.pulse)
        return tuple(problem for part in parts for problem in part.problems())

    def _used_up(self, origin: Origin) -> Callable[[], Awaitable[bool]]:
        parts = self._parts
        return SilentBudget(
            parts.config.budget, parts.stores.ledger, parts.clock, origin
        ).is_used_up
