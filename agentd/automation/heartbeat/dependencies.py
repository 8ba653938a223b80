"""What the heartbeat needs of the daemon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from agentd.core.beat import Beat
from agentd.core.ports import BeatStore, Breaker, Clock, Ledger
from agentd.core.turn import SessionKey
from agentd.core.workspace import FileView
from agentd.engine.background_turn import TurnRunner


class BeatBudget(Protocol):
    """What beats may use."""

    async def is_used_up(self) -> bool:
        """Whether a limit has been reached, or even the smallest call would pass one."""

    async def tokens_today(self) -> tuple[int, int]:
        """How many tokens they have used since the owner's midnight, and how many they may; 0: no limit."""


@dataclass(frozen=True, slots=True)
class BeatDependencies:
    """The parts of the daemon that a beat uses. `read` gives HEARTBEAT.md as the owner sees it and
    raises like Workspace.read; `last_heard` when the owner last wrote; `wake` tells the alerts'
    dispatcher that the outbox has grown; `exists` whether there is a conversation of that key;
    `own` does work to its end though whoever waits for it leaves, until a stop.
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
