"""Looks after the daemon itself: its log, its checks, its backups, its configuration."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from agentd.app import backup
from agentd.app.assembly.model import check_prices
from agentd.app.assembly.parts import Parts
from agentd.app.config import Config, load
from agentd.app.doctor.examine import Check, examine
from agentd.app.doctor.memory_checks import (
    FactsCheck,
    GraphJournalCheck,
    HiddenTextCheck,
    NotesReadableCheck,
    PromptFilesCheck,
    RequiredFilesCheck,
    SharedFoldersCheck,
)
from agentd.app.doctor.search_checks import EmbedderCheck, SearchCheck
from agentd.app.doctor.server_checks import ToolServersCheck, WebCheck
from agentd.app.doctor.work_checks import (
    BudgetsCheck,
    ClockDriftCheck,
    DeliveryCheck,
    FlushesCheck,
    ProblemsCheck,
    RetentionCheck,
    ServiceCheck,
    TicksCheck,
    UnfinishedTurnsCheck,
    WindowCheck,
)
from agentd.app.logs import OpenLog
from agentd.app.reload import Reload
from agentd.core.errors import BudgetReached, ConfigError
from agentd.core.health import Problem
from agentd.core.offloading import to_the_end
from agentd.core.paths import prompt
from agentd.core.turn import Origin, SessionKind
from agentd.engine.budget import OriginBudget
from agentd.interfaces.acp import declared
from agentd.interfaces.acp.peer import Handler
from agentd.interfaces.acp.server import Server
from agentd.interfaces.commands.logs import LOGS, LogCommands, LogPlace
from agentd.interfaces.commands.units import unit_of
from agentd.interfaces.commands.upkeep import UPKEEP, UpkeepCommands
from agentd.providers.metered import most_of
from agentd.providers.resilience import LastHeard
from agentd.storage.ownership import configuration
from agentd.workspace.injection import CUT
from agentd.workspace.listing import IRREGULAR
from agentd.workspace.versions import LIST_DAMAGED

log = structlog.get_logger()


class Upkeep:
    """The methods about the daemon itself: log, checks, reloading of the configuration, backup."""

    def __init__(self, parts: Parts, output: OpenLog) -> None:
        self._parts = parts
        self._runtime = runtime = parts.runtime
        self._output = output
        self._server: Server | None = None
        file = runtime.places.config_file
        read = partial(_read, file, runtime.environ)
        self._reload = Reload(runtime.config, read, self.check, self.take, file)
        self._started = (runtime.clock.now(), runtime.clock.monotonic())

    def routes(self) -> dict[str, Handler]:
        """Return the methods of these commands, by name."""
        unit = unit_of() if self._output.is_journal else None
        return {
            **declared.methods(
                LOGS, LogCommands(LogPlace(self._output.file, unit), self._runtime.clock)
            ),
            **declared.methods(
                UPKEEP,
                UpkeepCommands(partial(examine, self._checks()), self._reload.run, self._backup),
            ),
        }

    def look_after(self, server: Server) -> None:
        """Pass changed settings to this server, too, from now on."""
        self._server = server

    async def hangup(self) -> None:
        """Reload the configuration on SIGHUP; a refusal is logged."""
        try:
            await self._reload.run()
        except ConfigError as error:
            log.warning("reload_refused", error=error.message)

    def check(self, config: Config) -> None:
        """Raise ConfigError if the running parts could not use this configuration."""
        check_prices(config, self._parts.model.choices)
        self._parts.alerts.targets.check(config.heartbeat.target, config.heartbeat.to)

    def take(self, config: Config) -> None:
        """Pass the configuration to the parts that can change theirs while they run."""
        beat, parts, heartbeat = config.heartbeat, self._parts, self._parts.schedule.heartbeat
        self._output.set_level(config.log.level)
        self._runtime.budget.adopt(config.budget)
        parts.memory.retention.adopt(config.storage.retention_days)
        parts.memory.indexer.adopt(config.memory_search)
        parts.alerts.targets.adopt(beat.target, beat.to)
        recipients = parts.alerts.targets(Origin.HEARTBEAT)
        text = beat.prompt or prompt("heartbeat")
        heartbeat.adopt(beat, heartbeat.runner.adapted(beat, text, recipients))
        parts.schedule.scheduler.poke()
        if self._server is not None:
            self._server.adopt(config.server)

    async def _backup(self, file: Path) -> dict[str, Any]:
        runtime, places = self._runtime, self._runtime.places
        with backup.place_for_copy(places, file.parent) as copy:
            await self._parts.stores.db.copy(copy)
            contents = backup.ArchiveContents(
                copy,
                places.config_file,
                runtime.workspace,
                places.versions,
                places.images,
                places.facts_key,
                places.rows_key,
                places.mcp_pins,
            )
            now = runtime.clock.now()
            return await to_the_end(partial(backup.write, contents, file, now))

    def _checks(self) -> tuple[Check, ...]:
        parts, config, limits = self._parts, self._runtime.config, self._runtime.limits
        sessions, files = parts.stores.sessions, parts.memory.files
        scheduler, web = parts.schedule.scheduler, parts.tools.web.browser
        return (
            TicksCheck(scheduler.ages, scheduler.interval),
            ClockDriftCheck(self._runtime.clock, *self._started),
            ServiceCheck(parts.model.problems, self._heard(), self._runtime.clock),
            ProblemsCheck(
                parts.memory.embedders.problems,
                "the embedder is the one that is configured",
                "embedder",
            ),
            ToolServersCheck(parts.tools.servers.as_json, parts.tools.servers.problems),
            WebCheck(web.as_json, web.problems, web.probe),
            ProblemsCheck(self._problems, "no part of the daemon has a problem", "parts"),
            BudgetsCheck(
                self._used_up(Origin.USER), self._used_up(Origin.HEARTBEAT), self._refusal
            ),
            WindowCheck(
                config.provider.context_window,
                limits.window,
                limits.flush_at,
                parts.engine.fixed_tokens,
            ),
            FlushesCheck(sessions, config.compaction.memory_flush.enabled),
            RetentionCheck(parts.memory.retention.status),
            FactsCheck(parts.facts.problems),
            GraphJournalCheck(parts.graph.exchange.logged, parts.graph.exchange.is_logged),
            UnfinishedTurnsCheck(sessions),
            DeliveryCheck(parts.stores.outbox),
            PromptFilesCheck(files, CUT),
            NotesReadableCheck(files, IRREGULAR),
            ProblemsCheck(
                lambda: [problem for problem in files.problems() if problem.code == LIST_DAMAGED],
                "the former versions of files are listed",
                "versions",
            ),
            HiddenTextCheck(files),
            SharedFoldersCheck(
                files,
                parts.stores.sessions.sessions,
                (config.workspace.daily_dir, *config.workspace.daily_aliases),
            ),
            RequiredFilesCheck(partial(parts.memory.injection.audit, SessionKind.OWNER)),
            SearchCheck(files, parts.memory.recall, parts.memory.indexer.state),
            EmbedderCheck(
                parts.memory.recall,
                parts.memory.indexer.state,
                parts.memory.embedders.status,
                self._runtime.clock,
            ),
        )

    def _heard(self) -> Callable[[], LastHeard] | None:
        model = self._parts.model
        return None if model.choices[0].kind == "offline" else model.breaker.heard

    def _problems(self) -> tuple[Problem, ...]:
        """Return the problems that no other check reports."""
        parts, memory = self._parts, self._parts.memory
        return parts.problems(
            without=(
                parts.model.problems,
                memory.embedders.problems,
                memory.files.problems,
                parts.facts.problems,
                parts.alerts.dispatcher.problems,
                parts.tools.servers.problems,
            )
        )

    def _used_up(self, origin: Origin) -> Callable[[], Awaitable[bool]]:
        return self._runtime.budget_of(self._parts.stores.ledger, origin).is_used_up

    async def _refusal(self, origin: Origin) -> BudgetReached | None:
        """Return why every service would refuse even the smallest call of that origin; None if one
        would accept it.
        """
        runtime, parts = self._runtime, self._parts
        budget = OriginBudget(runtime.budget, parts.stores.ledger, runtime.clock, origin)
        is_beat = origin is Origin.HEARTBEAT
        fixed = 0 if is_beat else await parts.engine.fixed_tokens()
        own = runtime.config.heartbeat.model if is_beat else ""
        refusals = []
        services = runtime.config.provider.services
        for choice, service in zip(parts.model.choices, services, strict=True):
            if choice.kind == "offline":
                return None
            most = most_of(fixed, service.max_tokens)
            refusals.append(await budget.refusal(own or choice.model, most))
        return refusals[0] if all(refusals) else None


def _read(file: Path, environ: Mapping[str, str]) -> Config:
    """Check the owner of the configuration file and correct its mode, as at the start, since
    whoever can write the file decides what the daemon runs; then load it. Raises ConfigError.
    """
    if mended := configuration(file, os.getuid(), mend=True):
        log.warning("mode_mended", what=mended)
    return load(file, environ)
