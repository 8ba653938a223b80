"""How near names are to texts in meaning, as an embedder tells it."""

from __future__ import annotations

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from operator import mul

import structlog

from agentd.errors import EmbedderFault
from agentd.ports import Embedder

SECONDS = 1.0  # that an answer waits for it
MOST_TEXTS = 24
MOST_NAMES = 500  # that are compared, and whose vectors are remembered

log = structlog.get_logger()


class Meaning:
    """Compares with this embedder, which should be a quick one."""

    def __init__(self, embedder: Embedder, seconds: float = SECONDS) -> None:
        self._embedder = embedder
        self._seconds = seconds
        self._known: OrderedDict[str, bytes] = OrderedDict()

    async def near(
        self, texts: Sequence[str], names: Sequence[str]
    ) -> Mapping[str, Sequence[float]]:
        """For each name its cosines with the texts, as far as they are not too many; nothing where the
        embedder cannot say it in time.
        """
        some = list(dict.fromkeys(names))[:MOST_NAMES]
        try:
            async with asyncio.timeout(self._seconds):
                asked = await self._embedder.embed(list(texts)[:MOST_TEXTS], query=True)
                await self._learn(some)
        except (EmbedderFault, TimeoutError) as error:
            log.warning("graph_meaning_unknown", error=type(error).__name__)
            return {}
        vectors = {name: self._known[name] for name in some if name in self._known}
        return await asyncio.to_thread(_cosines, asked, vectors)

    async def _learn(self, names: Iterable[str]) -> None:
        fresh = [name for name in names if name not in self._known]
        if fresh:
            self._known.update(zip(fresh, await self._embedder.embed(fresh), strict=True))
        for name in names:
            self._known.move_to_end(name)
        while len(self._known) > MOST_NAMES:
            self._known.popitem(last=False)


def _cosines(asked: Sequence[bytes], names: Mapping[str, bytes]) -> dict[str, list[float]]:
    texts = [array("f", one) for one in asked]
    return {
        name: [sum(map(mul, text, vector)) for text in texts]
        for name, data in names.items()
        for vector in (array("f", data),)
    }
