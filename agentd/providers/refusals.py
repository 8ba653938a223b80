"""A response that refuses a request, as an error: what it means, what helps, and in the log what it said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import structlog

from agentd.core.errors import ProviderError
from agentd.core.times import retry_after
from agentd.providers.faults import FAULTS, failure, kind_of

log = structlog.get_logger()

_LONGEST_WORDS = 400  # characters of a service's words that the log gets
_DEEPEST = 8
# Where services put their words for people. What stands beside them (`input`, `body`) may be the request.
_SPOKEN = ("error", "message", "detail", "errors", "msg", "loc")
_PICTURES = frozenset({"image", "image_url"})
_OF_THE_REQUEST = frozenset(
    {"bad_request", "not_found", "server_error"}
)  # may be about its contents


def refused(
    status: int,
    error_type: str,
    text: str,
    headers: Mapping[str, str],
    *,
    body: Mapping[str, Any],
    cures: Mapping[str, str],
) -> ProviderError:
    """The error for a response that refuses the request `body`, with this status, the service's own error
    type, and its text. The text is for the log alone; here it only chooses among our own words.

    `headers` are asked by lower-case names. `cures` say what to do about a key of the request that the
    service names, and under `images` about pictures in the request.
    """
    if not (error_type.isidentifier() and len(error_type) <= 60):
        error_type = ""  # a word of the service is repeated, a sentence is not
    kind, said = kind_of(status, error_type, text), spoken(text)
    log.warning(
        "provider_refused",
        status=status,
        type=error_type,
        kind=kind,
        request_id=headers.get("request-id") or headers.get("x-request-id"),
        service_said=said,
    )
    detail = f"HTTP {status}" + (f", {error_type}" if error_type else "")
    error = failure(kind, detail, retry_after=retry_after(headers))
    if kind in _OF_THE_REQUEST and (helps := " ".join(_helping(kind, said, body, cures))):
        error.cure = f"{helps} {FAULTS[kind].cure}"
    if headers.get("x-should-retry") == "false":
        error.retryable = False
    return error


def reported(error_type: str, error: object, where: str, *, status: int = 200) -> ProviderError:
    """The error for an error object in an answer that began well, or in a response of status 200."""
    text = json.dumps(error)
    kind = kind_of(status, error_type, text)
    log.warning("provider_refused", status=200, kind=kind, service_said=spoken(text))
    return failure(kind, where)


def spoken(text: str) -> str:
    """What a service says for people in the body of an error, in one line of 400 characters at most: it
    comes from outside, may quote the request, and goes nowhere but into the log.
    """
    try:
        words = ": ".join(_sentences(json.loads(text), _DEEPEST))
    except (ValueError, RecursionError):
        words = text
    line = " ".join(words[: 4 * _LONGEST_WORDS].split())
    if len(line) <= _LONGEST_WORDS:
        return line
    # Half a word could be half a key, which nothing would recognise as one.
    return line[:_LONGEST_WORDS].rpartition(" ")[0] + " …"


def _sentences(said: object, depth: int) -> Iterator[str]:
    if isinstance(said, str):
        yield said
    elif isinstance(said, list) and depth:
        for part in said:
            yield from _sentences(part, depth - 1)
    elif isinstance(said, dict) and depth:
        for key in _SPOKEN:
            yield from _sentences(said.get(key), depth - 1)


def _helping(
    kind: str, said: str, body: Mapping[str, Any], cures: Mapping[str, str]
) -> Iterator[str]:
    """What helps, by what the request held: pictures, or a key that the service names."""
    if _has_pictures(body):
        yield cures["images"]
    if kind == "bad_request":
        named = (key for key in cures if key in body and re.search(rf"\b{key}\b", said))
        yield from (cures[key] for key in named)


def _has_pictures(body: Mapping[str, Any]) -> bool:
    parts = (
        part
        for message in body.get("messages", ())
        if isinstance(message.get("content"), list)
        for part in message["content"]
    )
    return any(isinstance(part, Mapping) and part.get("type") in _PICTURES for part in parts)
