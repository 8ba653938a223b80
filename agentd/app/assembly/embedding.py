"""What turns texts into vectors, as the configuration and the machine allow."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from agentd.app.assembly.ground import Ground
from agentd.core.ports import Ledger
from agentd.core.turn import Origin, SessionKey, Usage
from agentd.memory.index.embedding import assembly
from agentd.memory.index.embedding.assembly import Embedders

__all__ = ["Embedders", "open_embedders"]

_NOBODY = SessionKey("")  # vectors serve every session


def open_embedders(ground: Ground, ledger: Ledger) -> AbstractAsyncContextManager[Embedders]:
    """The best embedder, and the one that stands in for it; `ledger` gets what a service costs."""

    async def spent(model: str, tokens: int) -> None:
        usage = Usage(tokens)
        cost = ground.budget.price(model, usage)
        await ledger.charge(_NOBODY, Origin.EMBEDDING, model, usage, cost)

    return assembly.open_embedders(
        ground.config.memory_search,
        ground.environ,
        ground.places.state_dir,
        ground.clock,
        spent,
        ground.redactor,
    )
