"""What programs keep between their runs, for the command."""

from __future__ import annotations

import pytest

from agentd.core.errors import Busy, InvalidRequest
from agentd.interfaces.acp.declared import methods
from agentd.interfaces.commands.exchange import MOST, PROGRAMS, ProgramCommands
from agentd.testing.clock import FakeClock
from agentd.testing.graph_doubles import MemoryGraphRecords


@pytest.fixture
def routes():
    return methods(PROGRAMS, ProgramCommands(MemoryGraphRecords(), FakeClock()))


async def call(routes, method, **params):
    return await routes[f"_agentd/facts/{method}"](params, None)


async def test_what_was_kept_is_there_the_next_time(routes):
    first = await call(routes, "program-state", name="c")
    assert first["state"] == ""
    await call(routes, "keep-program-state", name="c", state="one", before=first["hash"])
    assert (await call(routes, "program-state", name="c"))["state"] == "one"


async def test_of_two_runs_at_once_the_later_is_refused(routes):
    before = (await call(routes, "program-state", name="c"))["hash"]
    await call(routes, "keep-program-state", name="c", state="one", before=before)
    with pytest.raises(Busy, match="another run"):
        await call(routes, "keep-program-state", name="c", state="two", before=before)
    assert (await call(routes, "program-state", name="c"))["state"] == "one"


async def test_a_state_has_a_bound(routes):
    before = (await call(routes, "program-state", name="c"))["hash"]
    with pytest.raises(InvalidRequest):
        await call(routes, "keep-program-state", name="c", state="x" * (MOST + 1), before=before)
