"""Spending limits, and the recorded costs of model calls."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from agentd.core.errors import BudgetReached
from agentd.core.turn import Origin, SessionKey, Usage

BUILT_IN = "offline-1"  # the model of the built-in provider, whose use costs nothing


class Cap(Struct, frozen=True):
    """A limit of `usd` dollars and `tokens` tokens since `since`, for turns of `origin` or for all.
    None means no limit. `name` is the configuration key that sets it.
    """

    name: str
    since: datetime
    usd: float | None = None
    tokens: int | None = None
    origin: Origin | None = None

    def check(self, spent: tuple[int, float], tokens: int, usd: float) -> None:
        """Raise BudgetReached if a call that may use so many tokens and dollars could exceed the
        limit, given the tokens and dollars `spent` (reservations included).
        """
        used, paid = spent
        if self.usd is not None and paid + usd > self.usd:
            what = f"{self.usd:g} would be passed: ${paid:.2f} are spent or set aside, and the next"
            self._refuse(f"{what} call may cost ${usd:.2f}", is_alone=usd > self.usd)
        if self.tokens is not None and used + tokens > self.tokens:
            what = (
                f"{self.tokens} would be passed: {used} tokens are used or set aside, and the next"
            )
            self._refuse(f"{what} call may use {tokens}", is_alone=tokens > self.tokens)

    def _refuse(self, what: str, *, is_alone: bool) -> None:
        # Waiting does not help if a single call exceeds the limit.
        other = f"raise {self.name}, or lower [provider] max_tokens where that bounds the call"
        cure = other if is_alone else f"wait for the next period, or raise {self.name}"
        raise BudgetReached(f"[budget] {self.name} = {what}", cure=cure)


class Charge(Struct, frozen=True):
    """One model call in the ledger. `session` is empty for a reservation, and for a call that
    belongs to no single session.
    """

    at: datetime
    session: SessionKey
    origin: Origin
    model: str
    usage: Usage
    cost_usd: float

    def as_json(self) -> dict[str, Any]:
        """Return a row of the export."""
        return {
            "at": self.at.isoformat(),
            "session": str(self.session),
            "origin": str(self.origin),
            "model": self.model,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "cache_read_tokens": self.usage.cache_read_tokens,
            "cache_write_tokens": self.usage.cache_write_tokens,
            "cost_usd": self.cost_usd,
        }
