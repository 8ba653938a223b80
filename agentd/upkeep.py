"""What looks after the daemon itself: its log, its checks, its configuration."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from agentd import backup
from agentd.config import Config, load
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
from agentd.errors import ConfigError
from agentd.logs import OpenLog
from agentd.parts import Parts, prompt
from agentd.providers.assembly import Model
from agentd.reload import Reload
from agentd.server.methods.backup import BackupMethods
from agentd.server.methods.doctor import DoctorMethods
from agentd.server.methods.logs import LogMethods, LogPlace
from agentd.server.methods.reload import ReloadMethods
from agentd.server.peer import Handler
from agentd.server.server import Server
from agentd.units import unit_of
from agentd.workspace.injection import CUT

log = structlog.get_logger()


class Upkeep:
    """The commands about the daemon itself."""

    def __init__(self, parts: Parts, workspace: Path, limits: Thresholds, output: OpenLog) -> None:
        self._parts = parts
        self._workspace = workspace
        self._limits = limits
        self._output = output
        self._server: Server | None = None
        read = partial(load, parts.places.config_file, parts.environ)
        self._reload = Reload(parts.config, read, self.check, self.take)
        self._started = (parts.clock.now(), parts.clock.monotonic())

    def routes(self) -> dict[str, Handler]:
        """Their methods by name."""
        unit = unit_of() if self._output.is_journal else None
        return {
            **LogMethods(LogPlace(self._output.file, unit), self._parts.clock).routes(),
            **DoctorMethods(partial(examine, self._checks())).routes(),
            **ReloadMethods(self._reload.run).routes(),
            **BackupMethods(self._backup).routes(),
        }

    def look_after(self, server: Server) -> None:
        """Hand its settings to the server, too, when they change."""
        self._server = server

    async def hangup(self) -> None:
        """What SIGHUP asks for."""
        try:
            await self._reload.run()
        except ConfigError as error:
            log.warning("reload_refused", error=error.message)

    def check(self, config: Config) -> None:
        """Raise ConfigError if the parts that run could not go by this configuration."""
        check_prices(config, self._parts.model)
        self._parts.alerts.targets.check(config.heartbeat.target, config.heartbeat.to)

    def take(self, config: Config) -> None:
        """Let the parts that can go by it."""
        parts, beat = self._parts, config.heartbeat
        self._output.set_level(config.log.level)
        parts.budget.adopt(config.budget)
        parts.alerts.targets.adopt(beat.target, beat.to)
        sinks, to = parts.alerts.targets(Origin.HEARTBEAT)
        text = beat.prompt or prompt("heartbeat")
        parts.pulse.adopt(beat, parts.pulse.examination.adapted(beat, text, sinks, to))
        parts.scheduler.poke()
        if self._server is not None:
            self._server.adopt(config.server)

    async def _backup(self, file: Path) -> dict[str, Any]:
        parts = self._parts
        state = parts.places.state_dir
        with tempfile.TemporaryDirectory(prefix=".backup-", dir=state) as folder:  # 0700
            copy = Path(folder, "state.db")
            await parts.stores.db.copy(copy)
            contents = backup.Contents(
                copy, parts.places.config_file, self._workspace, state / "versions"
            )
            return await asyncio.to_thread(backup.write, contents, file, parts.clock.now())

    def _checks(self) -> tuple[Check, ...]:
        parts = self._parts
        sessions, files = parts.stores.sessions, parts.memory.files
        return (
            Ticks(parts.scheduler.ages, parts.scheduler.interval),
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
        return SilentBudget(parts.budget, parts.stores.ledger, parts.clock, origin).is_used_up


def check_prices(config: Config, model: Model) -> None:
    """Refuse a limit in dollars that could not be kept. Raises ConfigError."""
    paid = tuple(choice.model for choice in model.choices if choice.kind != "offline")
    others = (config.heartbeat.model, config.compaction.summary_model, *config.provider.models)
    if paid and (missing := config.budget.unpriced(filter(None, (*paid, *others)))):
        raise ConfigError(
            f"[budget] has a limit in dollars, but no price for {', '.join(missing)}",
            cure=f'add [budget.prices."{missing[0]}"] with input and output, or use a token limit',
        )
