"""A thorough look for garbage once in many turns, for what the interpreter keeps for new objects."""

from __future__ import annotations

import gc

from agentd.core.turn import SessionKey

TURNS = 250


class ThoroughLooks:
    """Counts turns that have ended, for `engine.watchers.WhenEnded`.

    The interpreter keeps up to 2,000 tuples of each length that were let go, to make new ones of them, and
    gives them back at such a look only. A turn leaves several there, for it makes most of its tuples of
    another length, while hardly any of its objects wait for a look: left to itself there is none in 10,000
    turns, and what is kept grows by 1.2 MB. One takes some milliseconds.
    """

    def __init__(self, every: int = TURNS) -> None:
        self._every = every
        self._left = every

    def ended(self, _session: SessionKey) -> None:
        """A turn has ended. Looks at the last of so many."""
        self._left -= 1
        if not self._left:
            self._left = self._every
            gc.collect()
