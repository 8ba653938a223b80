"""Checks of services whose tools the agent uses: MCP servers, and the web."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agentd.core.errors import AgentdError
from agentd.core.health import Finding, Problem


class ToolServersCheck(Struct, frozen=True):
    """Checks the MCP servers by the state of their last use; the check starts none."""

    rows: Callable[[], Sequence[Mapping[str, Any]]]
    problems: Callable[[], Sequence[Problem]]
    code: str = "mcp"

    async def look(self) -> Finding:
        """Warn of all problems, with the cure of the first; list every server's state."""
        told = "; ".join(map(_as_text, self.rows())) or "no MCP server is configured"
        problems = self.problems()
        if not problems:
            return Finding.ok(self.code, f"MCP servers: {told}" if self.rows() else told)
        texts = "; ".join(problem.text for problem in problems)
        return Finding.warn(self.code, f"{texts} ({told})", problems[0].cure)


def _as_text(row: Mapping[str, Any]) -> str:
    why = f", {row['reason']}" if row["reason"] else ""
    return f"{row['name']}: {row['state']}{why}, {row['tools']} tools"


class WebCheck(Struct, frozen=True):
    """Checks the web tools. `probe` raises AgentdError if the search service does not answer."""

    row: Callable[[], Mapping[str, Any]]
    problems: Callable[[], Sequence[Problem]]
    probe: Callable[[], Awaitable[None]]
    code: str = "web"

    async def look(self) -> Finding:
        """Warn if the search service does not answer, or of the web tools' first problem."""
        row = self.row()
        if not row["enabled"]:
            return Finding.ok(self.code, "the web is off")
        tools = ", ".join(f"{name}: {one}" for name, one in row["tools"].items()) or "no tool"
        told = f"{tools} ({row['service'] or 'no search service'})"
        try:
            await self.probe()
        except AgentdError as error:
            text = f"the search service cannot be asked: {error.message} ({told})"
            return Finding.warn(self.code, text, error.cure or "see to url in [web.search]")
        for problem in self.problems():
            return Finding.warn(self.code, f"{problem.text} ({told})", problem.cure)
        return Finding.ok(self.code, f"the web: {told}")
