"""What model calls cost, and how much the heartbeat may spend: `[budget]`."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from agentd.domain.settings import Settings
from agentd.domain.turn import Origin, Usage
from agentd.ports import Clock, Ledger


class Price(Settings):
    """US dollars for a million tokens of one model."""

    input: float = Field(ge=0, description="tokens read")
    output: float = Field(ge=0, description="tokens written")
    cache_read: float | None = Field(None, ge=0, description="tokens read from a cache")
    cache_write: float | None = Field(None, ge=0, description="tokens written to a cache")

    def of(self, usage: Usage) -> float:
        """What the usage costs. Cache prices that are not given are a tenth of the input price for
        reading and a quarter more for writing, as Anthropic charges.
        """
        read = self.input * 0.1 if self.cache_read is None else self.cache_read
        write = self.input * 1.25 if self.cache_write is None else self.cache_write
        total = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
        )
        return total / 1_000_000


class BudgetSettings(Settings):
    """What calls cost and may cost."""

    prices: dict[str, Price] = Field(
        default_factory=dict,
        description="US dollars for a million tokens, by model: {NAME = {input = 3.0, output = 15.0}}",
    )
    heartbeat_daily_tokens: int = Field(
        500_000, ge=0, description="tokens that beats may use in a day; 0: no limit"
    )
    heartbeat_daily_usd: float = Field(
        0.0, ge=0, description="US dollars that beats may cost in a day; 0: no limit"
    )

    def price(self, model: str, usage: Usage) -> float:
        """What a call cost; 0 for a model without a price."""
        price = self.prices.get(model)
        return price.of(usage) if price else 0.0


class HeartbeatBudget:
    """Whether beats have used up their day."""

    def __init__(self, settings: BudgetSettings, ledger: Ledger, clock: Clock) -> None:
        self._settings = settings
        self._ledger = ledger
        self._clock = clock

    async def is_used_up(self) -> bool:
        """Whether today's beats have reached a limit; the day is the owner's."""
        tokens, usd = await self._ledger.spent(self._midnight(), Origin.HEARTBEAT)
        limits = self._settings
        return bool(
            (limits.heartbeat_daily_tokens and tokens >= limits.heartbeat_daily_tokens)
            or (limits.heartbeat_daily_usd and usd >= limits.heartbeat_daily_usd)
        )

    def _midnight(self) -> datetime:
        today = self._clock.now().astimezone(self._clock.zone)
        return today.replace(hour=0, minute=0, second=0, microsecond=0)
