"""Vectors from OpenAI, or from any server with its embeddings API, such as Voyage, Gemini,
Ollama.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import structlog

from agentd.core.errors import EmbedderFault, StorageError
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.memory.index.embedding.choice import DIMENSIONS, EmbeddingService
from agentd.memory.index.embedding.daily import DailyTokens
from agentd.memory.index.embedding.embedding_settings import ModelSettings
from agentd.memory.index.embedding.pause import Backoff

if TYPE_CHECKING:
    from agentd.memory.index.embedding.openai_api import EmbeddingAnswer, EmbeddingsApi

log = structlog.get_logger()


LONGEST_TEXT = 20_000  # characters
CHARACTERS = 3  # a token, estimated low, so that the service accepts each batch
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0  # seconds between tries, doubling

Spent = Callable[[str, int], Awaitable[None]]  # records the tokens that a model was sent


class OpenAIEmbedder:
    """Sends texts in batches and retries failures that may pass. After five failed requests in a
    row the service is not asked for 30 s, doubling with each further failure up to ten minutes.
    """

    def __init__(
        self,
        service: EmbeddingService,
        settings: ModelSettings,
        tokens: DailyTokens,
        clock: Clock,
        chance: Callable[[], float] = random.random,
        spent: Spent | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        """`spent` is called with the tokens of each answered request, as the service reports them,
        else as estimated; it raises StorageError if it cannot record them. Secrets that `redactor`
        finds are not sent.
        """
        self._service = service
        self._settings = settings
        self._tokens = tokens
        self._clock = clock
        self._chance = chance
        self._spent = spent
        self._redactor = redactor or Redactor()
        self._pause = Backoff(clock, after=5, first=30.0, longest=600.0)
        self._api: EmbeddingsApi | None = None
        self._opening = asyncio.Lock()
        self._zero = bytes(4 * service.dimension)

    @property
    def model(self) -> str:
        """The identity of the vectors: host, model, dimension."""
        return self._service.identity

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return self._service.dimension

    async def aclose(self) -> None:
        """Close the connections."""
        api, self._api = self._api, None
        if api is not None:
            await api.aclose()

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[bytes]:
        """Return one vector for each text; blank texts are not sent and get zeros. Raises
        EmbedderFault.
        """
        found = [self._zero] * len(texts)
        prefix = self._settings.query_prefix if query else self._settings.text_prefix
        asked = {
            place: f"{prefix}{self._redactor.kept(text).text[:LONGEST_TEXT]}"
            for place, text in enumerate(texts)
            if text.strip()
        }
        for batch in self._batches(asked):
            # A search does not wait for its vector: another embedder has answered by then.
            tries = 1 if query else self._settings.tries
            rows = await self._request([asked[place] for place in batch], tries)
            for place, row in zip(batch, rows, strict=True):
                found[place] = row
        return found

    def _batches(self, texts: dict[int, str]) -> list[list[int]]:
        batches: list[list[int]] = []
        room = 0
        for place, text in texts.items():
            tokens = _estimate(text)
            if not batches or len(batches[-1]) == self._settings.batch_texts or tokens > room:
                batches.append([])
                room = self._settings.batch_tokens
            batches[-1].append(place)
            room -= tokens
        return batches

    async def _request(self, texts: Sequence[str], tries: int) -> Sequence[bytes]:
        self._pause.check()
        estimate = sum(map(_estimate, texts))
        await self._tokens.take(estimate)
        try:
            answer = await self._tried(self._body(texts), tries)
        except EmbedderFault as fault:
            if getattr(fault, "counts", True):
                self._pause.failed(fault)
            raise
        self._pause.worked()
        if answer.tokens:
            await self._tokens.correct(answer.tokens - estimate)
        await self._book(answer.tokens or estimate)
        return answer.rows

    async def _book(self, tokens: int) -> None:
        if self._spent is None:
            return
        try:
            await self._spent(self._service.model, tokens)
        except StorageError as error:
            raise EmbedderFault(
                f"What {self.model} costs cannot be written down: {error.message}", cure=error.cure
            ) from error

    async def _tried(self, body: dict[str, Any], tries: int) -> EmbeddingAnswer:
        api = await self._ready()
        attempt = 1
        while True:
            try:
                return await api.ask(body, self.model, self.dimension)
            except EmbedderFault as fault:
                wait = self._wait(fault, attempt, tries)
                log.info("embedder_retry", attempt=attempt, wait_s=round(wait, 2))
            await self._clock.sleep(wait)
            attempt += 1

    def _wait(self, fault: EmbedderFault, attempt: int, tries: int) -> float:
        """Return the seconds until the next try. Raises the fault if there is to be none."""
        asked = float(getattr(fault, "wait", 0.0))
        passes = getattr(fault, "passes", False) and attempt < tries
        if not passes or asked > self._settings.retry_after_limit.total_seconds():
            raise fault
        backoff = min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT)
        return max(asked, backoff * (1 - self._chance() / 2))

    def _body(self, texts: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._service.model, "input": list(texts)}
        native = DIMENSIONS.get(self._service.model)
        if native and self._settings.dimension and self._settings.dimension != native:
            body["dimensions"] = self._settings.dimension  # these models can return shorter vectors
        return body

    async def _ready(self) -> EmbeddingsApi:
        async with self._opening:
            if self._api is None:
                self._api = await asyncio.to_thread(
                    _connect, self._settings, self._service, self._clock
                )
            return self._api


def _connect(settings: ModelSettings, service: EmbeddingService, clock: Clock) -> EmbeddingsApi:
    from agentd.memory.index.embedding.openai_api import EmbeddingsApi

    return EmbeddingsApi(settings, service.secret, clock)


def _estimate(text: str) -> int:
    return len(text) // CHARACTERS + 1
