"""`facts`, what programs of the `.0` language keep between their runs, for `agentd facts run --state`."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

from agentd.commands.declaration import Group, Param
from agentd.commands.plain import fields
from agentd.errors import Busy

if TYPE_CHECKING:
    from agentd.ports import Clock, ProgramStates

PROGRAMS = Group("facts")

MOST = 256 * 1024  # characters of a state: of four bytes each they fit a line

_Name = Annotated[str, Param(length=(1, 80))]


class ProgramCommands:
    """The states of programs."""

    def __init__(self, states: ProgramStates, clock: Clock) -> None:
        self._states = states
        self._clock = clock

    @PROGRAMS.command(fields, line=False)
    async def program_state(self, name: _Name) -> dict[str, Any]:
        """What is kept under a name, and its hash."""
        state = await self._states.program_state(name)
        return {"name": name, "state": state, "hash": _hash(state)}

    @PROGRAMS.command(fields, line=False)
    async def keep_program_state(
        self, name: _Name, state: Annotated[str, Param(length=(0, MOST))], before: str
    ) -> dict[str, Any]:
        """Keep it, if what was there when the program began, known by its hash, is there still."""
        if before != _hash(await self._states.program_state(name)):
            raise Busy("another run has changed the state meanwhile", cure="run it again")
        await self._states.keep_program_state(name, state, self._clock.now())
        return {"name": name, "hash": _hash(state)}


def _hash(state: str) -> str:
    return sha256(state.encode()).hexdigest()
