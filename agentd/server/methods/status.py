"""`_agentd/status` and `_agentd/stop`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentd.commands.keys import is_unused
from agentd.commands.sessions import session_json
from agentd.domain.beat import Standing
from agentd.domain.health import Problem
from agentd.domain.memory import IndexState
from agentd.domain.retention import Retained
from agentd.ports import Clock, Ledger, SessionStore
from agentd.server.methods.params import NoParams, handler
from agentd.server.peer import Handler
from agentd.server.turns import Turns

_SESSIONS = 50  # the last used ones; `sessions list` has all


@dataclass(frozen=True, slots=True)
class StatusParts:
    """Where the lines of `agentd status` come from.

    `started` is the clock's monotonic second at which the daemon began. `provider` answers
    `{kind, model, why, effective_window}`, `compaction` the last one or None, `embedder`
    `{provider, why}`, `graph` `{enabled, concepts, facts, episodes, consolidated}`, `facts`
    `{active, proposed, refused, waiting}`, or nothing where facts are off. `loop` is how long the event
    loop kept work waiting.
    """

    version: str
    started: float
    provider: Callable[[], Mapping[str, Any]]
    heartbeat: Callable[[], Awaitable[Standing]]
    compaction: Callable[[], Mapping[str, Any] | None]
    index: Callable[[], Awaitable[IndexState]]
    retention: Callable[[], Retained]
    store: SessionStore
    turns: Turns
    ledger: Ledger
    graph: Callable[[], Awaitable[Mapping[str, Any]]]
    facts: Callable[[], Awaitable[Mapping[str, Any]]]
    embedder: Callable[[], Mapping[str, str]] = dict
    loop: Callable[[], Mapping[str, Any]] = dict
    problems: Callable[[], tuple[Problem, ...]] = tuple


class StatusMethods:
    """How the daemon is, and its end."""

    def __init__(self, parts: StatusParts, clock: Clock, stop: Callable[[], None]) -> None:
        self._parts = parts
        self._clock = clock
        self._stop = stop

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/status": handler(NoParams, self._status),
            "_agentd/stop": handler(NoParams, self._ask_to_stop),
        }

    async def _status(self, params: NoParams) -> dict[str, Any]:
        parts = self._parts
        index = await parts.index()
        sessions = [info for info in await parts.store.sessions() if not is_unused(info)]
        facts = dict(await parts.facts())
        return {
            "version": parts.version,
            "pid": os.getpid(),
            "uptime_s": round(self._clock.monotonic() - parts.started, 3),
            "provider": dict(parts.provider()),
            "sessions": [session_json(info, parts.turns) for info in sessions[:_SESSIONS]],
            "heartbeat": (await parts.heartbeat()).as_json(),
            "compaction": {"last": parts.compaction()},
            "index": {**index.as_json(), **parts.embedder()},
            "retention": parts.retention().as_json(),
            "facts": facts,
            "graph": dict(await parts.graph()),
            "loop": dict(parts.loop()),
            "cost": await self._cost(),
            "problems": [one.as_json() for one in (*parts.problems(), *_undecided(facts))],
        }

    async def _cost(self) -> dict[str, Any]:
        today = self._clock.now().astimezone(self._clock.zone)
        today = today.replace(hour=0, minute=0, second=0, microsecond=0)
        today_tokens, today_usd = await self._parts.ledger.spent(today)
        month_tokens, month_usd = await self._parts.ledger.spent(today.replace(day=1))
        cached, read = await self._parts.ledger.cache_use(today.replace(day=1))
        parts = await self._parts.ledger.breakdown(today.replace(day=1))
        return {
            "today_usd": today_usd,
            "month_usd": month_usd,
            "today_tokens": today_tokens,
            "month_tokens": month_tokens,
            "cache_hit_ratio": round(cached / read, 3) if read else 0.0,
            "month": [
                {"session": session, "origin": str(origin), "tokens": tokens, "usd": usd}
                for session, origin, tokens, usd in parts[:_SESSIONS]
            ],
        }

    async def _ask_to_stop(self, params: NoParams) -> dict[str, Any]:
        self._stop()
        return {"stopping": True, "pid": os.getpid()}


def _undecided(facts: Mapping[str, Any]) -> tuple[Problem, ...]:
    """What waits for the owner's yes."""
    count = facts.get("proposed", 0)
    if not count:
        return ()
    text = f"{'1 fact waits' if count == 1 else f'{count} facts wait'} for your yes"
    cure = "`agentd facts pending` lists what to accept or reject"
    return (Problem("facts_proposed", text, cure),)
