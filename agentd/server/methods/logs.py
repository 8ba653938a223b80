"""`_agentd/logs` and `_agentd/logs/follow`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Never

from pydantic import Field

from agentd.errors import AgentdError
from agentd.logbook import Logbook, Wanted
from agentd.ports import Clock
from agentd.server.methods.params import Params, handler, peer_handler
from agentd.server.peer import Handler, Peer
from agentd.units import Unit

_LOOK_AGAIN_SECONDS = 0.25


class WantedParams(Params):
    """Which records; `turn` 0 and empty words are all."""

    session: str = ""
    turn: int = Field(0, ge=0)
    origin: Literal["", "user", "heartbeat", "flush", "summary", "job"] = ""
    level: Literal["", "debug", "info", "warning", "error", "critical"] = ""

    @property
    def wanted(self) -> Wanted:
        """The same as a filter."""
        return Wanted(self.session, self.turn, self.origin, self.level)


class LogParams(WantedParams):
    """The newest records, or those before a place of an earlier answer."""

    limit: int = Field(200, ge=1, le=1000)
    before: str | None = None


class FollowParams(WantedParams):
    """Records behind a place of an earlier answer, and all that come."""

    after: str


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where the daemon's log goes: into a file, or into the journal of a unit; else to a terminal."""

    file: Path | None
    unit: Unit | None


class LogMethods:
    """The daemon's log as the command sees it."""

    def __init__(self, place: LogPlace, clock: Clock) -> None:
        self._place = place
        self._clock = clock

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/logs": handler(LogParams, self._page),
            "_agentd/logs/follow": peer_handler(FollowParams, self._follow),
        }

    async def _page(self, params: LogParams) -> dict[str, Any]:
        """`journal` names the unit when only the service manager can show its log."""
        if self._place.file is None and self._place.unit is not None:
            return {"records": [], "journal": asdict(self._place.unit)}
        page = await asyncio.to_thread(
            self._book().page, params.wanted, params.limit, params.before
        )
        return {"records": list(page.records), "before": page.before, "after": page.after}

    async def _follow(self, params: FollowParams, peer: Peer) -> Never:
        """`_agentd/log` notifications until the client leaves."""
        book, place = self._book(), params.after
        while True:
            page = await asyncio.to_thread(book.since, place, params.wanted)
            place = page.after
            if page.records:
                peer.notify("_agentd/log", {"records": list(page.records)})
                await peer.wait_room()
            else:
                await self._clock.sleep(_LOOK_AGAIN_SECONDS)

    def _book(self) -> Logbook:
        if self._place.file is None:
            raise AgentdError(
                "the daemon's log goes to where it was started",
                cure="look there, or start the daemon in the background with `agentd up`",
            )
        return Logbook(self._place.file)
