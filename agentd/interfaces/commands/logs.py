"""`logs`: what the daemon noted, by page and as it comes."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from agentd.core.errors import AgentdError
from agentd.interfaces.commands.declaration import Caller, Group, Param
from agentd.interfaces.commands.logbook import Logbook, WantedLines
from agentd.interfaces.commands.plain import fields

if TYPE_CHECKING:
    from agentd.core.ports import Clock
    from agentd.interfaces.commands.units import Unit

LOGS = Group("")

_LOOK_AGAIN_SECONDS = 0.25

_Session = Annotated[str, Param("Of this session only.")]
_Turn = Annotated[int, Param("Of the turn with this number only.", least=0)]
_Origin = Annotated[
    Literal["", "user", "heartbeat", "flush", "summary", "job"], Param("Of such turns only.")
]
_Level = Annotated[
    Literal["", "debug", "info", "warning", "error", "critical"], Param("From this level on.")
]


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where the daemon's log goes: into a file, or into the journal of a unit; else to a terminal."""

    file: Path | None
    unit: Unit | None


class LogCommands:
    """The daemon's log; turn 0 and empty words are all of it."""

    def __init__(self, place: LogPlace, clock: Clock) -> None:
        self._place = place
        self._clock = clock

    @LOGS.command(fields)
    async def logs(
        self,
        *,
        session: _Session = "",
        turn: _Turn = 0,
        origin: _Origin = "",
        level: _Level = "",
        limit: Annotated[int, Param(least=1, most=1000)] = 200,
        before: str | None = None,
    ) -> dict[str, Any]:
        """Show the daemon's log, one record a line."""
        # `journal` names the unit when only the service manager can show its log.
        if self._place.file is None and self._place.unit is not None:
            return {"records": [], "journal": asdict(self._place.unit)}
        wanted = WantedLines(session, turn, origin, level)
        page = await asyncio.to_thread(self._book().page, wanted, limit, before)
        return {"records": list(page.records), "before": page.before, "after": page.after}

    @LOGS.command(fields, name="logs/follow", line=False)
    async def follow(
        self,
        caller: Caller,
        after: str,
        *,
        session: _Session = "",
        turn: _Turn = 0,
        origin: _Origin = "",
        level: _Level = "",
    ) -> dict[str, Any]:
        """Send records behind a place of an earlier answer, and all that come, until the client leaves."""
        book, wanted = self._book(), WantedLines(session, turn, origin, level)
        while True:
            page = await asyncio.to_thread(book.since, after, wanted)
            after = page.after
            if page.records:
                caller.notify("_agentd/log", {"records": list(page.records)})
                await caller.wait_room()
            else:
                await self._clock.sleep(_LOOK_AGAIN_SECONDS)

    def _book(self) -> Logbook:
        if self._place.file is None:
            raise AgentdError(
                "the daemon's log goes to where it was started",
                cure="look there, or start the daemon in the background with `agentd up`",
            )
        return Logbook(self._place.file)
