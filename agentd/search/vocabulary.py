"""Numbers for names: each is kept once, whoever asks for its number."""

from __future__ import annotations

from sys import getsizeof

_NUMBER = 32  # bytes of a number as an object


class Vocabulary(dict[str, int]):
    """Names by number and back, counted from 0. A new name gets the next number when it is asked for in
    brackets.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._own = 0

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self.names)
        self.names.append(name)
        self._own += getsizeof(name) + _NUMBER
        return number

    @property
    def nbytes(self) -> int:
        """Bytes of the names and of the tables that find them."""
        return getsizeof(self) + getsizeof(self.names) + self._own
