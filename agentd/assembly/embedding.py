"""What turns texts into vectors, as the configuration and the machine allow."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from agentd.assembly.ground import Ground
from agentd.embedders import assembly
from agentd.embedders.assembly import Embedders

__all__ = ["Embedders", "open_embedders"]


def open_embedders(ground: Ground) -> AbstractAsyncContextManager[Embedders]:
    """The best embedder, and the one that stands in for it."""
    state = ground.places.state_dir
    return assembly.open_embedders(ground.config.memory_search, ground.environ, state, ground.clock)
