"""A cache of query vectors around an embedder."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

from agentd.core.ports import Embedder

MOST = 512 << 10  # bytes; enough for 160 queries with vectors of 768 numbers
_ENTRY = 200  # bytes that a cached query takes beside its vector


class Cached:
    """An embedder that keeps the vectors of the latest queries, by digest, in about `most` bytes.

    Texts that are not queries are not cached: the index stores their vectors.
    """

    def __init__(self, inner: Embedder, most: int = MOST) -> None:
        self._inner = inner
        self._most = most
        self._known: OrderedDict[bytes, bytes] = OrderedDict()

    @property
    def model(self) -> str:
        """The identity of the wrapped embedder."""
        return self._inner.model

    @property
    def dimension(self) -> int:
        """The dimension of the wrapped embedder."""
        return self._inner.dimension

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[bytes]:
        """Return one vector for each text; embed only queries that are not cached, each once.

        Raises EmbedderFault.
        """
        if not query:
            return await self._inner.embed(texts)
        keys = [self._key(text) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        found = dict.fromkeys(keys, b"")
        if new:
            rows = await self._inner.embed(list(new.values()), query=True)
            found.update(zip(new, rows, strict=True))
        for key in found:
            found[key] = found[key] or self._known[key]
            self._known[key] = found[key]
            self._known.move_to_end(key)
        room = self._most // (_ENTRY + 4 * self.dimension)
        while len(self._known) > max(room, 1):
            self._known.popitem(last=False)
        return [found[key] for key in keys]

    def _key(self, text: str) -> bytes:
        words = f"{self.model}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(words).digest()
