"""Numbers for names: each is kept once, whoever asks for its number."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getsizeof

_NUMBER = 32  # bytes of a number as an object


class Vocabulary(dict[str, int]):
    """Names by number and back, counted from 0. A new name gets the next number when it is asked for in
    brackets.
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
        """Bytes of the names and of the tables that find them."""
        return getsizeof(self) + getsizeof(self.names) + self._own
