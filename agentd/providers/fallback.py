"""Asking another model when the first one's service fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

import structlog

from agentd.domain.health import Problem
from agentd.domain.prompt import Answered, Prompt, ProviderEvent, Restarted, RetryScheduled
from agentd.errors import ProviderError
from agentd.providers.breaker import CircuitBreaker
from agentd.providers.events import closing
from agentd.providers.faults import FAULTS

log = structlog.get_logger()

# No failures of the service, but reasons to ask the next one: it may be free.
_GIVE_WAY = frozenset({"breaker_open", "budget"})


class Fallback:
    """A provider that asks the first of several, and the next one when a service fails.

    Every call begins with the first again; one whose breaker is open costs nothing. What another
    service would refuse as well goes to the caller at once: a prompt that is malformed or too long,
    an answer that is none. A prompt's own model is the first provider's; the others have theirs.
    """

    def __init__(self, providers: Sequence[CircuitBreaker]) -> None:
        self._providers = tuple(providers)
        self._current = self._providers[0]  # whose answer came last
        self._cause: ProviderError | None = None  # why it is not the first

    @property
    def name(self) -> str:
        """The kind of the provider that answered last."""
        return self._current.name

    @property
    def model(self) -> str:
        """The model of the provider that answered last."""
        return self._current.model

    def is_open(self) -> bool:
        """Whether no provider takes calls at the moment."""
        return all(p.is_open() for p in self._providers)

    def status(self) -> dict[str, Any]:
        """The first one's breaker, but `state` open or closed for all together, and `chain`: each
        provider's kind, model and breaker, and whether it answered last (`in_use`).
        """
        chain = [
            {"kind": p.name, "model": p.model, "in_use": p is self._current, **p.status()}
            for p in self._providers
        ]
        state = "open" if self.is_open() else "closed"
        return {**self._providers[0].status(), "state": state, "chain": chain}

    def why(self) -> str:
        """Who answers instead of the first provider, and why; "" while that one does."""
        if self._cause is None:
            return ""
        first = self._providers[0]
        return f"{_label(self._current)} answers instead of {_label(first)} ({self._cause.kind})"

    def problems(self) -> tuple[Problem, ...]:
        """The open breakers, and the fallback while it is in use."""
        found = tuple(problem for p in self._providers for problem in p.problems())
        if self._cause is None:
            return found
        text = f"{self.why()}: {self._cause.message}"
        return (Problem("provider_fallback", text, self._cause.cure), *found)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Events of one answer, `Answered` last; `Restarted` takes back what a failed one has shown.

        Raises the ProviderError that ends the matter, or `_all_failed` of all there were.
        """
        failures: list[tuple[CircuitBreaker, ProviderError]] = []
        for provider in self._providers:
            shown = False
            try:
                async with closing(provider.stream(_for(prompt, is_first=not failures))) as events:
                    async for event in events:
                        if isinstance(event, Answered):
                            self._answered_by(provider, failures)
                        shown = not isinstance(event, (Answered, Restarted, RetryScheduled))
                        yield event
                return
            except ProviderError as error:
                if not _is_of_the_service(error):
                    raise
                failures.append((provider, error))
                reason = error.kind
            log.warning("provider_gave_way", kind=provider.name, model=provider.model, why=reason)
            if shown and provider is not self._providers[-1]:
                yield Restarted(reason)
        raise _all_failed(failures)

    def _answered_by(
        self, provider: CircuitBreaker, failures: Sequence[tuple[CircuitBreaker, ProviderError]]
    ) -> None:
        if provider is not self._current:
            log.info("provider_in_use", kind=provider.name, model=provider.model)
        self._current = provider
        self._cause = failures[0][1] if failures else None


def _for(prompt: Prompt, *, is_first: bool) -> Prompt:
    return prompt if is_first else replace(prompt, model=None)


def _is_of_the_service(error: ProviderError) -> bool:
    fault = FAULTS.get(error.kind)
    return fault is None or fault.counts or error.kind in _GIVE_WAY


def _all_failed(failures: Sequence[tuple[CircuitBreaker, ProviderError]]) -> ProviderError:
    """One error for all; its kind and cure are those of the first provider that was really asked."""
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
