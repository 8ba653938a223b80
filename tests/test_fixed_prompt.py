"""How many bytes every call carries in an untouched workspace, as the Messages API is sent it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentd.app.assembly.parts import Parts, open_parts
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.config import Config
from agentd.app.logs import OpenLog
from agentd.core.paths import daemon_places
from agentd.core.prompt import Prompt
from agentd.core.redaction import Redactor
from agentd.core.turn import MAIN, TurnRequest
from agentd.engine.budget import Budget
from agentd.interfaces.acp.peer import Clients
from agentd.providers.anthropic_wire import request_body
from agentd.providers.provider_settings import ProviderSettings
from agentd.testing import Answers, FakeClock, RecordingSink, ScriptedProvider

KB = 1024
WORDS = "How are you today?"


@pytest.fixture
def model() -> ScriptedProvider:
    return ScriptedProvider(default="HEARTBEAT_OK")


@pytest.fixture
async def untouched(tmp_path: Path, model: ScriptedProvider) -> AsyncIterator[Parts]:
    """The parts as the daemon puts them together, but for a model that is scripted."""
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


def sizes(prompt: Prompt) -> dict[str, int]:
    """Bytes of each part of the request."""
    body = request_body(prompt, ProviderSettings(), "claude")
    return {k: len(json.dumps(v, ensure_ascii=False).encode()) for k, v in body.items()}


async def test_a_conversation_carries_less_than_8_kb(
    untouched: Parts, model: ScriptedProvider
) -> None:
    ticket = await untouched.engine.sessions.submit(TurnRequest(MAIN, WORDS, "1"))
    await ticket.wait()
    (prompt,) = model.prompts
    found = sizes(prompt)
    assert sum(found.values()) - len(WORDS) < 8 * KB, found
    assert found["system"] > KB  # the workspace is in it


async def test_a_light_beat_carries_less_than_2_kb_each_time(
    untouched: Parts, model: ScriptedProvider
) -> None:
    for _ in range(3):
        await untouched.schedule.heartbeat.run(force=True)
    found = [sizes(prompt) for prompt in model.prompts]
    assert len(found) == 3
    assert all(sum(f.values()) < 2 * KB for f in found), found
    assert found[0] == found[-1]
