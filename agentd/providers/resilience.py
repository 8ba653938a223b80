"""Providers that wrap others which may fail: by retries, by a circuit breaker, by fallbacks."""

from __future__ import annotations

import math
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NoReturn

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import ProviderError
from agentd.core.health import Problem
from agentd.core.ports import Clock, Provider
from agentd.core.prompt import (
    AnswerBegun,
    AnswerCompleted,
    Prompt,
    ProviderEvent,
    RetryScheduled,
    StreamRestarted,
    closing,
)
from agentd.core.times import format_duration
from agentd.providers.faults import FAULTS, ONCE_MORE, failure
from agentd.providers.provider_settings import ServiceSettings

log = structlog.get_logger()

_FIRST_WAIT = 0.5  # seconds, doubled by each try
_LONGEST_WAIT = 8.0


class RetryingProvider:
    """A provider that repeats a failed call of another one where a retry may help.

    Waits double from half a second to eight, each shortened at random by up to a half, so that many
    clients do not retry at once. A longer `Retry-After` is waited for; one above the limit fails
    the call at once. `RetryScheduled` precedes every wait, and `StreamRestarted` before it takes
    back what the failed try has shown.
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
        self.name, self.model = provider.name, provider.model
        self._tries = settings.tries
        self._limit = settings.retry_after_limit.total_seconds()
        self._table = settings.table
        self._clock = clock
        self._chance = chance

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Yield the events of one answer, `AnswerCompleted` last. Raises the last try's
        ProviderError.
        """
        attempt = 1
        while True:
            shown = False
            try:
                async with closing(self._inner.stream(prompt)) as events:
                    async for event in events:
                        shown = shown or not isinstance(event, (AnswerCompleted, AnswerBegun))
                        yield event
                return
            except ProviderError as error:
                wait = self._wait(error, attempt)
                reason, text = error.kind, _as_text(error)
            log.info("provider_retry", kind=reason, attempt=attempt, wait_s=round(wait, 2))
            if shown:
                yield StreamRestarted(reason)
            yield RetryScheduled(reason, text, wait)
            await self._clock.sleep(wait)
            attempt += 1

    def _wait(self, error: ProviderError, attempt: int) -> float:
        """Return the seconds until the next try. Raises the error if there is no next try."""
        tries = min(self._tries, 2) if error.kind in ONCE_MORE else self._tries
        if not error.retryable or attempt >= tries:
            raise error
        asked = error.retry_after or 0.0
        if asked > self._limit:
            _refuse(error, asked, self._limit, self._table)
        backoff = min(_FIRST_WAIT * 2.0 ** (attempt - 1), _LONGEST_WAIT)
        return max(asked, backoff * (1 - self._chance() / 2))


def _as_text(error: ProviderError) -> str:
    """Return why a try failed, without the details that the error's message adds."""
    fault = FAULTS.get(error.kind)
    return fault.message if fault else error.message


def _refuse(error: ProviderError, asked: float, limit: float, table: str) -> NoReturn:
    raise ProviderError(
        f"{error.message} It asks for a pause of {asked:.0f} s, more than the {limit:.0f} s that "
        "a call waits.",
        cure=(
            f"Try again in {format_duration(timedelta(seconds=round(asked)))}, or raise "
            f"{table} retry_after_limit."
        ),
        kind=error.kind,
        retry_after=asked,
        away=error.away,
    ) from error


class LastHeard(Struct, frozen=True):
    """The results of a service's calls since the daemon started: when the service last answered,
    and the error of the last call, if that failed. Refusals of a request count as errors here.
    """

    answered: datetime | None = None
    error: ProviderError | None = None


_FAILURES = 5
_FIRST_PAUSE = 30.0  # seconds, doubled by each failed probe
_LONGEST_PAUSE = 600.0


class CircuitBreaker:
    """A provider that stops calling another one after five failures of the service in a row.

    After 30 s one call is let through; if that fails too, the pause doubles, up to ten minutes. An
    answer closes the breaker, and so does an error that shows that the service works (for a
    malformed or too long prompt, for example). An abandoned call changes nothing.

    It guards one service from the calls of all turns, silent ones included, and fails them at once.
    Which message then waits, and for how long, is told by `Outage` in `agentd/engine/outage.py`.
    """

    def __init__(self, provider: Provider, clock: Clock) -> None:
        self._inner = provider
        self.name, self.model = provider.name, provider.model
        self._clock = clock
        self._failures = 0
        self._pause = 0.0  # 0 while closed
        self._retry_at = 0.0
        self._is_probing = False
        self._cause: ProviderError | None = None
        self._heard = LastHeard()

    def heard(self) -> LastHeard:
        """Return the results of the service's calls since the start."""
        return self._heard

    def is_open(self) -> bool:
        """Whether calls are refused at the moment."""
        return bool(self._pause) and (self._is_probing or self._left() > 0)

    def status(self) -> dict[str, Any]:
        """Return `{state, failures, retry_in_s, cause}` for `agentd status`."""
        state = "open" if self.is_open() else "half_open" if self._pause else "closed"
        return {
            "state": state,
            "failures": self._failures,
            "retry_in_s": round(self._left(), 1),
            "cause": self._cause.kind if self._cause else "",
        }

    def problems(self) -> tuple[Problem, ...]:
        """Return the last failure while the breaker is not closed."""
        if not self._pause or self._cause is None:
            return ()
        text = (
            f"Calls to the model are paused after {self._failures} failures: {self._cause.message}"
        )
        return (Problem("breaker_open", text, self._cause.cure),)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Yield the events of one answer. While calls are refused, raises ProviderError
        `breaker_open` with the seconds left in `retry_after`; it is `away` if the last failure was.
        """
        if self.is_open():
            raise self._refusal()
        is_probe = bool(self._pause)
        self._is_probing = is_probe
        try:
            async with closing(self._inner.stream(prompt)) as events:
                async for event in events:
                    if isinstance(event, AnswerCompleted):  # the consumer may stop here
                        self._heard = LastHeard(self._clock.now())
                        self._close()
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

    def _close(self) -> None:
        if self._pause:
            log.info("provider_recovered", failures=self._failures)
        self._failures, self._pause, self._cause = 0, 0.0, None

    def _failed(self, error: ProviderError, *, is_probe: bool) -> None:
        if not error.is_unsent:
            self._heard = replace(self._heard, error=error)
        fault = FAULTS.get(error.kind)
        if fault is not None and not fault.counts:
            self._close()
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


_FIRST_AGAIN = "Every call asks the first one again; `agentd logs` has how it fails."


class Fallback:
    """A provider that asks the first of several, and the next one when a service fails.

    Every call starts with the first again; one whose breaker is open costs no time. Errors that
    another service would raise as well go to the caller at once: for a malformed or too long
    prompt, or an empty answer. A prompt's own model is used with the first provider only.
    """

    def __init__(self, providers: Sequence[CircuitBreaker]) -> None:
        self._providers = tuple(providers)
        self._current = self._providers[0]  # the provider that answered last
        self._cause: ProviderError | None = None  # the first one's, if not in use

    @property
    def name(self) -> str:
        """The kind of the provider that answered last."""
        return self._current.name

    @property
    def model(self) -> str:
        """The model of the provider that answered last."""
        return self._current.model

    def heard(self) -> LastHeard:
        """Return the results of the provider that answered last, or of the first where none has
        answered.
        """
        return self._current.heard()

    def is_open(self) -> bool:
        """Whether no provider takes calls at the moment."""
        return all(p.is_open() for p in self._providers)

    def status(self) -> dict[str, Any]:
        """Return the first provider's breaker status, with `state` open or closed for all together,
        and `chain`: each provider's kind, model and breaker, and whether it answered last
        (`in_use`).
        """
        chain = [
            {"kind": p.name, "model": p.model, "in_use": p is self._current, **p.status()}
            for p in self._providers
        ]
        state = "open" if self.is_open() else "closed"
        return {**self._providers[0].status(), "state": state, "chain": chain}

    def why(self) -> str:
        """Say which provider answers instead of the first, and why; "" while the first answers."""
        if self._cause is None:
            return ""
        first = self._providers[0]
        return f"{_label(self._current)} answers instead of {_label(first)} ({self._cause.kind})"

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of the breakers and, while it is in use, of the fallback."""
        found = tuple(problem for p in self._providers for problem in p.problems())
        if self._cause is None:
            return found
        text = f"{self.why()}: {self._cause.message}"
        passes = self._cause.retryable or self._cause.away
        cure = _FIRST_AGAIN if passes else self._cause.cure
        return (Problem("provider_fallback", text, cure), *found)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Yield the events of one answer, `AnswerCompleted` last; `StreamRestarted` takes back what
        a failed provider has shown.

        Raises the first ProviderError that no other service can avoid, or `_all_failed` when every
        provider has failed.
        """
        failures: list[tuple[CircuitBreaker, ProviderError]] = []
        for provider in self._providers:
            shown = False
            try:
                async with closing(provider.stream(_for(prompt, is_first=not failures))) as events:
                    async for event in events:
                        if isinstance(event, AnswerCompleted):
                            self._answered_by(provider, failures)
                        shown = not isinstance(
                            event, (AnswerCompleted, AnswerBegun, StreamRestarted, RetryScheduled)
                        )
                        yield event
                return
            except ProviderError as error:
                if not _is_of_the_service(error):
                    raise
                failures.append((provider, error))
                reason = error.kind
            log.warning("provider_gave_way", kind=provider.name, model=provider.model, why=reason)
            if shown and provider is not self._providers[-1]:
                yield StreamRestarted(reason)
        raise _all_failed(failures)

    def _answered_by(
        self, provider: CircuitBreaker, failures: Sequence[tuple[CircuitBreaker, ProviderError]]
    ) -> None:
        if provider is not self._current:
            log.info("provider_in_use", kind=provider.name, model=provider.model)
        self._current = provider
        self._cause = failures[0][1] if failures else None


def _for(prompt: Prompt, *, is_first: bool) -> Prompt:
    """Return the prompt for a provider. The session's choices of model and effort are for the first
    service; another one may refuse them.
    """
    return prompt if is_first else replace(prompt, model=None, effort="")


def _is_of_the_service(error: ProviderError) -> bool:
    fault = FAULTS.get(error.kind)
    # A call that was not made is no failure of the service, but the next provider may answer it.
    return fault is None or fault.counts or error.is_unsent


def _all_failed(failures: Sequence[tuple[CircuitBreaker, ProviderError]]) -> ProviderError:
    """Join the failures into one error. Its kind and cure are those of the first provider whose
    breaker was not open.
    """
    asked = [error for _, error in failures if error.kind != "breaker_open"]
    main = asked[0] if asked else failures[0][1]
    waits = [error.retry_after for _, error in failures if error.retry_after is not None]
    told = " ".join(f"{_label(provider)}: {error.message}" for provider, error in failures)
    return ProviderError(
        f"No model answers. {told}",
        cure=main.cure,
        kind=main.kind,
        retry_after=min(waits, default=None),
        away=any(error.away for _, error in failures),
    )


def _label(provider: CircuitBreaker) -> str:
    return f"{provider.name} {provider.model}"
