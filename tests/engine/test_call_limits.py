"""However much a model calls, only so much runs and only so much comes back."""

from __future__ import annotations

from agentd.core.event import ToolCallStarted
from agentd.core.message import Message, Role, ToolResult, ToolUse
from agentd.core.prompt import AnswerCompleted, Effect, ModelStop, ToolSpec
from agentd.core.tool import ToolOutput
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import MAIN, TurnRequest, Usage
from agentd.engine.loop import _storable
from tests.growth import QUADRATIC, growth


class Talker:
    """Answers every call with the same text."""

    spec = ToolSpec("talk", "t", {"type": "object"}, Effect.READ_ONLY)

    def __init__(self, text: str = "said") -> None:
        self.text = text
        self.runs = 0

    async def run(self, call, gate):
        self.runs += 1
        return ToolOutput(self.text)


def answer(calls: int, name: str = "c") -> Message:
    return Message(Role.ASSISTANT, tuple(ToolUse(f"{name}{n}", "talk", {}) for n in range(calls)))


async def start(world, tool: Talker, **limits: int) -> None:
    world.settings = world.settings.model_copy(update=limits)
    world.tools = (tool,)
    await world.start()


def results(world, prompt: int = -1) -> list[str]:
    blocks = world.provider.prompts[prompt].messages[-1].blocks
    return [block.text for block in blocks if isinstance(block, ToolResult)]


async def test_of_two_thousand_calls_in_one_answer_the_first_few_run(world) -> None:
    tool = Talker()
    await start(world, tool)
    world.provider.say(answer(2000), "done")
    turn = await world.say("go")
    assert tool.runs == world.settings.max_answer_tool_calls == 32
    assert turn.text == "done"
    assert len(turn.tool_calls) == 32
    assert len(results(world)) == 2000, "every call has its result"
    assert results(world)[32] == "Not run: one answer may make 32 calls."
    assert len(world.events.of(ToolCallStarted)) == 32, "nobody is flooded with what did not run"


async def test_calls_are_counted_over_all_answers_of_a_turn_and_anew_in_the_next(world) -> None:
    tool = Talker()
    await start(world, tool, max_turn_tool_calls=5)
    world.provider.say(answer(3), answer(3, "d"), "done")
    await world.say("go")
    assert tool.runs == 5
    assert results(world)[-1] == "Not run: one turn may make 5 calls."
    world.provider.say(answer(3, "e"), "done")
    await world.say("again")
    assert tool.runs == 8


async def test_a_turn_that_was_cut_has_no_more_calls_than_another(world) -> None:
    tool = Talker()
    await start(world, tool, max_turn_tool_calls=3)
    receipt = await world.store.receive(TurnRequest(MAIN, "go", "m"))
    await world.store.begin(receipt.turn_id)
    asked = NewRow(RowRole.ASSISTANT, tuple(ToolUse(f"c{n}", "talk", {}) for n in range(4)))
    await world.store.append(receipt.turn_id, asked)
    for n in range(2):
        await world.journal.settle(receipt.turn_id, f"c{n}", ToolOutput("before the crash"))
    await world.say("go", "m")
    assert tool.runs == 1
    assert results(world) == ["before the crash"] * 2 + [
        "said",
        "Not run: one turn may make 3 calls.",
    ]


async def test_the_tools_of_a_turn_together_answer_no_more_than_it_may_hold(world) -> None:
    tool = Talker("x" * 900)
    await start(world, tool, max_tool_output=1000, max_turn_tool_output=2000)
    world.provider.say(answer(2), answer(2, "d"), "done")
    await world.say("go")
    assert [text.count("x") for text in results(world, 1)] == [900, 900]
    cut, nothing = results(world)
    assert cut == f"{'x' * 200}\n[… 700 of 900 characters left out]"
    assert nothing.count("x") == 0
    assert "900 of 900 characters left out" in nothing
    world.provider.say(answer(1, "e"), "done")
    await world.say("again")
    assert results(world)[0] == tool.text


def test_many_calls_with_one_id_are_told_apart_in_time_that_grows_with_their_number() -> None:
    def work(size: int) -> None:
        calls = Message(Role.ASSISTANT, tuple(ToolUse("same", "talk", {}) for _ in range(size)))
        blocks = _storable(AnswerCompleted(calls, ModelStop.TOOL_USE, Usage(), "m", "p"), ())
        assert len({block.id for block in blocks}) == size

    assert growth(work, 1_000) < QUADRATIC
