"""Checks of the servers whose tools are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.core.health import Finding, Problem


@dataclass(frozen=True, slots=True)
class ServersCheck:
    """Whether they could be used when they were last called. Looking starts none."""

    rows: Callable[[], Sequence[Mapping[str, Any]]]
    problems: Callable[[], Sequence[Problem]]
    code: str = "mcp"

    async def look(self) -> Finding:
        """Warns of the first problem; names every server with its state and reason."""
        told = "; ".join(map(_told, self.rows())) or "no MCP server is configured"
        problems = self.problems()
        if not problems:
            return Finding.ok(self.code, told)
        texts = "; ".join(problem.text for problem in problems)
        return Finding.warn(self.code, f"{texts} ({told})", problems[0].cure)


def _told(row: Mapping[str, Any]) -> str:
    why = f", {row['reason']}" if row["reason"] else ""
    return f"{row['name']}: {row['state']}{why}, {row['tools']} tools"
