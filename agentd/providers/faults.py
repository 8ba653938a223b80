"""A table of every way in which a model call fails: kind, message, cure, whether a retry may help.

docs/providers.md shows this table; a test keeps the two equal. Texts of the service are never
repeated in errors, because they may hold parts of the request. They go into the log.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import structlog
from msgspec import Struct

from agentd.core.errors import ConfigError, ContextOverflow, ProviderError
from agentd.core.settings import trusted_certificates
from agentd.core.times import retry_after

log = structlog.get_logger()


class FailureRow(Struct, frozen=True):
    """One row of the table of failures.

    `retryable`: the same request may succeed soon. `counts`: the service or the connection to it
    failed, so the circuit breaker counts it. `waits`: a message may wait until the failure passes.
    """

    message: str
    cure: str
    retryable: bool
    counts: bool
    waits: bool = False


_WAIT = "Try again in a few minutes; the service's status page shows known outages."
_NETWORK = "Check the network, the firewall and [provider] base_url."
_CERTIFICATE = (
    "Check this machine's clock and [provider] base_url; a network that wants a login first shows "
    "a certificate of its own. An authority of your own, or your company's, stands in "
    "SSL_CERT_FILE."
)
_AGAIN = "Send the message again."
_REPORT = "Send the message again; if it stays, report it with the log's request id."

FAULTS: Mapping[str, FailureRow] = {
    "auth": FailureRow(
        "The service does not accept the key.",
        "Put a valid key where [provider] says, and restart agentd.",
        retryable=False,
        counts=True,
    ),
    "billing": FailureRow(
        "The account has no credit left, or has reached its spending limit.",
        "Add credit or raise the limit in the provider's console.",
        retryable=False,
        counts=True,
    ),
    "forbidden": FailureRow(
        "The key may not use this model or address.",
        "Give the key access in the provider's console, or choose another [provider] model.",
        retryable=False,
        counts=True,
    ),
    "not_found": FailureRow(
        "The service knows no such model or address.",
        "Correct [provider] model or base_url (with /v1 for openai, without it for anthropic).",
        retryable=False,
        counts=True,
    ),
    "redirected": FailureRow(
        "The service answered with a redirect, which is never followed with a key.",
        "Let [provider] base_url name the final address.",
        retryable=False,
        counts=True,
    ),
    "bad_request": FailureRow(
        "The service refused the request.",
        "`agentd logs --level warning` has the service's own words; /new starts over.",
        retryable=False,
        counts=False,
    ),
    "overflow": FailureRow(
        "The conversation does not fit the model's window.",
        "Run /compact, or start over with /new; [provider] context_window may be set too large.",
        retryable=False,
        counts=False,
    ),
    "rate_limited": FailureRow(
        "The service limits how much this account may ask.",
        "Wait a little, or raise the account's limits.",
        retryable=True,
        counts=True,
        waits=True,
    ),
    "overloaded": FailureRow(
        "The service is overloaded.", _WAIT, retryable=True, counts=True, waits=True
    ),
    "server_error": FailureRow(
        "The service failed inside.", _WAIT, retryable=True, counts=True, waits=True
    ),
    "server_timeout": FailureRow(
        "The service gave up on the request for lack of time.",
        _WAIT,
        retryable=True,
        counts=True,
        waits=True,
    ),
    "conflict": FailureRow(
        "The service was busy with a conflicting request.", _AGAIN, retryable=True, counts=True
    ),
    "connect": FailureRow(
        "The service cannot be reached.", _NETWORK, retryable=True, counts=True, waits=True
    ),
    "bad_certificate": FailureRow(
        "The service does not prove who it is: its certificate is not accepted.",
        _CERTIFICATE,
        retryable=False,
        counts=True,
        waits=True,
    ),
    "connect_timeout": FailureRow(
        "The service did not take the connection in time.",
        _NETWORK,
        retryable=True,
        counts=True,
        waits=True,
    ),
    "timeout": FailureRow(
        "Nothing was heard of the service for as long as a silence may last.",
        "Send the message again; a model that is loaded or read slowly needs a longer [provider] "
        "timeout.",
        retryable=True,
        counts=True,
        waits=True,
    ),
    "too_slow": FailureRow(
        "The answer took longer than one call may take.",
        "Ask for less at once, or raise [provider] call_timeout.",
        retryable=False,
        counts=True,
    ),
    "stream_cut": FailureRow(
        "The connection ended before the answer did.",
        _AGAIN,
        retryable=True,
        counts=True,
        waits=True,
    ),
    "bad_stream": FailureRow(
        "The service sent something that is no answer.", _REPORT, retryable=True, counts=True
    ),
    "bad_tool_json": FailureRow(
        "The model asked for a tool with arguments that cannot be read; no tool was run.",
        _AGAIN,
        retryable=True,
        counts=False,
    ),
    "empty_answer": FailureRow(
        "The model ended its turn without a word.",
        "Send the message again, in other words.",
        retryable=True,
        counts=False,
    ),
    "unknown_stop": FailureRow(
        "The model stopped for a reason that this version of agentd does not know.",
        "Update agentd.",
        retryable=False,
        counts=False,
    ),
    "budget": FailureRow(
        "The call was not made.",
        "Wait for the next day or month, or raise the limit in [budget].",
        retryable=False,
        counts=False,
    ),
    "breaker_open": FailureRow(
        "The model's service has failed repeatedly, so calls are paused.",
        "Wait for the next try, or see `agentd status` for the cause.",
        retryable=False,
        counts=False,
    ),
}


def certificates() -> ssl.SSLContext | Literal[True]:
    """Return what the service's certificate is verified against. Raises ProviderError
    `bad_certificate` where the configured authorities cannot be read.
    """
    try:
        return trusted_certificates()
    except ConfigError as error:
        raise failure("bad_certificate", error.message) from None


def unreachable(error: BaseException | None) -> str:
    """Return the kind of a failure to connect, `bad_certificate` or `connect`, by the causes of the
    error.
    """
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return "bad_certificate"
        error = error.__cause__ or error.__context__
    return "connect"


ONCE_MORE = frozenset({"empty_answer"})  # a model that stays silent twice stays silent

_BY_STATUS: Mapping[int, str] = {
    401: "auth",
    402: "billing",
    403: "forbidden",
    404: "not_found",
    405: "not_found",
    408: "server_timeout",
    409: "conflict",
    413: "overflow",
    429: "rate_limited",
    503: "overloaded",
    504: "server_timeout",
    529: "overloaded",
}
_BY_TYPE: Mapping[str, str] = {
    "invalid_request_error": "bad_request",
    "authentication_error": "auth",
    "billing_error": "billing",
    "permission_error": "forbidden",
    "not_found_error": "not_found",
    "request_too_large": "overflow",
    "rate_limit_error": "rate_limited",
    "timeout_error": "server_timeout",
    "overloaded_error": "overloaded",
    "api_error": "server_error",
    "conflict_error": "conflict",
    "invalid_api_key": "auth",
    "API_KEY_INVALID": "auth",
    "insufficient_quota": "billing",
    "billing_hard_limit_reached": "billing",
    "model_not_found": "not_found",
    "rate_limit_exceeded": "rate_limited",
    "server_error": "server_error",
    "context_length_exceeded": "overflow",
    "exceed_context_size_error": "overflow",
}
# An exhausted quota is reported as 429 too, but waiting does not help.
_BILLING_TYPES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_FAILED_INSIDE = frozenset({"server_error", "server_timeout", "overloaded"})
# Not every service has an error type for an overflow: only the text of a 400 tells it.
_OVERFLOW_PHRASES = (
    "prompt is too long",
    "input is too long",
    "context length",
    "context window",
    "context limit",
    "context size",
    "context_length_exceeded",
    "exceed context",
    "too many tokens",
)


def failure(
    kind: str,
    detail: str = "",
    *,
    retry_after: float | None = None,
    away: bool = False,
) -> ProviderError:
    """Return the error of that kind in the table; `detail` is added to its message. The error is
    `away` if the table's row waits or the argument says so.
    """
    fault = FAULTS[kind]
    message = f"{fault.message} ({detail})" if detail else fault.message
    if kind == "overflow":
        return ContextOverflow(message, cure=fault.cure)
    return ProviderError(
        message,
        cure=fault.cure,
        kind=kind,
        retryable=fault.retryable,
        retry_after=retry_after,
        away=fault.waits or away,
    )


_SPENDING = re.compile(r"\bspend(?:ing)?\b", re.IGNORECASE)  # not a key that is "suspended"


def kind_of(status: int, error_type: str, text: str) -> str:
    """Return the kind of an error that the service reported, from its HTTP status (200 inside a
    stream), the service's own error type, and its text, which is only searched.
    """
    if error_type in _BILLING_TYPES or (status == 429 and _SPENDING.search(text)):
        return "billing"
    named = _BY_TYPE.get(error_type, "")
    kind = "auth" if named == "auth" else _BY_STATUS.get(status) or _of_its_class(status, named)
    if kind in ("bad_request", "server_error"):
        folded = text.casefold()
        if any(phrase in folded for phrase in _OVERFLOW_PHRASES):
            return "overflow"
        if "credit balance" in folded:
            return "billing"
    return kind


def _of_its_class(status: int, kind: str) -> str:
    """Return the kind for an error type, unless it contradicts the class of the status (4xx or
    5xx): some services call every refusal an `api_error`.
    """
    by_class = _by_class(status)
    if by_class == "bad_request" and kind in _FAILED_INSIDE:
        return by_class
    if status >= 500 and kind == "bad_request":
        return by_class
    return kind or by_class


def is_known(error_type: str) -> bool:
    """Whether `kind_of` knows this error type of a service."""
    return error_type in _BY_TYPE


def missing_key(service: str, variable: str) -> ProviderError:
    """Return the error for a call without a usable key."""
    return ProviderError(
        f"There is no usable key for the {service} API.",
        cure=missing_key_cure(variable),
        kind="auth",
    )


def missing_key_cure(variable: str) -> str:
    """Return what to do when there is no key at all."""
    return (
        f"Set {variable} in the daemon's environment (or a systemd credential, or [provider] "
        'api_key_file) and restart agentd; kind = "offline" needs no key.'
    )


def _by_class(status: int) -> str:
    if 300 <= status < 400:
        return "redirected"
    if 400 <= status < 500:
        return "bad_request"
    return "server_error"


_LONGEST_WORDS = 400  # characters of a service's error text that are logged
_DEEPEST = 8
# Keys of an error whose values are meant for people. Others (`input`, `body`) may be the request.
_SPOKEN = ("error", "message", "detail", "errors", "msg", "loc")
_PICTURES = frozenset({"image", "image_url"})
# Kinds of failure whose cause may be in the contents of the request.
_OF_THE_REQUEST = frozenset({"bad_request", "not_found", "server_error"})


def refusal_error(
    status: int,
    error_type: str,
    text: str,
    headers: Mapping[str, str],
    *,
    body: Mapping[str, Any],
    cures: Mapping[str, str],
) -> ProviderError:
    """Return the error for a response that refuses the request `body`, from its status, the
    service's own error type, and its text. The text is logged, and otherwise only chooses among our
    own messages.

    `headers` are looked up by lower-case names. `cures` say what to do about a key of the request
    that the service names, and under `images` about pictures in the request.
    """
    if not (error_type.isidentifier() and len(error_type) <= 60):
        error_type = ""  # a single word of the service may be repeated, a sentence may not
    # What comes with 200 in place of an answer is a refusal without a status of its own.
    kind, said = kind_of(400 if status == 200 else status, error_type, text), spoken(text)
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
    helps = list(_helping(kind, said, body, cures)) if kind in _OF_THE_REQUEST else []
    if kind == "bad_request" and status == 200:
        helps.append(FAULTS["not_found"].cure)  # so some answer what was never asked of them
    error.cure = " ".join((*helps, FAULTS[kind].cure))
    if headers.get("x-should-retry") == "false":
        error.retryable = False
    return error


def reported_fault(
    error_type: str, error: object, where: str, *, status: int = 200
) -> ProviderError:
    """Return the error for an error object inside a stream. The `status` is the one that the object
    names, if it names one. `where` is added to the message.
    """
    text = json.dumps(error)
    kind = kind_of(status, error_type, text)
    log.warning("provider_refused", status=status, kind=kind, service_said=spoken(text))
    return failure(kind, where)


def spoken(text: str) -> str:
    """Return what the body of an error says for people, in one line of 400 characters at most. The
    text comes from outside and may quote the request, so it goes nowhere but into the log.
    """
    try:
        words = ": ".join(_sentences(json.loads(text), _DEEPEST))
    except (ValueError, RecursionError):
        words = text
    line = " ".join(words[: 4 * _LONGEST_WORDS].split())
    if len(line) <= _LONGEST_WORDS:
        return line
    # Half a word could be half a key, which the redaction of logs would not recognise.
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
    """Yield the cures that apply to the request: for its pictures, and for a key of it that the
    service's text names.
    """
    if _has_pictures(body):
        yield cures["images"]
    if kind == "bad_request":
        named = named_keys(said, body)
        yield from (cure for key, cure in cures.items() if key in named)


def named_keys(said: str, keys: Iterable[str]) -> frozenset[str]:
    """Return the keys of a request that a service's words name, in singular or plural."""
    names = ((key, key.removesuffix("s")) for key in keys)
    return frozenset(key for key, name in names if re.search(rf"\b{name}s?\b", said))


def _has_pictures(body: Mapping[str, Any]) -> bool:
    parts = (
        part
        for message in body.get("messages", ())
        if isinstance(message.get("content"), list)
        for part in message["content"]
    )
    return any(isinstance(part, Mapping) and part.get("type") in _PICTURES for part in parts)
