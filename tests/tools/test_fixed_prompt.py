"""How many bytes every call carries in an untouched workspace, as the Messages API is sent it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentd.app.assembly.parts import Parts
from agentd.core.turn import MAIN, TurnRequest
from agentd.providers.anthropic_wire import request_body
from agentd.providers.provider_settings import ProviderSettings
from agentd.testing import ScriptedProvider

KB = 1024
WORDS = "How are you today?"
# Each call of every conversation, and each beat, pays for these bytes. Shorten another description before
# you raise a bound; what is worth more than that raises it here, in `benchmarks/prompts.py` and in the
# figures of docs/measuring.md, and the reason goes into the commit.
OF_A_CONVERSATION = 8 * KB
OF_A_BEAT = 2 * KB


def size(part: Any) -> int:
    return len(json.dumps(part, ensure_ascii=False).encode())


def bodies(model: ScriptedProvider) -> list[dict[str, Any]]:
    return [request_body(prompt, ProviderSettings(), "claude") for prompt in model.prompts]


def sizes(body: dict[str, Any]) -> dict[str, int]:
    """Bytes of each part of the request."""
    return {name: size(part) for name, part in body.items()}


def told(body: dict[str, Any], most: int) -> str:
    """Where the bytes are, for whoever has added some."""
    system = {block["text"].splitlines()[0][:60]: size(block) for block in body["system"]}
    tools = {tool["name"]: size(tool) for tool in body["tools"]}
    lines = [
        f"  {number:5} B  {name}" for name, number in {**sizes(body), **system, **tools}.items()
    ]
    return "\n".join([f"the bound is {most} B; shorten something, or see above", *lines])


async def test_a_conversation_carries_less_than_8_kb(
    untouched: Parts, model: ScriptedProvider
) -> None:
    ticket = await untouched.engine.sessions.submit(TurnRequest(MAIN, WORDS, "1"))
    await ticket.wait()
    (body,) = bodies(model)
    found = sizes(body)
    assert sum(found.values()) - len(WORDS) < OF_A_CONVERSATION, told(body, OF_A_CONVERSATION)
    assert found["system"] > KB  # the workspace is in it


async def test_all_files_stand_before_the_notes_of_the_day(
    untouched: Parts, model: ScriptedProvider, tmp_path: Path
) -> None:
    notes = tmp_path / "workspace" / "memory"
    (notes / "2026-11-20.md").write_text("milk of yesterday\n")
    (notes / "2026-11-21.md").write_text("milk of today\n")
    ticket = await untouched.engine.sessions.submit(TurnRequest(MAIN, WORDS, "1"))
    await ticket.wait()
    prompt = "\n\n".join(model.prompts[0].system)
    marks = (
        "# Project Context",
        "## MEMORY.md",
        "## Recent Daily Notes",
        "of today",
        "of yesterday",
    )
    places = [prompt.index(mark) for mark in marks]
    assert places == sorted(places)


async def test_a_light_beat_carries_less_than_2_kb_each_time(
    untouched: Parts, model: ScriptedProvider
) -> None:
    for _ in range(3):
        await untouched.schedule.heartbeat.run(force=True)
    found = bodies(model)
    assert len(found) == 3
    for body in found:
        assert sum(sizes(body).values()) < OF_A_BEAT, told(body, OF_A_BEAT)
    assert sizes(found[0]) == sizes(found[-1])
