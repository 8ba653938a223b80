"""The parts as the daemon puts them together, but for a model that is scripted, and what it is
offered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from agentd.app.assembly.parts import Parts, open_parts
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.config import Config
from agentd.app.logs import OpenLog
from agentd.core.paths import daemon_places
from agentd.core.redaction import Redactor
from agentd.core.turn import SessionKey, TurnRequest
from agentd.engine.budget import Budget
from agentd.interfaces.acp.peer import Clients
from agentd.testing import Answers, FakeClock, RecordingSink, ScriptedProvider

ToolsOffered = Callable[[str], Awaitable[list[str]]]


@pytest.fixture
def model() -> ScriptedProvider:
    """What the parts ask; `prompts` is what it was given."""
    return ScriptedProvider(default="HEARTBEAT_OK")


@pytest.fixture
async def untouched(tmp_path: Path, model: ScriptedProvider) -> AsyncIterator[Parts]:
    """The parts in an untouched workspace, with the configuration that nobody has changed."""
    config, environ = Config(), {"AGENTD_HOME": str(tmp_path)}
    runtime = RuntimeContext(
        config, daemon_places(environ), FakeClock(), environ, Budget(config.budget)
    )
    log = OpenLog(Redactor(), None)
    opened = open_parts(
        runtime, Clients(), Answers(), shown=RecordingSink(), output=log, provider=model
    )
    async with opened as parts:
        await parts.engine.sessions.start()
        yield parts


@pytest.fixture
def tools_offered(untouched: Parts, model: ScriptedProvider) -> ToolsOffered:
    """The names of the tools that a model has in a turn of the session with this key; of a beat for
    "beat".
    """

    async def offered(where: str) -> list[str]:
        if where == "beat":
            await untouched.schedule.heartbeat.run(force=True)
        else:
            request = TurnRequest(SessionKey(where), "hello", f"message in {where}")
            await (await untouched.engine.sessions.submit(request)).wait()
        return [spec.name for spec in model.prompts[-1].tools]

    return offered
