"""Holds what every part is built on: the configuration, the paths, the clock, the budget."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentd.app.config import Config
from agentd.core.paths import DaemonPaths, expanded
from agentd.core.ports import Clock, Ledger
from agentd.core.redaction import Redactor
from agentd.core.turn import Origin, Usage
from agentd.engine.approvals import TaintPolicy
from agentd.engine.budget import Budget, OriginBudget
from agentd.engine.compaction.plan import Thresholds, thresholds
from agentd.engine.workers import Stopping
from agentd.interfaces.mcp.mcp_settings import SEARCH

Work = Callable[[], Coroutine[Any, Any, None]]


class RuntimeContext(Struct, frozen=True):
    """What the builders share. The parts themselves get only their own settings from it. `policy`
    replaces the configured policy of tainted turns. Keys are added to `redactor` as they are found.
    The engine sets `stopping` when it shuts down.
    """

    config: Config
    places: DaemonPaths
    clock: Clock
    environ: MutableMapping[str, str]
    budget: Budget
    policy: TaintPolicy | None = None
    redactor: Redactor = field(default_factory=Redactor)
    stopping: Stopping = field(default_factory=Stopping)

    @property
    def tainted_turns(self) -> TaintPolicy:
        """The policy of turns whose prompts contain text from outside."""
        named = {
            *self.config.tools.when_tainted,
            *self.config.mcp.vouched,
            *self.config.web.vouched,
            SEARCH,
        }
        return self.policy or TaintPolicy(frozenset(named))

    @property
    def workspace(self) -> Path:
        """The configured path of the workspace, else the default one."""
        path = self.config.workspace.path
        return expanded(path) if path else self.places.workspace

    @property
    def limits(self) -> Thresholds:
        """The token counts at which contexts are flushed and compacted."""
        compacting = self.config.compaction
        return thresholds(
            self.config.provider.context_window,
            compacting.memory_flush.soft_threshold_tokens,
            mode=compacting.mode,
            reserve=compacting.reserve_tokens,
        )

    def budget_of(
        self, ledger: Ledger, origin: Origin, calls: Sequence[tuple[str, Usage]] = ()
    ) -> OriginBudget:
        """Return the budget of silent turns of that origin. `calls` are the smallest possible
        calls, see OriginBudget.
        """
        return OriginBudget(self.budget, ledger, self.clock, origin, calls)
