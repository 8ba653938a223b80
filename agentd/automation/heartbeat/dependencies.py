"""The parts of the daemon that the heartbeat uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from agentd.core.beat import Beat
from agentd.core.ports import BeatStore, Breaker, Clock, Ledger, TurnRunner
from agentd.core.turn import SessionKey
from agentd.core.workspace import FileView


class BeatBudget(Protocol):
    """The token budget of beats."""

    async def is_used_up(self) -> bool:
        """Whether a limit has been reached, or even the smallest call would exceed one."""

    async def tokens_today(self) -> tuple[int, int]:
        """Return the tokens that beats have used since the owner's midnight, and their daily limit
        (0: none).
        """


class BeatDependencies(Struct, frozen=True):
    """The parts of the daemon that a beat uses. `read` returns HEARTBEAT.md as the owner sees it
    and raises like Workspace.read. `last_heard` returns when the owner last wrote, and from which
    client. `wake` tells the alerts' dispatcher that the outbox has grown. `exists` says whether
    there is a session of that key. `own` runs work to its end even if the caller is cancelled,
    until the daemon stops.
    """

    clock: Clock
    beats: BeatStore
    ledger: Ledger
    turns: TurnRunner
    breaker: Breaker
    read: Callable[[], Awaitable[FileView]]
    budget: BeatBudget
    last_heard: Callable[[], Awaitable[tuple[datetime, str] | None]]
    wake: Callable[[], None]
    exists: Callable[[SessionKey], Awaitable[bool]]
    own: Callable[[Coroutine[Any, Any, Beat]], Awaitable[Beat]]
