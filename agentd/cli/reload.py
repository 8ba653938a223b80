"""`agentd reload`: a changed configuration, taken into use without a restart."""

from __future__ import annotations

from typing import Any

from agentd.cli.ask import answer
from agentd.cli.report import AsJson


def reload(as_json: AsJson = False) -> None:
    """Let the daemon read its configuration again; says what needs a restart."""
    answer("reload", _told, as_json=as_json)


def _told(result: dict[str, Any]) -> str:
    lines = []
    if missing := result.get("missing"):
        lines.append(f"{missing} does not exist: agentd's defaults hold")
    if result["changed"]:
        lines.append(f"changed: {', '.join(result['changed'])}")
    if result["needs_restart"]:
        lines.append(f"needs `agentd restart`: {', '.join(result['needs_restart'])}")
    return "\n".join(lines) or "nothing has changed"
