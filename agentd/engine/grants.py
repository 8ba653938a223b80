"""Lasting yeses: what the user has allowed for the rest of a conversation."""

from __future__ import annotations

from collections import defaultdict

from agentd.domain.turn import SessionKey


class Grants:
    """The scopes of questions that are not asked again, by session. They are kept in memory alone: after a
    restart everything is asked anew.
    """

    def __init__(self) -> None:
        self._scopes: defaultdict[SessionKey, set[str]] = defaultdict(set)

    def covers(self, session: SessionKey, scope: str) -> bool:
        """Whether the user has allowed it there for good."""
        return scope in self._scopes.get(session, ())

    def give(self, session: SessionKey, scope: str) -> None:
        """The user allows it, as long as the conversation lasts."""
        self._scopes[session].add(scope)

    def end(self, session: SessionKey) -> None:
        """The conversation has ended: another one begins under its key, or none."""
        self._scopes.pop(session, None)
