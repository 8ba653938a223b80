"""An HTTP client for one embeddings endpoint. Importing this module imports httpx."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

import httpx
from msgspec import Struct

from agentd.core.errors import ConfigError, EmbedderFault
from agentd.core.ports import Clock
from agentd.core.secrets import Secret
from agentd.core.settings import OPENAI_URL, trusted_certificates
from agentd.core.times import retry_after
from agentd.memory.index.embedding import vectors
from agentd.memory.index.embedding.embedding_settings import ModelSettings

_CHATTY = ("httpx", "httpcore")
_LONGEST_ANSWER = 64 << 20  # bytes
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_CURES = {
    401: "Check the key that {table} names.",
    403: "Check the key that {table} names, and what it may do.",
    404: "Check base_url and model in {table}.",
}
_USED_UP = "insufficient_quota"  # sent with status 429, but waiting does not help


class Refused(EmbedderFault):
    """The service did not answer with vectors. `passes`: a retry may help; `counts`: the service,
    not the request, is to blame.
    """

    def __init__(
        self,
        message: str,
        *,
        cure: str = "",
        passes: bool = False,
        counts: bool = True,
        wait: float = 0.0,
    ) -> None:
        super().__init__(message, cure=cure)
        self.passes = passes
        self.counts = counts
        self.wait = wait  # seconds that the service asked to wait


class EmbeddingAnswer(Struct, frozen=True):
    """The vectors of one request, and the tokens that the service counted, 0 if it did not report
    them.
    """

    rows: Sequence[bytes]
    tokens: int


class EmbeddingsApi:
    """An HTTP client with its connections."""

    def __init__(self, settings: ModelSettings, secret: Secret | None, clock: Clock) -> None:
        for name in _CHATTY:  # below this level they write addresses and headers into the log
            logging.getLogger(name).setLevel(logging.WARNING)
        self._clock = clock
        self._table = settings.table
        self._url = f"{settings.base_url.rstrip('/') or OPENAI_URL}/embeddings"
        headers = {"content-type": "application/json"}
        if secret is not None:
            headers["authorization"] = f"Bearer {secret.reveal()}"
        self._timeout = settings.timeout.total_seconds()
        try:
            verify = trusted_certificates()
        except ConfigError as error:
            raise EmbedderFault(f"{error.message}.", cure=f"{error.cure}.") from None
        self._client = httpx.AsyncClient(
            verify=verify,
            headers=headers,
            timeout=httpx.Timeout(self._timeout, connect=min(10.0, self._timeout)),
            follow_redirects=False,
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def ask(self, body: dict[str, Any], model: str, dimension: int) -> EmbeddingAnswer:
        """Return the vectors for `body["input"]`, each checked. Raises EmbedderFault; as Refused if
        the service gave no answer or an error.
        """
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", self._url, content=content) as response,
            ):
                data = await _read(response)
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, TimeoutError) as error:
            what = "gave no answer in time" if _is_late(error) else "cannot be reached"
            raise Refused(
                f"The embeddings service at {self._url} {what}.",
                cure=f"Check the network, and base_url in {self._table}.",
                passes=True,
            ) from None
        if response.status_code != 200:
            raise self._refusal(response, data)
        count = len(body["input"])
        return await asyncio.to_thread(_answer, data, count, model, dimension, self._table)

    def _refusal(self, response: httpx.Response, data: bytes) -> Refused:
        status = response.status_code
        code, told = _error_of(data)
        passes = status in _PASSING and code != _USED_UP
        return Refused(
            f"The embeddings service answered {status}{': ' if told else ''}{told}.",
            cure=_CURES.get(status, "Look at the service's own pages for this answer.").format(
                table=self._table
            ),
            passes=passes,
            counts=status not in (400, 413, 422),
            wait=(retry_after(response.headers, self._clock.now()) or 0.0) if passes else 0.0,
        )


async def _read(response: httpx.Response) -> bytes:
    found = bytearray()
    async for piece in response.aiter_bytes():
        found += piece
        if len(found) > _LONGEST_ANSWER:
            raise Refused("The embeddings service's answer has no end.")
    return bytes(found)


def _is_late(error: Exception) -> bool:
    return isinstance(error, (httpx.TimeoutException, TimeoutError))


def _error_of(data: bytes) -> tuple[str, str]:
    """Return the code and the first 200 characters of the message of an error."""
    try:
        body = json.loads(data)
        body = body[0] if isinstance(body, list) and body else body
        error = body.get("error", body)
        if not isinstance(error, dict):
            return "", str(error)[:200]
        words = error.get("message") or error.get("detail") or ""
        return str(error.get("code") or error.get("type") or ""), str(words)[:200].rstrip(". ")
    except (ValueError, AttributeError, RecursionError):
        return "", ""


def _answer(data: bytes, count: int, model: str, dimension: int, table: str) -> EmbeddingAnswer:
    """Return the vectors in the order of the texts. Raises EmbedderFault unless there is one for
    each.
    """
    try:
        body = json.loads(data)
        entries = body["data"]
        if len(entries) != count:
            raise EmbedderFault(f"{model} gave {len(entries)} vectors for {count} texts.")
        places = [entry.get("index", at) for at, entry in enumerate(entries)]
        if sorted(places) != list(range(count)):
            raise EmbedderFault(f"{model} numbered its vectors wrongly.")
        rows = [b""] * count
        for place, entry in zip(places, entries, strict=True):
            numbers = [float(number) for number in entry["embedding"]]
            if len(numbers) != dimension:
                raise vectors.wrong_size(model, len(numbers), dimension, table)
            rows[place] = vectors.unit(numbers, model)
        tokens = (body.get("usage") or {}).get("total_tokens", 0)
        return EmbeddingAnswer(rows, max(0, tokens) if isinstance(tokens, int) else 0)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise EmbedderFault(
            f"What {model} answered holds no vectors.",
            cure=f"Check that base_url in {table} leads to an embeddings endpoint.",
        ) from error
