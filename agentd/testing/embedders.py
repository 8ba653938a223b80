"""An embedder without a model."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections.abc import Sequence

from agentd.core.errors import EmbedderFault


class HashEmbedder:
    """Texts are near when they share words; equal on every machine and in every run.

    `broken` makes every call raise EmbedderFault. `texts` holds what was asked for, in order.
    """

    def __init__(self, dimension: int = 64, *, broken: bool = False) -> None:
        self._dimension = dimension
        self.broken = broken
        self.texts: list[str] = []

    @property
    def model(self) -> str:
        return f"hash-{self._dimension}"

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[bytes]:
        if self.broken:
            raise EmbedderFault("The embedder is broken.", cure="Mend it.")
        self.texts += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> bytes:
        numbers = [0.0] * self._dimension
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
            sign = 1 if digest[8] & 1 else -1
            numbers[int.from_bytes(digest[:8], "big") % self._dimension] += sign
        length = math.hypot(*numbers) or 1.0
        return struct.pack(f"<{self._dimension}f", *(number / length for number in numbers))
