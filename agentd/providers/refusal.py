"""An HTTP response that refuses, as an error: the service's words are looked at, never repeated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import structlog

from agentd.errors import ProviderError
from agentd.providers.faults import failure, kind_of

log = structlog.get_logger()


def refused(status: int, error_type: str, text: str, headers: Mapping[str, str]) -> ProviderError:
    """The error for a response with this status, the service's own error type, and its body.

    `headers` are asked by lower-case names.
    """
    if not (error_type.isidentifier() and len(error_type) <= 60):
        error_type = ""  # a word of the service is repeated, a sentence is not
    kind = kind_of(status, error_type, text)
    request_id = headers.get("request-id") or headers.get("x-request-id")
    log.warning(
        "provider_refused", status=status, type=error_type, kind=kind, request_id=request_id
    )
    detail = f"HTTP {status}" + (f", {error_type}" if error_type else "")
    error = failure(kind, detail, retry_after=_retry_after(headers))
    if headers.get("x-should-retry") == "false":
        error.retryable = False
    return error


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; a date is measured against the response's own, so that no clock need agree."""
    text = headers.get("retry-after", "")
    try:
        seconds = float(text)
    except ValueError:
        try:
            wait = parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("date", ""))
        except (ValueError, TypeError):
            return None
        seconds = wait.total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None
