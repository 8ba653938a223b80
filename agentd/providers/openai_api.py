"""One HTTP client for a chat-completions server; every failure is raised as a ProviderError.

Importing this module imports httpx (a tenth of a second of CPU): only `openai.py` does, in a
thread.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from functools import partial
from typing import Any

import httpx
import structlog

from agentd.core import strict
from agentd.core.errors import ProviderError
from agentd.core.offloading import offload_rows
from agentd.core.secrets import Secret
from agentd.core.settings import OPENAI_URL
from agentd.providers.faults import certificates, failure, refusal_error, unreachable
from agentd.providers.openai_answer import error_in, error_word, status_in
from agentd.providers.openai_wire import adapted, cures, unasked_keys, wishes
from agentd.providers.provider_settings import ServiceSettings

log = structlog.get_logger()


_BLANK = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_BLANK_SIZE = 4  # bytes of the longest match of _BLANK
_LINE_END = re.compile(rb"\r\n|\n|\r")
_LONGEST = 4 * 1024 * 1024  # bytes of one event
_MARK = b"\xef\xbb\xbf"


async def data_of(pieces: AsyncIterable[bytes]) -> AsyncGenerator[str, None]:
    """Yield the data of each server-sent event in the bytes, parsed as the HTML standard asks;
    comments and other fields are left out. Lines end at LF, CR or CRLF only; other line separators
    of Unicode are part of the data. Text after the last blank line is an event only if its data is
    whole JSON: some servers end without a blank line, and a broken connection may, too.

    Raises UnicodeDecodeError, and ProviderError (`bad_stream`) for an event of more than 4 MB.
    """
    left, is_first = bytearray(), True
    async for piece in pieces:
        seen = max(0, len(left) - _BLANK_SIZE)  # a blank line may have begun in earlier pieces
        left += piece
        if is_first and len(left) >= len(_MARK):
            is_first = False
            if left.startswith(_MARK):
                del left[: len(_MARK)]
        begin = 0
        for blank in list(_BLANK.finditer(left, seen)):
            data = list(_data(bytes(left[begin : blank.start()])))
            begin = blank.end()
            if data:
                yield "\n".join(data)
        del left[:begin]
        if len(left) > _LONGEST:
            raise failure("bad_stream", "an event without an end")
    if _object(text := b"\n".join(_raw_data(bytes(left))).decode(errors="replace")) is not None:
        yield text


def _data(event: bytes) -> Iterator[str]:
    return (value.decode() for value in _raw_data(event))


def _raw_data(event: bytes) -> Iterator[bytes]:
    for line in _LINE_END.split(event):
        name, _, value = line.partition(b":")
        if name == b"data":
            yield value.removeprefix(b" ")


_CHATTY = ("httpx", "httpcore")
_LONGEST_BODY = 65_536  # bytes of an error's body that are read
_REFUSALS = frozenset({400, 422, 500})  # statuses under which a request's form is refused


class OpenAIApi:
    """One client with its connection pool, which learns what the server wants otherwise: what a
    refusal names is changed (see `wishes`), for later requests too if the server then answers.

    A server that loads its model, or reads a long prompt slowly, is silent until it answers, and
    begins anew with each request. So each silence before an answer that is too long doubles what
    is borne, up to the longest time of a call.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        secret: Secret | None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        for name in _CHATTY:  # below this level they write addresses and headers into the log
            logging.getLogger(name).setLevel(logging.WARNING)
        self._cures = cures(settings.table)
        self._unasked = unasked_keys(settings.capabilities)
        self._wanted: frozenset[str] = frozenset()
        self._silence = settings.timeout.total_seconds()
        self._longest = max(self._silence, settings.call_timeout.total_seconds())
        self._connect = settings.connect_timeout.total_seconds()
        self._url = f"{settings.base_url.rstrip('/') or OPENAI_URL}/chat/completions"
        headers = {"accept": "text/event-stream", "content-type": "application/json"}
        if secret is not None:
            headers["authorization"] = f"Bearer {secret.reveal()}"
        self._client = httpx.AsyncClient(
            transport=transport,
            verify=certificates() if transport is None else True,
            headers=headers,
            limits=httpx.Limits(max_connections=32, max_keepalive_connections=8),
            follow_redirects=False,
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def events(self, body: dict[str, Any]) -> AsyncGenerator[str, None]:
        """Send the request and yield the data of the stream's events. Raises ProviderError for
        every failure of the service or of the connection. Defects before the request is sent, such
        as a body that cannot be encoded, are raised as they are.
        """
        wanted, first, is_heard = self._wanted, None, False
        silence = self._silence
        timeout = httpx.Timeout(silence, connect=self._connect)
        try:
            while True:
                sent = await offload_rows(body["messages"], partial(adapted, body, wanted))
                content = await offload_rows(body["messages"], partial(_encode, sent))
                async with self._client.stream(
                    "POST", self._url, content=content, timeout=timeout
                ) as response:
                    is_heard = True
                    if response.status_code == 200:
                        self._learn(wanted)
                        async for data in self._answer(response, sent):
                            yield data
                        return
                    said = await _text(response.aiter_bytes(), _LONGEST_BODY)
                is_refusal = response.status_code in _REFUSALS
                more = wishes(said, sent, self._unasked) - wanted if is_refusal else None
                first = first if first and is_refusal else (response, said, sent)
                if not more:
                    raise self._refused(*first)
                wanted |= more
        except (httpx.HTTPError, httpx.StreamError) as error:
            if isinstance(error, httpx.ReadTimeout) and not is_heard:
                self._silence = max(self._silence, min(2 * silence, self._longest))
            raise failure(_network_kind(error)) from None
        except httpx.InvalidURL:
            raise failure("connect") from None
        except UnicodeDecodeError:  # the exception holds the bytes that were received
            raise failure("bad_stream", "no UTF-8") from None

    async def _answer(
        self, response: httpx.Response, body: dict[str, Any]
    ) -> AsyncGenerator[str, None]:
        """Yield the data of each event, or a whole answer that was not streamed as one. The body's
        first character tells what it is, since many servers and proxies name another type.
        """
        pieces, begun = response.aiter_bytes(), b""
        while not begun.strip() and (piece := await anext(pieces, None)) is not None:
            begun += piece
        first = begun.removeprefix(_MARK).lstrip()[:1]
        if first == b"<":
            raise failure("not_found", "a web page in place of an answer")
        if first not in (b"{", b"["):
            is_stream = "event-stream" in response.headers.get("content-type", "").lower()
            async for data in data_of(_joined(begun, pieces)):
                is_stream = True
                yield data
            if not is_stream:
                raise failure("bad_stream", "no event stream")
            return
        text = await _text(_joined(begun, pieces), _LONGEST)
        answer = _object(text)
        if answer is None:
            raise failure("bad_stream", "no event stream")
        if error_in(answer) or "choices" not in answer:
            raise self._refused(response, text, body)
        yield json.dumps(answer)

    def _learn(self, wanted: frozenset[str]) -> None:
        if wanted != self._wanted:
            log.info("request_adapted", wanted=sorted(wanted))
            self._wanted = wanted

    def _refused(self, response: httpx.Response, text: str, body: dict[str, Any]) -> ProviderError:
        error, status = _error(text), response.status_code
        return refusal_error(
            status_in(error, status) if status == 200 else status,
            error_word(error),
            text,
            response.headers,
            body=body,
            cures=self._cures,
        )


def _encode(body: dict[str, Any]) -> bytes:
    """Encode the body as JSON bytes. A lone surrogate, which rows of older versions may hold, is
    sent in readable form.
    """
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        log.warning("request_mended", cause="half of a surrogate pair")
        return _encode(strict.as_unicode(body))


async def _joined(begun: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield begun
    async for piece in pieces:
        yield piece


async def _text(pieces: AsyncIterator[bytes], most: int) -> str:
    """Read the beginning of the body, at most `most` bytes. A lost connection gives less, since the
    status matters even without a body.
    """
    found = b""
    try:
        async for piece in pieces:
            found += piece
            if len(found) >= most:
                break
    except httpx.HTTPError:
        pass
    return found[:most].decode("utf-8-sig", errors="replace")


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a body is; None if it is none."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(body, list) and body:  # some gateways wrap it
        body = body[0]
    return body if isinstance(body, dict) else None


def _error(text: str) -> object:
    """Return the error object of a response body; None if there is none."""
    body = _object(text)
    return error_in(body) or body if body is not None else None


def _network_kind(error: Exception) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return "connect_timeout"
    if isinstance(error, httpx.TimeoutException):
        return "timeout"
    if isinstance(error, (httpx.ConnectError, httpx.ProxyError, httpx.UnsupportedProtocol)):
        return unreachable(error)
    return "bad_stream" if isinstance(error, httpx.DecodingError) else "stream_cut"
