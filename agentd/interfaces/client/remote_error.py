"""Errors of a client: the daemon's error answers, and the loss of the daemon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentd.core.errors import AgentdError, DaemonUnreachable

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_INVALID_PARAMS = -32602
_RESOURCE_NOT_FOUND = -32002


class ConnectionLost(DaemonUnreachable):
    """The daemon closed the connection while it was in use."""

    code = "connection_lost"


class RemoteError(AgentdError):
    """The daemon answered with an error. `reason` is the daemon's error code, `rpc_code` the code
    of the JSON-RPC error.
    """

    code = "remote"

    def __init__(self, message: str, *, code: str, cure: str = "", rpc_code: int = 0) -> None:
        super().__init__(message, cure=cure)
        self._reason = code
        self.rpc_code = rpc_code

    @classmethod
    def from_frame(cls, error: Mapping[str, Any]) -> RemoteError:
        """Parse the `error` of a response; missing fields get defaults."""
        data = error.get("data")
        data = data if isinstance(data, Mapping) else {}
        number = error.get("code")
        number = number if isinstance(number, int) else 0
        return cls(
            str(error.get("message") or "the daemon gave no reason"),
            code=str(data.get("code") or _default_reason(number)),
            cure=str(data.get("cure") or ""),
            rpc_code=number,
        )

    @property
    def reason(self) -> str:
        """The daemon's error code, such as `not_found`."""
        return self._reason


def exit_status(error: AgentdError) -> int:
    """Return the exit code for `error`; for a RemoteError that of the daemon's error."""
    if not isinstance(error, RemoteError):
        return error.exit_code
    known = {kind.code: kind.exit_code for kind in _kinds(AgentdError)}
    return known.get(error.reason, 1)


def _default_reason(number: int) -> str:
    if number in (_PARSE_ERROR, _INVALID_REQUEST, _INVALID_PARAMS):
        return "invalid"
    return "not_found" if number == _RESOURCE_NOT_FOUND else "failed"


def _kinds(kind: type[AgentdError]) -> Iterator[type[AgentdError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _kinds(child)
