"""Prices and spending limits of model calls: `[budget]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from pydantic import Field

from agentd.core.errors import BudgetReached
from agentd.core.money import Cap
from agentd.core.ports import Clock, Ledger
from agentd.core.prompt import AnswerCompleted
from agentd.core.settings import Settings
from agentd.core.turn import Origin, SessionKey, Usage
from agentd.engine.durable import when_space


class TokenPrice(Settings):
    """US dollars for a million tokens of one model."""

    input: float = Field(ge=0, description="tokens read")
    output: float = Field(ge=0, description="tokens written")
    cache_read: float | None = Field(None, ge=0, description="tokens read from a cache")
    cache_write: float | None = Field(None, ge=0, description="tokens written to a cache")

    def of(self, usage: Usage) -> float:
        """Return the US dollars that the usage costs. A cache price that is not configured follows
        from the input price as Anthropic charges: a tenth of it for reads, 1.25 times it for
        writes.
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
    """What calls cost and may cost; 0 is no limit."""

    prices: dict[str, TokenPrice] = Field(
        default_factory=dict,
        description=(
            "US dollars for a million tokens, by model: {NAME = {input = 3.0, output = 15.0}}"
        ),
    )
    daily_usd: float = Field(0.0, ge=0, description="US dollars that a day may cost; 0: no limit")
    monthly_usd: float = Field(
        0.0, ge=0, description="US dollars that a month may cost; 0: no limit"
    )
    heartbeat_daily_usd: float = Field(
        0.0, ge=0, description="US dollars that beats may cost in a day; 0: no limit"
    )
    heartbeat_daily_tokens: int = Field(
        500_000, ge=0, description="tokens that beats may use in a day; 0: no limit"
    )
    facts_daily_tokens: int = Field(
        500_000, ge=0, description="tokens that reading facts may use in a day; 0: no limit"
    )


class Budget:
    """The prices and limits in force."""

    def __init__(self, settings: BudgetSettings) -> None:
        self._settings = settings

    def adopt(self, settings: BudgetSettings) -> None:
        """Use other prices and limits from now on."""
        self._settings = settings

    def price(self, model: str, usage: Usage) -> float:
        """Return the US dollars that a call cost; 0 for a model without a price."""
        price = self._price_of(model)
        return price.of(usage) if price else 0.0

    def charged_as(self, answered: str, asked: str) -> str:
        """Return the name under which a call is priced: `answered`, the name that the service
        reports, unless only `asked`, the name in the request, has a price. Services report other
        names than they accept.
        """
        is_known = self._price_of(answered) is not None or self._price_of(asked) is None
        return answered if is_known else asked

    def unpriced(self, models: Iterable[str]) -> tuple[str, ...]:
        """Return the models without a price if a limit in US dollars is set: the limit could not be
        kept for them.
        """
        limits = self._settings
        limited = limits.daily_usd or limits.monthly_usd or limits.heartbeat_daily_usd
        return tuple(m for m in models if self._price_of(m) is None) if limited else ()

    def caps(self, now: datetime, origin: Origin) -> tuple[Cap, ...]:
        """Return the limits on a call of `origin`. `now` is the owner's local time: days and months
        begin at his midnight.
        """
        limits = self._settings
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        caps = [
            Cap("daily_usd", day, usd=limits.daily_usd or None),
            Cap("monthly_usd", day.replace(day=1), usd=limits.monthly_usd or None),
        ]
        if origin is Origin.HEARTBEAT:
            usd, most = limits.heartbeat_daily_usd or None, limits.heartbeat_daily_tokens or None
            caps.append(Cap("heartbeat_daily_usd", day, usd, None, origin))
            caps.append(Cap("heartbeat_daily_tokens", day, None, most, origin))
        if origin is Origin.EXTRACTION:
            most = limits.facts_daily_tokens or None
            caps.append(Cap("facts_daily_tokens", day, None, most, origin))
        return tuple(c for c in caps if c.usd is not None or c.tokens is not None)

    def _price_of(self, model: str) -> TokenPrice | None:
        """Return the price under the longest configured name that `model` begins with, because
        services append dates to names; None if there is none.
        """
        names = [name for name in self._settings.prices if model.startswith(name)]
        return self._settings.prices[max(names, key=len)] if names else None


class Charges(Struct, frozen=True):
    """Charges answered model calls to the ledger. `price` returns the US dollars that a usage of a
    model costs.
    """

    ledger: Ledger
    clock: Clock
    price: Callable[[str, Usage], float]

    def cost(self, answer: AnswerCompleted) -> float:
        """Return the US dollars that the answered call costs."""
        return self.price(answer.model, answer.usage)

    async def charge(self, session: SessionKey, origin: Origin, answer: AnswerCompleted) -> None:
        """Record the answered call in the ledger, in place of its reservation. Waits while the disk
        is full. Raises StorageError.
        """
        await when_space(
            self.clock,
            self.ledger.charge,
            session,
            origin,
            answer.model,
            answer.usage,
            self.cost(answer),
            reservation=answer.reservation,
        )

    async def tokens_since(self, since: datetime, origin: Origin) -> int:
        """Return the tokens that calls of that origin have used since then, reservations
        included.
        """
        used, _ = await self.ledger.spending(since, origin)
        return used


class OriginBudget:
    """Tells whether the turns of an origin have used up their budget. `calls` holds, for each
    service, the model and the usage of the smallest call that the turns can make; without it only
    what was spent is checked.
    """

    def __init__(
        self,
        limits: Budget,
        ledger: Ledger,
        clock: Clock,
        origin: Origin,
        calls: Sequence[tuple[str, Usage]] = (),
    ) -> None:
        self._origin = origin
        self._calls = calls
        self._limits = limits
        self._ledger = ledger
        self._clock = clock

    async def is_used_up(self) -> bool:
        """Whether a limit on the origin's turns has been reached, or even the smallest call could
        exceed one.
        """
        now = self._clock.now().astimezone(self._clock.zone)
        for cap in self._limits.caps(now, self._origin):
            tokens, usd = await self._ledger.spending(cap.since, cap.origin)
            if cap.usd is not None and usd >= cap.usd:
                return True
            if cap.tokens is not None and tokens >= cap.tokens:
                return True
        return await self.least_refusal() is not None

    async def least_refusal(self) -> BudgetReached | None:
        """Return the error with which even the smallest calls would be refused; None if one would
        be allowed or none is known.
        """
        refused = [await self.refusal(model, most) for model, most in self._calls]
        return refused[0] if refused and all(refused) else None

    async def tokens_today(self) -> tuple[int, int]:
        """Return the tokens that the origin's turns have used since the owner's midnight, and their
        daily limit (0: none).
        """
        now = self._clock.now().astimezone(self._clock.zone)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        used, _ = await self._ledger.spending(midnight, self._origin)
        caps = (cap for cap in self._limits.caps(now, self._origin) if cap.origin is self._origin)
        return used, next((cap.tokens for cap in caps if cap.tokens is not None), 0)

    async def refusal(self, model: str, most: Usage) -> BudgetReached | None:
        """Return the error with which a call of `model` that uses at most `most` would be refused;
        None if it would be allowed.
        """
        now = self._clock.now().astimezone(self._clock.zone)
        usd = self._limits.price(model, most)
        for cap in self._limits.caps(now, self._origin):
            try:
                cap.check(
                    await self._ledger.spending(cap.since, cap.origin), most.total_tokens, usd
                )
            except BudgetReached as error:
                return error
        return None
