"""A provider that never spends more than `[budget]` allows.

The most that a call can use is reserved before the call, and what it did use is charged after it,
with or without an answer. So no call goes over a limit, however many run at once and however often
the daemon restarts.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial

import structlog
from msgspec.structs import replace

from agentd.core.errors import BudgetReached, ProviderError, StorageError
from agentd.core.money import Cap
from agentd.core.offloading import offload_rows
from agentd.core.ports import Clock, Ledger, Provider
from agentd.core.prompt import (
    AnswerBegun,
    AnswerCompleted,
    Prompt,
    ProviderEvent,
    TextDelta,
    ThoughtDelta,
    closing,
)
from agentd.core.turn import SessionKey, Usage
from agentd.engine import tokens
from agentd.engine.budget import Budget
from agentd.providers.faults import failure

log = structlog.get_logger()

# The estimate may be less than the service counts; the reservation must not be.
_MARGIN = 1.3


class MeteredProvider:
    """Wraps a provider so that each call reserves its largest possible cost first."""

    def __init__(
        self,
        provider: Provider,
        ledger: Ledger,
        limits: Budget,
        clock: Clock,
        max_tokens: int,
    ) -> None:
        self._provider = provider
        self._ledger = ledger
        self._limits = limits
        self._clock = clock
        self._max_tokens = max_tokens

    @property
    def name(self) -> str:
        """The wrapped provider's name."""
        return self._provider.name

    @property
    def model(self) -> str:
        """The wrapped provider's model."""
        return self._provider.model

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Yield the wrapped provider's events, without `AnswerBegun`. `AnswerCompleted` carries the
        reservation that is to be charged and the name of the model whose price applies.

        Raises ProviderError of kind `budget` instead of making a call that could pass a limit, or
        whose model has no price to tell that by.
        """
        now = self._clock.now().astimezone(self._clock.zone)
        caps = self._limits.caps(now, prompt.origin)
        held = await self._reserve(prompt, caps) if caps else None
        said, used = 0, None  # what to charge if no answer comes
        begun = answered = False
        try:
            async with closing(self._provider.stream(prompt)) as events:
                async for event in events:
                    if isinstance(event, AnswerBegun):
                        begun = True
                        continue
                    if isinstance(event, AnswerCompleted):
                        answered = True
                        model = self._limits.charged_as(event.model, prompt.model or self.model)
                        yield replace(event, model=model, reservation=held)
                        return
                    if isinstance(event, TextDelta | ThoughtDelta):
                        said += tokens.of_text(event.text)
                    yield event
        except ProviderError as error:
            used = error.usage
            raise
        finally:
            if not answered:
                if (said or begun) and used is None:
                    # A service charges for the input once it has begun to answer.
                    used = Usage(most_of(await _prompt_tokens(prompt), 0).input_tokens, said)
                if used is not None or held is not None:
                    await self._charge_cut(prompt, used or Usage(), held)

    async def _reserve(self, prompt: Prompt, caps: Sequence[Cap]) -> int:
        """Reserve the most that the call can use and return the reservation's id. Raises
        ProviderError (`budget`).
        """
        model = prompt.model or self.model
        if self._limits.unpriced([model]):
            refusal = failure("budget", f"a limit in dollars, but no price for {model}")
            cure = f'add [budget.prices."{model}"] with input and output, or name another model'
            raise ProviderError(refusal.message, cure=cure, kind="budget")
        most = most_of(await _prompt_tokens(prompt), prompt.max_tokens or self._max_tokens)
        cost = self._limits.price(model, most)
        try:
            return await self._ledger.reserve(prompt.origin, model, most, cost, caps)
        except BudgetReached as error:
            refusal = failure("budget", error.message)
            raise ProviderError(refusal.message, cure=error.cure, kind="budget") from error

    async def _charge_cut(self, prompt: Prompt, used: Usage, held: int | None) -> None:
        """Charge the tokens of a call that ended without an answer. When the ledger cannot be
        written, nothing is raised, so that a cancellation stays one; the reservation, which is
        larger, then keeps counting.
        """
        model = prompt.model or self.model
        usd = self._limits.price(model, used)
        try:
            await self._ledger.charge(
                SessionKey(""), prompt.origin, model, used, usd, reservation=held
            )
        except StorageError as error:
            log.warning("cut_call_not_charged", reason=error.reason, action="all set aside counts")


def most_of(input_tokens: int, max_tokens: int) -> Usage:
    """Return the most that a call can use: `input_tokens` and a margin, and an answer of
    `max_tokens`.
    """
    return Usage(round(input_tokens * _MARGIN), max_tokens)


async def _prompt_tokens(prompt: Prompt) -> int:
    return await offload_rows(prompt.messages, partial(tokens.of_prompt, prompt))
