"""Streams of a model that are cut or changed at every byte, through a whole engine over a real
database.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from agentd.core.errors import ProviderError
from agentd.core.event import AnswerRetracted
from agentd.core.message import Message, ToolUse, assistant
from agentd.core.prompt import AnswerCompleted, Effect, ModelStop, Prompt, TextDelta, ToolSpec
from agentd.core.tool import ToolOutput
from agentd.core.transcript import RowRole
from agentd.core.turn import SessionKey, StopReason, Turn, Usage
from agentd.providers.faults import failure
from agentd.providers.provider_settings import ServiceSettings
from agentd.providers.resilience import CircuitBreaker, RetryingProvider
from agentd.testing import FakeClock
from tests.streams.breaking import CUTS, FAULTS, SILENCE, Broken, Service, broken
from tests.streams.reading import Said, said
from tests.streams.recorded import NAMES, TOOL, WIRES, stream

_A_SESSION = 8  # faults that one session lives through
_TOGETHER = 4  # faults before a message that must be answered


class Note:
    """A tool that keeps what it was given."""

    spec = ToolSpec(
        TOOL,
        "Notes a text.",
        {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
        Effect.EXTERNAL,
    )

    def __init__(self) -> None:
        self.runs: list[tuple[str, str]] = []

    async def run(self, call, gate) -> ToolOutput:
        self.runs.append((call.name, json.dumps(dict(call.input), sort_keys=True)))
        return ToolOutput("noted")


@dataclass
class Judge:
    """Sends messages to sessions whose service is broken, and holds what is kept against what was
    served.
    """

    world: Any
    service: Service
    tool: Note
    wrong: list[str] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    faults: int = 0
    patience: float = 20.0  # seconds that the machine may take for a turn
    tries: bool = False  # whether a call that failed may be made again

    async def run(self, data: bytes, faults: Iterable[tuple[int, str]]) -> None:
        """A message for each fault, and behind some of them one that must be answered."""
        for number, (at, fault) in enumerate(faults):
            session = f"chat:{number // _A_SESSION}"
            await self._fault(data, at, fault, session)
            if number % _TOGETHER == _TOGETHER - 1:
                await self._well(session)
        await self._well(session)

    async def _fault(self, data: bytes, at: int, fault: str, session: str) -> None:
        self.faults += 1
        self.service.next = [broken(data, at, fault)]
        before, first = await self._rows(session), len(self.service.served)
        self.tool.runs.clear()
        turn = await self._say(session)
        where = f"{self.service.wire} {fault} at {at}"
        if turn is None:
            self.wrong.append(f"{where}: the turn does not end")
            return
        answers = [self._read(sent) for sent in self.service.served[first:]]
        self._judge_turn(where, turn, answers, is_cut=fault in CUTS)
        if turn.failure is not None:
            answers = answers[:-1]
        whole = [answer for answer in answers if answer is not None]
        self._judge_rows(where, (await self._rows(session))[len(before) :], whole)
        self._judge_runs(where, [call for answer in whole for call in answer.calls])

    def _judge_turn(
        self, where: str, turn: Turn, answers: list[Said | None], *, is_cut: bool
    ) -> None:
        """A turn ends well only on a whole answer; on one that was whole before it was cut it
        must.
        """
        self.ended[turn.failure.code if turn.failure else str(turn.stop_reason)] += 1
        if turn.failure is None and None in (answers[-1:] if self.tries else answers):
            self.wrong.append(f"{where}: ended by {turn.stop_reason} on half an answer")
        if turn.failure is not None and is_cut and None not in answers:
            self.wrong.append(f"{where}: a whole answer was lost: {turn.failure.code}")

    def _judge_rows(self, where: str, rows: list[Any], answers: list[Said]) -> None:
        """What is kept of the model is what it has said in whole answers, and nothing else."""
        kept = [row for row in rows if row.role is RowRole.ASSISTANT]
        told = [(row.text, _calls(row)) for row in kept]
        wanted = [(_shown(answer.text), answer.calls) for answer in answers]
        if told != wanted:
            self.wrong.append(f"{where}: kept {told}, said was {wanted}")

    def _judge_runs(self, where: str, calls: list[tuple[str, str]]) -> None:
        """What ran was called in a whole answer; all of it ran, unless it is no call of the
        tool.
        """
        fitting = [call for call in calls if call[0] == TOOL and _fits(json.loads(call[1]))]
        if sorted(self.tool.runs) != sorted(fitting):
            self.wrong.append(f"{where}: ran {self.tool.runs}, called was {fitting}")

    async def _well(self, session: str) -> None:
        turn = await self._say(session)
        if turn is None or turn.stop_reason is not StopReason.END_TURN or not turn.text:
            self.wrong.append(f"{self.service.wire}: {session} is dead: {turn}")

    async def _say(self, session: str) -> Turn | None:
        """The ended turn; None if it does not end by the time that its service is given up."""
        ticket = await self.world.submit("go on", session=session)
        ended = asyncio.ensure_future(ticket.wait())
        try:
            for _ in range(3):
                stalled = asyncio.ensure_future(self.service.stalled.wait())
                await asyncio.wait(
                    {ended, stalled}, return_when=asyncio.FIRST_COMPLETED, timeout=self.patience
                )
                stalled.cancel()
                if ended.done():
                    return ended.result()
                self.service.stalled.clear()
                await self.world.clock.advance(SILENCE)
            return None
        finally:
            ended.cancel()

    async def _rows(self, session: str) -> list[Any]:
        key = SessionKey(session)
        return list(await self.world.store.rows(key)) if await self.world.store.exists(key) else []

    def _read(self, sent: Broken) -> Said | None:
        return said(self.service.wire, sent.data, ended=sent.end in ("", "end"))


def _calls(row: Any) -> tuple[tuple[str, str], ...]:
    used = [block for block in row.blocks if isinstance(block, ToolUse)]
    return tuple((b.name, json.dumps(dict(b.input), sort_keys=True)) for b in used)


def _shown(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which nothing can hold."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _fits(given: Any) -> bool:
    return isinstance(given, dict) and given.keys() == {"text"} and isinstance(given["text"], str)


async def judged(
    world: Any,
    wire: str,
    name: str,
    every: int,
    wrap: Callable[[Any], Any] = lambda provider: provider,
    ways: Sequence[str] = FAULTS,
) -> Judge:
    """What came of a stream that broke at every so many bytes, in one of the ways, or in all at
    every byte. `wrap` puts something between the engine and the provider.
    """
    data = stream(wire, name)
    places = range(0, len(data) + 1, every)
    kinds = [ways if every == 1 else (ways[n % len(ways)],) for n in range(len(places))]
    faults = [(at, kind) for at, some in zip(places, kinds, strict=True) for kind in some]
    service, tool = Service(wire, stream(wire, "text"), world.clock), Note()
    world.tools = (tool,)
    async with service.provider() as provider:
        await provider.warm()
        world.provider = wrap(provider)
        await world.start()
        judge = Judge(world, service, tool, tries=isinstance(world.provider, CircuitBreaker))
        if isinstance(world.provider, Instead):
            judge.patience = 0.3
        await judge.run(data, faults)
        await world.stop()
    judge.wrong += service.wrong
    return judge


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_that_breaks_at_every_seventh_byte_leaves_nothing_half(
    world, wire, name
) -> None:
    judge = await judged(world, wire, name, 7)
    assert not judge.wrong, "\n".join(judge.wrong[:20])


class Hurried(FakeClock):
    """A clock on which nobody waits."""

    async def sleep(self, seconds: float) -> None:
        self._move(seconds)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wire", WIRES)
async def test_of_a_broken_try_nothing_is_in_the_answer_of_the_next(world, wire, name) -> None:
    def trying(provider: Any) -> CircuitBreaker:
        clock = Hurried()
        return CircuitBreaker(RetryingProvider(provider, ServiceSettings(), clock), clock)

    judge = await judged(world, wire, name, 47, trying, CUTS)
    assert not judge.wrong, "\n".join(judge.wrong[:20])
    assert world.events.of(AnswerRetracted)
    assert judge.ended.total() - judge.ended["end_turn"] < judge.faults / 3


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_that_breaks_at_every_byte_leaves_nothing_half(
    world, wire, name, capsys
) -> None:
    began = time.process_time()
    judge = await judged(world, wire, name, 1)
    with capsys.disabled():
        seconds = time.process_time() - began
        print(f"\n{wire} {name}: {judge.faults} faults in {seconds:.0f} s, {dict(judge.ended)}")
    assert not judge.wrong, "\n".join(judge.wrong[:20])


@dataclass
class Instead:
    """A provider that gives `answer` in the place of a failure, of which it is told the words so
    far.
    """

    inner: Any
    answer: Callable[[str], Message | None]
    name = "instead"
    model = "m"
    has_failed = False

    async def stream(self, prompt: Prompt):
        words = ""
        try:
            async for event in self.inner.stream(prompt):
                words += event.text if isinstance(event, TextDelta) else ""
                yield event
        except ProviderError:
            self.has_failed = True
            if (message := self.answer(words)) is None:
                raise
            stop = ModelStop.TOOL_USE if message.tool_uses else ModelStop.END_TURN
            yield AnswerCompleted(message, stop, Usage(1, 1), self.model, self.name)


class Sulking(Instead):
    """One that answers no more once it has failed."""

    async def stream(self, prompt: Prompt):
        if self.has_failed:
            raise failure("bad_request")
        async for event in super().stream(prompt):
            yield event


class Silent(Instead):
    """One that never says that it has failed."""

    async def stream(self, prompt: Prompt):
        try:
            async for event in self.inner.stream(prompt):
                yield event
        except ProviderError:
            await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("kind", "answer", "words"),
    [
        (Instead, lambda words: None, ""),
        (Instead, lambda words: assistant(words) if words else None, "on half an answer"),
        (Instead, lambda words: assistant("I do not know."), "kept [('I do not know.', ())]"),
        (
            Instead,
            lambda words: assistant("", ToolUse("c1", TOOL, {"text": "half"})),
            "ran [('note'",
        ),
        (Sulking, lambda words: None, "is dead"),
        (Silent, lambda words: None, "the turn does not end"),
    ],
)
async def test_a_provider_that_takes_a_cut_answer_for_another_is_found_out(
    world, kind, answer, words
) -> None:
    judge = await judged(world, "anthropic", "text", 280, lambda inner: kind(inner, answer))
    found = "\n".join(judge.wrong)
    assert words in found
    assert bool(found) is bool(words)
