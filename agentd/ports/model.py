"""A language model, what guards it, and what it costs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Protocol

from agentd.domain.money import Cap, Charge
from agentd.domain.prompt import Prompt, ProviderEvent
from agentd.domain.turn import Origin, SessionKey, Usage


class Provider(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """The kind: `anthropic`, `offline` … What `Answered.provider` carries."""

    @property
    def model(self) -> str:
        """The model used when a prompt names none."""

    def stream(self, prompt: Prompt) -> AsyncIterator[ProviderEvent]:
        """Events of one answer, `Answered` last.

        Raises ProviderError, ContextOverflow; a stream without `Answered` has always raised.
        Closing the iterator ends the call.
        """


class Breaker(Protocol):
    """The provider's circuit breaker, as others see it."""

    def is_open(self) -> bool:
        """Whether calls are refused at the moment."""


class ServiceRecord(Protocol):
    """Whether the model's service, as it is configured now, has ever answered."""

    async def has_answered(self) -> bool:
        """Whether it has. Raises StorageError."""

    async def answered(self) -> None:
        """It has: durable when this returns, and quick when it was known. Raises StorageError."""


class Ledger(Protocol):
    """What model calls have cost."""

    async def reserve(
        self, origin: Origin, model: str, usage: Usage, cost_usd: float, caps: Sequence[Cap]
    ) -> int:
        """Set aside the most that a call can use, before it is made; returns the reservation.

        What a crash leaves reserved stays spent. Raises BudgetReached, with nothing set aside, if a
        cap would be passed.
        """

    async def charge(
        self,
        session: SessionKey,
        origin: Origin,
        model: str,
        usage: Usage,
        cost_usd: float,
        *,
        reservation: int | None = None,
    ) -> None:
        """Record one model call, in place of what was reserved for it."""

    async def spent(self, since: datetime, origin: Origin | None = None) -> tuple[int, float]:
        """Total tokens and US dollars since then, of one origin or of all; reservations count."""

    async def breakdown(self, since: datetime) -> tuple[tuple[SessionKey, Origin, int, float], ...]:
        """Tokens and US dollars since then by session and origin, the dearest first."""

    async def entries(self) -> tuple[Charge, ...]:
        """Every call, the oldest first."""

    async def cache_use(self, since: datetime) -> tuple[int, int]:
        """Tokens read from a cache since then, and all tokens read by models that have one: not by
        those that make vectors.
        """
