"""Errors as clients get them: code, message and cure; never the text of a foreign exception."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from agentd.core.errors import AgentdError, Busy, InvalidRequest, NotFound
from agentd.core.turn import Failure
from agentd.interfaces.acp import frames
from agentd.interfaces.acp.frames import CallId
from agentd.interfaces.acp.peer import Withdrawn

_LOOK = "docs/socket.md has the params of each method, `--help` the options of each command"


class TurnFailed(AgentdError):
    """The turn failed; its session has a notice that says why."""

    code = "turn_failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, cure=failure.cure)
        self.failure = failure

    @property
    def reason(self) -> str:
        """The stored failure's code."""
        return self.failure.code


def describe(call_id: CallId, error: AgentdError) -> dict[str, Any]:
    """Return the error response to a call that failed with `error`."""
    data = {"code": error.reason, "cure": error.cure}
    return frames.error(call_id, _number(error), error.message, data)


def wrong_params(error: ValidationError) -> InvalidRequest:
    """Return an InvalidRequest that names the first five wrong params by their paths."""
    texts = []
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(str(part) for part in item["loc"]) or "params"
        texts.append(f"{place}: {item['msg']}")
    more = f" (and {len(texts) - 5} more)" if len(texts) > 5 else ""
    return InvalidRequest("; ".join(texts[:5]) + more, cure=_LOOK)


def _number(error: AgentdError) -> int:
    match error:
        case TurnFailed():
            return frames.TURN_FAILED
        case InvalidRequest():
            return frames.INVALID_PARAMS
        case NotFound():
            return frames.NOT_FOUND
        case Busy():
            return frames.BUSY
        case Withdrawn():
            return frames.WITHDRAWN
    return frames.REFUSED
