"""Finds the one text that an embedder fails at, so that all others get their vectors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

FEWER = 8  # so many times fewer texts at once after a failure; twice as many after a success
PROBE = "memory"  # what an embedder that works can embed
STRIKES = 2  # failures at one text, right after the probe worked: it is the text
NAMED = 3  # texts that a problem names


class Culprit:
    """What failed is to be tried again in smaller batches, until a text is alone; `size` says how many
    to try at once, at first `first`, and never more than `most`. A text that failed alone is suspect: before it is tried again
    the embedder has to prove with PROBE that it works.
    """

    def __init__(self, most: int, first: int | None = None) -> None:
        self.size = first or most
        self._most = most
        self._suspect: Hashable = None
        self._strikes = 0

    def is_suspect(self, batch: Sequence[Hashable]) -> bool:
        """Whether a batch, by whatever tells its texts apart, is the one that failed alone."""
        return len(batch) == 1 and batch[0] == self._suspect

    def clear(self, *, was_quick: bool = True) -> None:
        """A batch has got its vectors; if that was quick, the next may be larger."""
        if was_quick:
            self.size = min(self._most, 2 * self.size)

    def blame(self, batch: Sequence[Hashable]) -> bool:
        """A batch failed: whether it is a single text that fails while others work."""
        is_known = self.is_suspect(batch)
        self.size = max(1, len(batch) // FEWER)
        if len(batch) == 1:
            self._suspect, self._strikes = batch[0], self._strikes + 1 if is_known else 0
        return is_known and self._strikes >= STRIKES

    def forget(self) -> None:
        """What told texts apart tells them apart no longer."""
        self._suspect = None


def named(places: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    more = len(places) - NAMED
    return ", ".join(places[:NAMED]) + (f" and {more} more" if more > 0 else "")
