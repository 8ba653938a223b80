"""The error of the web tools."""

from __future__ import annotations

from agentd.core.errors import ToolFailed


class WebFault(ToolFailed):
    """A page could not be read. `kind` is the reason, one of the table in docs/web.md; `is_told`
    says that the message contains text of the server.
    """

    def __init__(self, kind: str, message: str, *, cure: str = "", is_told: bool = False) -> None:
        super().__init__(message, cure=cure)
        self.kind = kind
        self.is_told = is_told
