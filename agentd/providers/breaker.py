"""Not calling a service that keeps failing."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import structlog

from agentd.domain.durations import format_duration
from agentd.domain.health import Problem
from agentd.domain.prompt import Answered, Prompt, ProviderEvent
from agentd.errors import ProviderError
from agentd.ports import Clock, Provider
from agentd.providers.events import closing
from agentd.providers.faults import FAULTS, failure

log = structlog.get_logger()

_FAILURES = 5
_FIRST_PAUSE = 30.0  # seconds, doubled by each failed probe
_LONGEST_PAUSE = 600.0


class CircuitBreaker:
    """A provider that refuses calls to another one after five failures of the service in a row.

    After 30 s one call is let through; if that fails too the pause doubles, up to ten minutes.
    An answer closes the breaker, and so does an error which shows that the service works (a
    malformed or too long prompt, for example). A call that is abandoned says nothing.
    """

    def __init__(self, provider: Provider, clock: Clock) -> None:
        self._inner = provider
        self._clock = clock
        self._failures = 0
        self._pause = 0.0  # 0 while closed
        self._retry_at = 0.0
        self._is_probing = False
        self._cause: ProviderError | None = None

    @property
    def name(self) -> str:
        """The wrapped provider's."""
        return self._inner.name

    @property
    def model(self) -> str:
        """The wrapped provider's."""
        return self._inner.model

    def is_open(self) -> bool:
        """Whether calls are refused at the moment."""
        return bool(self._pause) and (self._is_probing or self._left() > 0)

    def status(self) -> dict[str, Any]:
        """`{state, failures, retry_in_s, cause}` for `agentd status`."""
        state = "open" if self.is_open() else "half_open" if self._pause else "closed"
        return {
            "state": state,
            "failures": self._failures,
            "retry_in_s": round(self._left(), 1),
            "cause": self._cause.kind if self._cause else "",
        }

    def problems(self) -> tuple[Problem, ...]:
        """The cause, as long as the breaker is not closed."""
        if not self._pause or self._cause is None:
            return ()
        text = (
            f"Calls to the model are paused after {self._failures} failures: {self._cause.message}"
        )
        return (Problem("breaker_open", text, self._cause.cure),)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Events of one answer. Raises ProviderError `breaker_open` with the seconds left in
        `retry_after` while calls are refused; it is `away` if the last failure was.
        """
        if self.is_open():
            raise self._refusal()
        is_probe = bool(self._pause)
        self._is_probing = is_probe
        try:
            async with closing(self._inner.stream(prompt)) as events:
                async for event in events:
                    if isinstance(event, Answered):  # the reader may leave with it
                        self._answered()
                    yield event
        except ProviderError as error:
            self._failed(error, is_probe=is_probe)
            raise
        finally:
            if is_probe:
                self._is_probing = False

    def _left(self) -> float:
        return max(0.0, self._retry_at - self._clock.monotonic()) if self._pause else 0.0

    def _refusal(self) -> ProviderError:
        left = self._left()
        wait = format_duration(timedelta(seconds=math.ceil(left)))
        when = f"the next try comes in {wait}" if left else "a try is under way"
        why = f"; last: {self._cause.message}" if self._cause else ""
        away = self._cause is not None and self._cause.away
        return failure("breaker_open", when + why, retry_after=left, away=away)

    def _answered(self) -> None:
        if self._pause:
            log.info("provider_recovered", failures=self._failures)
        self._failures, self._pause, self._cause = 0, 0.0, None

    def _failed(self, error: ProviderError, *, is_probe: bool) -> None:
        fault = FAULTS.get(error.kind)
        if fault is not None and not fault.counts:
            self._answered()
            return
        self._failures += 1
        self._cause = error
        if is_probe:
            self._trip(min(self._pause * 2, _LONGEST_PAUSE))
        elif self._failures >= _FAILURES and not self._pause:
            self._trip(_FIRST_PAUSE)

    def _trip(self, pause: float) -> None:
        self._pause = pause
        self._retry_at = self._clock.monotonic() + pause
        kind = self._cause.kind if self._cause else ""
        log.warning("provider_paused", failures=self._failures, pause_s=pause, kind=kind)
