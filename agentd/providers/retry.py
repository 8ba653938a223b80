"""Trying again, patiently and not for ever."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from typing import NoReturn

import structlog

from agentd.domain.durations import format_duration
from agentd.domain.prompt import Answered, Prompt, ProviderEvent, Restarted, RetryScheduled
from agentd.errors import ProviderError
from agentd.ports import Clock, Provider
from agentd.providers.events import closing
from agentd.providers.faults import FAULTS, ONCE_MORE
from agentd.providers.settings import ServiceSettings

log = structlog.get_logger()

_FIRST_WAIT = 0.5  # seconds, doubled by each try
_LONGEST_WAIT = 8.0


class Retrying:
    """A provider that calls another one again when its failure may pass.

    Waits double from half a second to eight, less up to half by chance, so that many clients do not
    come back at once; a longer `Retry-After` is waited for, unless it is over the limit: then the
    call fails at once. Deltas of a failed try are taken back with `Restarted`; every wait begins with
    `RetryScheduled`.
    """

    def __init__(
        self,
        provider: Provider,
        settings: ServiceSettings,
        clock: Clock,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._inner = provider
        self._tries = settings.tries
        self._limit = settings.retry_after_limit.total_seconds()
        self._clock = clock
        self._chance = chance

    @property
    def name(self) -> str:
        """The wrapped provider's."""
        return self._inner.name

    @property
    def model(self) -> str:
        """The wrapped provider's."""
        return self._inner.model

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Events of one answer, `Answered` last. Raises the last try's ProviderError."""
        attempt = 1
        while True:
            shown = False
            try:
                async with closing(self._inner.stream(prompt)) as events:
                    async for event in events:
                        shown = shown or not isinstance(event, Answered)
                        yield event
                return
            except ProviderError as error:
                wait = self._wait(error, attempt)
                reason, text = error.kind, _told(error)
            log.info("provider_retry", kind=reason, attempt=attempt, wait_s=round(wait, 2))
            if shown:
                yield Restarted(reason)
            yield RetryScheduled(reason, text, wait)
            await self._clock.sleep(wait)
            attempt += 1

    def _wait(self, error: ProviderError, attempt: int) -> float:
        """Seconds until the next try. Raises the error if there is to be none."""
        tries = min(self._tries, 2) if error.kind in ONCE_MORE else self._tries
        if not error.retryable or attempt >= tries:
            raise error
        asked = error.retry_after or 0.0
        if asked > self._limit:
            _refuse(error, asked, self._limit)
        backoff = min(_FIRST_WAIT * 2.0 ** (attempt - 1), _LONGEST_WAIT)
        return max(asked, backoff * (1 - self._chance() / 2))


def _told(error: ProviderError) -> str:
    """Why a try failed, without the details that its message has for the log."""
    fault = FAULTS.get(error.kind)
    return fault.message if fault else error.message


def _refuse(error: ProviderError, asked: float, limit: float) -> NoReturn:
    raise ProviderError(
        f"{error.message} It asks for a pause of {asked:.0f} s, more than the {limit:.0f} s that "
        "a call waits.",
        cure=f"Try again in {format_duration(timedelta(seconds=round(asked)))}, or raise [provider] retry_after_limit.",
        kind=error.kind,
        retry_after=asked,
        away=error.away,
    ) from error
