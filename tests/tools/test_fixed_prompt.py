"""How many bytes every call carries in an untouched workspace, as the Messages API is sent it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentd.app.assembly.parts import Parts
from agentd.core.turn import MAIN, TurnRequest
from agentd.providers.anthropic_wire import request_body
from agentd.providers.provider_settings import ProviderSettings
from agentd.testing import ScriptedProvider
from benchmarks.prompts import OF_A_BEAT, OF_A_CONVERSATION, WORDS, parts, prompt_bytes


def bodies(model: ScriptedProvider) -> list[dict[str, Any]]:
    return [request_body(prompt, ProviderSettings(), "claude") for prompt in model.prompts]


def told(body: dict[str, Any], size: int, most: int) -> str:
    """How many bytes are too many and where they are, for whoever has added some."""
    over = f"{size} B are {size - most + 1} B too many, the bound is below {most} B"
    lines = [f"  {number:5} B  {name}" for name, number in parts(body)]
    return "\n".join([f"{over}; docs/tools.md says what to do", *lines])


def test_the_message_of_a_bound_names_the_bytes_that_are_too_many() -> None:
    assert told({"system": [], "tools": []}, 8200, 8192).startswith("8200 B are 9 B too many")


async def test_a_conversation_carries_no_more_than_its_bound(
    untouched: Parts, model: ScriptedProvider
) -> None:
    ticket = await untouched.engine.sessions.submit(TurnRequest(MAIN, WORDS, "1"))
    await ticket.wait()
    (body,) = bodies(model)
    size = prompt_bytes(body) - len(WORDS)
    assert size < OF_A_CONVERSATION, told(body, size, OF_A_CONVERSATION)
    assert "# Project Context" in body["system"][1]["text"]


async def test_all_files_stand_before_the_notes_of_the_day(
    untouched: Parts, model: ScriptedProvider, tmp_path: Path
) -> None:
    notes = tmp_path / "workspace" / "memory"
    (notes / "2026-11-20.md").write_text("milk of yesterday\n")
    (notes / "2026-11-21.md").write_text("milk of today\n")
    shown = await untouched.engine.requests.preview(MAIN)
    ticket = await untouched.engine.sessions.submit(TurnRequest(MAIN, WORDS, "1"))
    await ticket.wait()
    assert (shown.system, shown.tools) == (model.prompts[0].system, model.prompts[0].tools)
    prompt = "\n\n".join(shown.system)
    marks = (
        "# Project Context",
        "## MEMORY.md",
        "## Recent Daily Notes",
        "of today",
        "of yesterday",
    )
    places = [prompt.index(mark) for mark in marks]
    assert places == sorted(places)


async def test_a_light_beat_carries_no_more_than_its_bound_each_time(
    untouched: Parts, model: ScriptedProvider
) -> None:
    for _ in range(3):
        await untouched.schedule.heartbeat.run(force=True)
    found = bodies(model)
    assert len(found) == 3
    for body in found:
        size = prompt_bytes(body)
        assert size < OF_A_BEAT, told(body, size, OF_A_BEAT)
    assert prompt_bytes(found[0]) == prompt_bytes(found[-1])
