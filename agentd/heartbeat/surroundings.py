"""What the heartbeat reaches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.turn import SessionKey
from agentd.domain.workspace import FileView
from agentd.engine.errand import Door
from agentd.ports import BeatStore, Breaker, Clock, Ledger


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of the daemon that a beat uses. `read` gives HEARTBEAT.md as the owner sees it and
    raises like Workspace.read; `last_heard` when the owner last wrote; `wake` tells the alerts'
    dispatcher that the outbox has grown; `exists` whether there is a conversation of that key.
    """

    clock: Clock
    beats: BeatStore
    ledger: Ledger
    turns: Door
    breaker: Breaker
    read: Callable[[], Awaitable[FileView]]
    over_budget: Callable[[], Awaitable[bool]]
    last_heard: Callable[[], Awaitable[tuple[datetime, str] | None]]
    wake: Callable[[], None]
    exists: Callable[[SessionKey], Awaitable[bool]]
