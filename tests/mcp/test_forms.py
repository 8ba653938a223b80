"""A server asks the owner in the middle of a call."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentd.core.clock import SystemClock
from agentd.core.form import UNASKED, FormAction, FormAnswer, InputForm
from agentd.core.turn import Origin, SessionKey, SessionKind
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.schema import flat
from agentd.interfaces.mcp.tool import McpTool
from agentd.interfaces.mcp.waiting import Pauses, within
from agentd.testing.clock import FakeClock
from tests.mcp.servers import Asked, call, running, server
from tests.waiting import until

PROGRAM = str(Path(__file__).with_name("asking_server.py"))
CLOCK = SystemClock("UTC")
COMMAND = (sys.executable, "-W", "ignore", PROGRAM)


@dataclass
class Asker:
    """Answers each form the same way; never, where it is to think."""

    says: FormAnswer = UNASKED
    thinks: bool = False
    asked: list[InputForm] = field(default_factory=list)
    taken_back: int = 0

    async def fill(self, session: SessionKey, form: InputForm) -> FormAnswer:
        self.asked.append(form)
        try:
            while self.thinks:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.taken_back += 1
            raise
        return self.says


async def booked(
    folder: Path, asker: Asker, settings: McpServer | None = None, **given: Any
) -> str:
    one = server(folder, CLOCK, settings or McpServer(command=COMMAND), name="tables")
    async with running(one):
        await one.refresh()
        tool = McpTool(one, one.entries()["book"], vouched=True, most=2000, forms=asker)
        return (await tool.run(call("tables.book", {"day": "Friday", **given}), Asked())).text


@pytest.fixture
def address() -> Iterator[str]:
    process = subprocess.Popen([*COMMAND, "http"], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    process.kill()
    process.wait()
    process.stdout.close()


async def test_the_owner_fills_in_what_a_server_asks(tmp_path: Path) -> None:
    asker = Asker(FormAnswer(FormAction.ACCEPT, {"name": "Ann", "guests": 3}))
    said = await booked(tmp_path, asker)
    assert "accept {'name': 'Ann', 'guests': 3, 'room': 'inside', 'window': False}" in said
    (form,) = asker.asked
    assert (form.asker, form.message) == ("tables", "A table for Friday?")
    assert sorted(form.schema["properties"]) == ["guests", "name", "room", "window"]


async def test_over_http_as_well(tmp_path: Path, address: str) -> None:
    asker = Asker(FormAnswer(FormAction.ACCEPT, {"name": "Ann"}))
    assert "'guests': 2" in await booked(tmp_path, asker, McpServer(url=address))


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (FormAnswer(FormAction.DECLINE), "decline {}"),
        (FormAnswer(FormAction.CANCEL), "cancel {}"),
        (FormAnswer(FormAction.ACCEPT, {"guests": 2}), "cancel {}"),  # the name is missing
        (FormAnswer(FormAction.ACCEPT, {"name": "Ann", "x": 1}), "cancel {}"),
        (FormAnswer(FormAction.ACCEPT, {"name": "Ann", "guests": "two"}), "cancel {}"),
        (UNASKED, "Declined: nobody is there who could be asked."),
    ],
)
async def test_any_other_answer_is_told_as_what_it_is(
    tmp_path: Path, says: FormAnswer, words: str
) -> None:
    assert words in await booked(tmp_path, Asker(says))


async def test_one_call_asks_five_times_at_most(tmp_path: Path) -> None:
    asker = Asker(FormAnswer(FormAction.DECLINE))
    assert "Declined: nobody" in await booked(tmp_path, asker, times=9)
    assert len(asker.asked) == 5


async def test_silent_turns_and_groups_are_declined_without_asking(tmp_path: Path) -> None:
    asker = Asker(FormAnswer(FormAction.ACCEPT, {"name": "Ann"}))
    one = server(tmp_path, CLOCK, McpServer(command=COMMAND), name="tables")
    async with running(one):
        await one.refresh()
        tool = McpTool(one, one.entries()["book"], vouched=True, most=2000, forms=asker)
        asked = call("tables.book", {"day": "Friday"})
        for other in (
            replace(asked, origin=Origin.HEARTBEAT),
            replace(asked, kind=SessionKind.GROUP),
        ):
            assert "Declined: nobody" in (await tool.run(other, Asked())).text
    assert asker.asked == []


async def test_a_call_that_ends_takes_its_question_back(tmp_path: Path) -> None:
    asker = Asker(thinks=True)
    one = server(tmp_path, CLOCK, McpServer(command=COMMAND), name="tables")
    async with running(one), asyncio.TaskGroup() as group:
        await one.refresh()
        tool = McpTool(one, one.entries()["book"], vouched=True, most=2000, forms=asker)
        task = group.create_task(tool.run(call("tables.book", {"day": "Friday"}), Asked()))
        await until(lambda: asker.asked, "the owner is asked")
        task.cancel()
        await until(lambda: asker.taken_back == 1, "the question is taken back")


async def test_the_time_of_a_call_stands_still_while_the_owner_thinks() -> None:
    clock = FakeClock()
    pauses = Pauses(clock)

    async def work() -> str:
        await clock.sleep(20)
        with pauses.paused():  # those of the first call
            await clock.sleep(600)
        await clock.sleep(15)
        return "done"

    async def tried(of_call: Pauses) -> str:
        try:
            return await within(clock, 40, work(), of_call)
        except TimeoutError:
            return "late"

    async with asyncio.TaskGroup() as group:
        fits = group.create_task(tried(pauses))
        late = group.create_task(tried(Pauses(clock)))
        await clock.advance(700)
    assert (fits.result(), late.result()) == ("done", "late")


@pytest.mark.parametrize(
    ("properties", "is_form"),
    [
        ({"a": {"type": "string"}}, True),
        ({"a": {"type": "string", "oneOf": [{"const": "x", "title": "X"}]}}, True),
        ({"a": {"type": "array", "items": {"type": "string", "enum": ["x"]}}}, True),
        ({"a": {"type": "array", "items": {"type": "string"}}}, False),
        ({"a": {"type": "object"}}, False),
        ({"a": {}}, False),
        ({}, False),
        ({f"f{n}": {"type": "string"} for n in range(21)}, False),
    ],
)
def test_a_form_has_a_few_simple_fields(properties: dict[str, Any], is_form: bool) -> None:
    assert (flat({"type": "object", "properties": properties}) is not None) is is_form
