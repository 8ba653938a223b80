"""What looks after the daemon itself: its log."""

from __future__ import annotations

from dataclasses import dataclass

from agentd.logs import OpenLog
from agentd.ports import Clock
from agentd.server.methods.logs import LogMethods, LogPlace
from agentd.server.peer import Handler
from agentd.units import unit_of


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The commands about the daemon itself."""

    clock: Clock
    output: OpenLog

    def routes(self) -> dict[str, Handler]:
        """Their methods by name."""
        unit = unit_of() if self.output.is_journal else None
        return {
            **LogMethods(LogPlace(self.output.file, unit), self.clock).routes(),
        }
