"""Closing one provider's stream inside another's."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from agentd.domain.prompt import ProviderEvent


@asynccontextmanager
async def closing(
    events: AsyncIterator[ProviderEvent],
) -> AsyncIterator[AsyncIterator[ProviderEvent]]:
    """The events; however the block is left, the call behind them is ended."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()
