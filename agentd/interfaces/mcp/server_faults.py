"""Why a server could not be used."""

from __future__ import annotations

from agentd.core.errors import ToolFailed

LOGIN_NEEDED = "login_needed"  # the kind that only the owner can do something about


class ServerFault(ToolFailed):
    """A server could not be used. `kind` is the exact reason, a word of the table in docs/mcp.md."""

    def __init__(self, kind: str, message: str, *, cure: str = "") -> None:
        super().__init__(message, cure=cure)
        self.kind = kind
