"""One line of JSON-RPC 2.0 from bytes to a value, strictly, and back.

What is refused is told in `agentd/core/strict.py`; half of a surrogate pair is, too.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from agentd.core import strict

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_FOUND = -32002  # the Agent Client Protocol's "resource not found"
TURN_FAILED = -32010
REFUSED = -32011  # any other error of agentd; `data.code` says which
WITHDRAWN = -32800  # the Agent Client Protocol's "request cancelled"
BUSY = -32012  # try again: too many calls or clients, a full queue, a daemon that stops

CallId = str | int


class FrameError(Exception):
    """A line that is no frame. After a `fatal` one the stream cannot be trusted and is closed."""

    def __init__(
        self, code: int, message: str, *, fatal: bool = False, call_id: CallId | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fatal = fatal
        self.call_id = call_id


class Request(Struct, frozen=True):
    """A call that expects an answer."""

    id: CallId
    method: str
    params: dict[str, Any]


class Notification(Struct, frozen=True):
    """A call without an answer."""

    method: str
    params: dict[str, Any]


class Response(Struct, frozen=True):
    """The client's answer to a call of the daemon. `error` is None if the call succeeded."""

    id: CallId
    result: Any
    error: Any


Frame = Request | Notification | Response


def parse(line: bytes) -> Frame:
    """Parse a line, given without its newline. Raises FrameError."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise FrameError(PARSE_ERROR, "the frame is not UTF-8", fatal=True) from None
    try:
        value = strict.loads(text)
    except strict.Unacceptable as error:
        raise FrameError(PARSE_ERROR, f"the frame is not taken: {error}") from None
    except (ValueError, RecursionError):
        raise FrameError(PARSE_ERROR, "the frame is not JSON") from None
    if "\\u" in text and not strict.is_unicode(value):
        raise FrameError(PARSE_ERROR, "a string holds half of a surrogate pair")
    return _classify(value)


def encode(message: dict[str, Any]) -> bytes:
    """Return the line of a message, with its newline."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace") + b"\n"


def result(call_id: CallId, value: Any) -> dict[str, Any]:
    """Return a successful answer."""
    return {"jsonrpc": "2.0", "id": call_id, "result": value}


def error(
    call_id: CallId | None, code: int, message: str, data: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return a failed answer; `call_id` is None if the call could not be parsed."""
    body: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return {"jsonrpc": "2.0", "id": call_id, "error": body}


def notification(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def request(call_id: CallId, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return a call of the client."""
    return {"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}


def _classify(value: Any) -> Frame:
    if isinstance(value, list):
        raise FrameError(INVALID_REQUEST, "batches are not taken; send one object a line")
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise FrameError(INVALID_REQUEST, 'the frame is no object with "jsonrpc": "2.0"')
    call_id = value.get("id")
    # An `initialize` may give up the owner's rights. A client whose `initialize` is malformed must
    # not keep them, so the error ends its connection.
    fatal = value.get("method") == "initialize"
    if "id" in value and (isinstance(call_id, bool) or not isinstance(call_id, str | int)):
        raise FrameError(INVALID_REQUEST, "the id is neither a string nor an integer", fatal=fatal)
    if "method" not in value:
        if call_id is None or ("result" in value) == ("error" in value):
            raise FrameError(INVALID_REQUEST, "the frame is neither a call nor an answer")
        return Response(call_id, value.get("result"), value.get("error"))
    method, params = value["method"], value.get("params", {})
    if not isinstance(method, str):
        raise FrameError(INVALID_REQUEST, "the method is no string")
    if not isinstance(params, dict):
        raise FrameError(INVALID_PARAMS, "params is no object", fatal=fatal, call_id=call_id)
    return Notification(method, params) if call_id is None else Request(call_id, method, params)
