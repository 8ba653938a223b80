"""Working memory: what each session dealt with last, for as long as the process lives."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from agentd.domain.concept import EpisodeHash, Relation
from agentd.domain.turn import SessionKey

CAPACITY = 20  # episodes of one session
SESSIONS = 256  # that are remembered, those used last


class WorkingMemory:
    """The last episodes of each session, the oldest out first. Raises ValueError for a capacity below
    one.
    """

    def __init__(self, capacity: int = CAPACITY, sessions: int = SESSIONS) -> None:
        if capacity < 1 or sessions < 1:
            raise ValueError("working memory holds at least one episode of one session")
        self._capacity = capacity
        self._most = sessions
        self._sessions: OrderedDict[SessionKey, OrderedDict[EpisodeHash, Relation]] = OrderedDict()

    def add(self, session: SessionKey, episodes: Iterable[Relation]) -> None:
        """Take episodes in, the newest last. One that is there becomes the newest."""
        held = self._sessions.setdefault(session, OrderedDict())
        self._sessions.move_to_end(session)
        for relation in episodes:
            held[relation.episode] = relation
            held.move_to_end(relation.episode)
            if len(held) > self._capacity:
                held.popitem(last=False)
        while len(self._sessions) > self._most:
            self._sessions.popitem(last=False)

    def peek(self, session: SessionKey, n: int = CAPACITY) -> tuple[Relation, ...]:
        """The last `n`, or all where there are fewer, the newest last; nothing changes. Raises
        ValueError for a negative `n`.
        """
        if n < 0:
            raise ValueError(f"there are no last {n} episodes")
        held = tuple(self._sessions.get(session, OrderedDict()).values())
        return held[max(0, len(held) - n) :]

    def drop(self, session: SessionKey) -> None:
        """Let go of the whole session."""
        self._sessions.pop(session, None)
