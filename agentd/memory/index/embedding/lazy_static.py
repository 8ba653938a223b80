"""The shipped word table, loaded at the first text: until then the daemon runs without numpy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from agentd.core.errors import EmbedderFault
from agentd.core.ports import Embedder

CARD = Path(__file__).with_name("static_minilm") / "model.json"
CURE = "Reinstall agentd (pip install --force-reinstall --no-deps agentd), then restart it."


class LazyStatic:
    """The static embedder, loaded at the first call of `embed`."""

    def __init__(self, model: str, dimension: int) -> None:
        self._model = model
        self._dimension = dimension
        self._inner: Embedder | None = None
        self._opening = asyncio.Lock()

    @property
    def model(self) -> str:
        """The identity of the vectors."""
        return self._model

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return self._dimension

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[bytes]:
        """Return one vector for each text. Raises EmbedderFault if the model's files are
        damaged.
        """
        async with self._opening:
            if self._inner is None:
                self._inner = await asyncio.to_thread(_load)
        return await self._inner.embed(texts, query=query)


def packaged_static(card: Path = CARD) -> LazyStatic:
    """Return the embedder that the card of the shipped model describes. Raises EmbedderFault."""
    try:
        found = json.loads(card.read_bytes())
        return LazyStatic(str(found["model"]), int(found["dimension"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EmbedderFault(f"{card} cannot be read: {error}.", cure=CURE) from error


def _load() -> Embedder:
    from agentd.memory.index.embedding import static

    return static.load()
