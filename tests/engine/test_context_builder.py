"""What a turn's prompt is made of."""

from __future__ import annotations

import pytest

from agentd.core.errors import StorageError
from agentd.core.prompt import ContextBlock, Effect, Rank, ToolSpec
from agentd.core.transcript import NOTHING_OFFERED, History
from agentd.core.turn import MAIN, PromptScope, SessionKind, TurnRequest
from agentd.engine.context import Instructions, PromptGatherer
from agentd.testing import FakeClock, ScriptedProvider


class Counting:
    """A source that counts how often it is asked."""

    def __init__(self, text):
        self.text, self.asked = text, 0

    async def blocks(self, request):
        self.asked += 1
        return (ContextBlock(self.text),)


class NoTools:
    def specs(self, request):
        return ()


async def test_a_source_that_is_left_out_is_not_even_asked():
    cheap, dear = Counting("files"), Counting("facts")
    words = Instructions("You are the agent.", "Light.")
    builder = PromptGatherer(
        (cheap, dear), NoTools(), FakeClock(), ScriptedProvider(), words, NOTHING_OFFERED
    )
    request = TurnRequest(MAIN, "", "")
    context = await builder.for_turn(request, History(MAIN), without=(dear,))
    assert context.system == ("You are the agent.", "files")
    assert (cheap.asked, dear.asked) == (1, 0)
    context = await builder.for_turn(request, History(MAIN))
    assert context.system == ("You are the agent.", "files", "facts")


class Ranked:
    """A source whose one block has a place of its own."""

    def __init__(self, rank):
        self.rank = rank

    async def blocks(self, request):
        return (ContextBlock(self.rank.name, rank=self.rank),)


async def test_the_system_prompt_has_the_order_of_the_ranks_whatever_that_of_the_sources():
    backwards = [Ranked(rank) for rank in reversed(Rank)]
    words = Instructions("You are the agent.", "Light.")
    builder = PromptGatherer(
        backwards, NoTools(), FakeClock(), ScriptedProvider(), words, NOTHING_OFFERED
    )
    context = await builder.for_turn(TurnRequest(MAIN, "", ""), History(MAIN))
    assert context.system == ("You are the agent.", *(rank.name for rank in Rank))


async def test_a_source_that_breaks_is_told_and_its_block_alone_is_missing():
    class Broken:
        error: Exception | None = OverflowError("date value out of range")

        async def blocks(self, request):
            if self.error:
                raise self.error
            return (ContextBlock("facts"),)

    broken = Broken()
    words = Instructions("You are the agent.", "Light.")
    sources = (broken, Counting("files"))
    builder = PromptGatherer(
        sources, NoTools(), FakeClock(), ScriptedProvider(), words, NOTHING_OFFERED
    )
    request = TurnRequest(MAIN, "", "")
    context = await builder.for_turn(request, History(MAIN))
    assert context.system == ("You are the agent.", "files")
    [problem] = builder.problems()
    assert problem.code == "context_source_broke"
    assert "Broken could not add to the prompt (OverflowError)" in problem.text
    broken.error = StorageError("state.db could not be read", cure="look at the disk")
    await builder.for_turn(request, History(MAIN), without=(broken,))
    assert builder.problems() == (problem,), "it was not asked"
    await builder.for_turn(request, History(MAIN))
    assert builder.problems()[0].cure == "look at the disk"
    broken.error = None
    context = await builder.for_turn(request, History(MAIN))
    assert context.system == ("You are the agent.", "facts", "files")
    assert builder.problems() == ()


class Some:
    """A toolbox that has `remember` in conversations of the owner."""

    def specs(self, request):
        spec = ToolSpec("remember", "Keeps.", {"type": "object"}, Effect.IDEMPOTENT)
        return (spec,) if request.kind is SessionKind.OWNER else ()


@pytest.mark.parametrize(
    ("session", "said"),
    [(MAIN, "You are the agent.\n- Remember."), ("group:a", "You are the agent.")],
)
async def test_what_is_said_about_a_tool_is_said_where_it_is(session, said):
    words = Instructions("You are the agent.", "Light.", {"remember": "- Remember."})
    builder = PromptGatherer((), Some(), FakeClock(), ScriptedProvider(), words, NOTHING_OFFERED)
    context = await builder.for_turn(TurnRequest(session, "", ""), History(session))
    assert context.system == (said,)
    light = TurnRequest(session, "", "", context=PromptScope.LIGHT)
    assert (await builder.for_turn(light, History(session))).system == ("Light.",)
