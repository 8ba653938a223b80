"""Checks of the concept graph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agentd.core.health import Finding
from agentd.memory.graph.graph_exchange import Logged


@dataclass(frozen=True, slots=True)
class Chained:
    """Whether the log of what happened to the graph is as it was written, and what others said as it was
    entered.
    """

    logged: Callable[[], Awaitable[Logged]]
    is_kept: bool
    code: str = "graph_chain"

    async def look(self) -> Finding:
        """Fails for a chain that was changed, warns of what others said that was. Raises WorkspaceError."""
        if not self.is_kept:
            return Finding.ok(self.code, "no chain of the graph is kept")
        found = await self.logged()
        found.verdict.check()
        if found.changed:
            text = f"what others said is not what was logged, of {', '.join(found.changed[:5])}"
            cure = "put the state back from a backup, or take their messages in again"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(
            self.code, f"{found.verdict.entries} entries of the graph's chain are sound"
        )
