"""How many bytes every call carries in an untouched workspace, as the Messages API is sent it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from agentd.app import Assembly
from agentd.config import Config
from agentd.domain.prompt import Prompt
from agentd.domain.turn import MAIN, TurnRequest
from agentd.engine.assembly import Engine, Outside
from agentd.engine.budget import Budget
from agentd.heartbeat.pulse import Pulse
from agentd.paths import daemon_places
from agentd.providers.anthropic_request import request_body
from agentd.providers.settings import ProviderSettings
from agentd.server.clients import Clients
from agentd.testing import Answers, FakeClock, RecordingSink, ScriptedProvider

KB = 1024
WORDS = "How are you today?"


class Untouched:
    """The parts as the daemon puts them together, but for a model that is scripted."""

    def __init__(self, engine: Engine, pulse: Pulse, model: ScriptedProvider) -> None:
        self.engine = engine
        self.pulse = pulse
        self.model = model


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Untouched]:
    clock, environ, events = FakeClock(), {"AGENTD_HOME": str(tmp_path)}, RecordingSink()
    model = ScriptedProvider(default="HEARTBEAT_OK")
    async with AsyncExitStack() as stack:
        config = Config()
        budget = Budget(config.budget)
        build = Assembly(config, daemon_places(environ), clock, environ, stack, budget)
        stores = await build.stores()
        memory = await build.memory(stores)
        alerts = await build.alerts(stores, Clients(), events)
        engine = await build.engine(
            Outside(
                store=stores.sessions,
                journal=stores.journal,
                ledger=stores.ledger,
                provider=model,
                approver=Answers(),
                events=events,
                clock=clock,
                tools=build.tools(stores, memory, alerts, build.agenda(stores, lambda: None)),
                sources=(memory.injection,),
                hooks=(build.flush(stores),),
            )
        )
        pulse = build.pulse(stores, await build.model(stores), memory, alerts, engine)
        await engine.sessions.start()
        yield Untouched(engine, pulse, model)


def sizes(prompt: Prompt) -> dict[str, int]:
    """Bytes of each part of the request."""
    body = request_body(prompt, ProviderSettings(), "claude")
    return {k: len(json.dumps(v, ensure_ascii=False).encode()) for k, v in body.items()}


async def test_a_conversation_carries_less_than_8_kb(home: Untouched) -> None:
    ticket = await home.engine.sessions.submit(TurnRequest(MAIN, WORDS, "1"))
    await ticket.wait()
    (prompt,) = home.model.prompts
    found = sizes(prompt)
    assert sum(found.values()) - len(WORDS) < 8 * KB, found
    assert found["system"] > KB  # the workspace is in it


async def test_a_light_beat_carries_less_than_2_kb_each_time(home: Untouched) -> None:
    for _ in range(3):
        await home.pulse.run(force=True)
    found = [sizes(prompt) for prompt in home.model.prompts]
    assert len(found) == 3
    assert all(sum(f.values()) < 2 * KB for f in found), found
    assert found[0] == found[-1]
