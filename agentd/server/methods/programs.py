"""What programs of the `.0` language keep between their runs, for `agentd facts run --state`."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from pydantic import Field

from agentd.errors import Busy
from agentd.ports import Clock, ProgramStates
from agentd.server.methods.params import Params, handler
from agentd.server.peer import Handler

NAMES = ("_agentd/facts/program-state", "_agentd/facts/keep-program-state")
MOST = 256 * 1024  # characters of a state: of four bytes each they fit a line


class StateParams(Params):
    """Under which name it is kept."""

    name: str = Field(min_length=1, max_length=80)


class KeepParams(StateParams):
    """What to keep, and the hash of what was there when the program began."""

    state: str = Field(max_length=MOST)
    before: str


class ProgramMethods:
    """The states, for the command."""

    def __init__(self, states: ProgramStates, clock: Clock) -> None:
        self._states = states
        self._clock = clock

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/facts/program-state": handler(StateParams, self._state),
            "_agentd/facts/keep-program-state": handler(KeepParams, self._keep),
        }

    async def _state(self, params: StateParams) -> dict[str, Any]:
        state = await self._states.program_state(params.name)
        return {"name": params.name, "state": state, "hash": _hash(state)}

    async def _keep(self, params: KeepParams) -> dict[str, Any]:
        if params.before != _hash(await self._states.program_state(params.name)):
            raise Busy("another run has changed the state meanwhile", cure="run it again")
        await self._states.keep_program_state(params.name, params.state, self._clock.now())
        return {"name": params.name, "hash": _hash(params.state)}


def _hash(state: str) -> str:
    return sha256(state.encode()).hexdigest()
