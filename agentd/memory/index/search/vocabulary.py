"""Numbers for names: each name is stored once, and shared."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getsizeof

_NUMBER = 32  # bytes of an int object


class Vocabulary(dict[str, int]):
    """A map from names to numbers, counted from 0; `names` maps back. Subscription gives a new name
    the next number.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = list(names)
        self.update(zip(self.names, range(len(self.names)), strict=True))
        self._own = sum(map(getsizeof, self.names)) + _NUMBER * len(self.names)

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self.names)
        self.names.append(name)
        self._own += getsizeof(name) + _NUMBER
        return number

    @property
    def nbytes(self) -> int:
        """Bytes of the names and of both tables."""
        return getsizeof(self) + getsizeof(self.names) + self._own
