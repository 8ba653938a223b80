"""A client of the official SDK that yields raw events and raises every failure as a ProviderError.

Importing this module imports the SDK (over a second of CPU): only `anthropic.py` does, in a thread.
Events are taken as JSON, before the SDK makes objects of them: an unparsable tool argument or a
missing end is then noticed here, and unknown blocks keep every key.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import anthropic
import httpx2
import structlog
from pydantic_core import to_json

from agentd.core import strict
from agentd.core.errors import ProviderError
from agentd.core.offloading import offload, offload_rows
from agentd.core.secrets import Secret
from agentd.providers.faults import certificates, failure, refusal_error, unreachable
from agentd.providers.pictures import blind
from agentd.providers.provider_settings import ServiceSettings

log = structlog.get_logger()

_CHATTY = ("anthropic", "httpx2", "httpcore2")


class AnthropicApi:
    """One client with its connection pool."""

    def __init__(
        self,
        settings: ServiceSettings,
        secret: Secret,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        for name in _CHATTY:  # below this level they write whole requests into the log
            logging.getLogger(name).setLevel(logging.WARNING)
        self._cures = {"images": blind(settings.table)}
        silence = settings.timeout.total_seconds()
        timeout = httpx2.Timeout(silence, connect=settings.connect_timeout.total_seconds())
        self._client = anthropic.AsyncAnthropic(
            api_key=secret.reveal(),
            base_url=settings.base_url or None,
            max_retries=0,
            timeout=timeout,
            open_telemetry=False,
            http_client=httpx2.AsyncClient(
                transport=transport,
                verify=certificates() if transport is None else True,
                timeout=timeout,
                limits=httpx2.Limits(max_connections=32, max_keepalive_connections=32),
                follow_redirects=False,
                trust_env=False,
            ),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def events(self, body: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Send the request and yield the stream's events as parsed JSON. Raises ProviderError for
        every failure of the service or of the connection. Defects before the request is sent, such
        as a body that cannot be encoded, are raised as they are.
        """
        encode = partial(_encode, {**body, "stream": True})
        content = await offload_rows(body["messages"], encode)
        try:
            stream = await self._client.post(
                "/v1/messages",
                # Bytes go out as they are; `messages.create` would copy every block before.
                content=content,
                cast_to=object,
                stream=True,
                stream_cls=anthropic.AsyncStream[object],
            )
            async with stream:
                async for event in stream.raw_events(stream.response):
                    if event.data:
                        yield await offload(len(event.data), partial(strict.loads, event.data))
        except anthropic.APIStatusError as error:
            raise _error_of(error, body, self._cures) from None
        except anthropic.APIConnectionError as error:
            raise failure(_network_kind(error.__cause__)) from None
        except (anthropic.AnthropicError, httpx2.HTTPError, httpx2.StreamError) as error:
            raise failure(_network_kind(error)) from None
        except (httpx2.InvalidURL, ValueError, RecursionError) as error:
            # The error's text is not passed on: decoding errors contain the received document.
            raise failure("bad_stream", type(error).__name__) from None


def _encode(body: dict[str, Any]) -> bytes:
    """Encode the body as JSON bytes. A lone surrogate, which rows of older versions may hold, is
    sent in readable form.
    """
    try:
        return to_json(body, inf_nan_mode="null")
    except ValueError:
        log.warning("request_mended", cause="half of a surrogate pair")
        return to_json(strict.as_unicode(body), inf_nan_mode="null")


def _error_of(
    error: anthropic.APIStatusError, body: dict[str, Any], cures: dict[str, str]
) -> ProviderError:
    said, headers = _error_text(error), error.response.headers
    kind = str(error.type or "")
    return refusal_error(error.status_code, kind, said, headers, body=body, cures=cures)


def _error_text(error: anthropic.APIStatusError) -> str:
    """Return the whole error body as text: an error's kind is recognised by words that may be
    anywhere in it.
    """
    return error.body if isinstance(error.body, str) else json.dumps(error.body, default=str)


def _network_kind(error: BaseException | None) -> str:
    if isinstance(error, httpx2.ConnectTimeout):
        return "connect_timeout"
    if isinstance(error, httpx2.TimeoutException):
        return "timeout"
    if isinstance(
        error,
        (httpx2.ConnectError, httpx2.ProxyError, httpx2.UnsupportedProtocol, httpx2.InvalidURL),
    ):
        return unreachable(error)
    return "stream_cut"
