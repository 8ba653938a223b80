"""What a turn's prompt is made of."""

from __future__ import annotations

from agentd.core.prompt import ContextBlock, Rank
from agentd.core.transcript import NOTHING_OFFERED, History
from agentd.core.turn import MAIN, TurnRequest
from agentd.engine.context import ContextBuilder, Instructions
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
    builder = ContextBuilder(
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
    builder = ContextBuilder(
        backwards, NoTools(), FakeClock(), ScriptedProvider(), words, NOTHING_OFFERED
    )
    context = await builder.for_turn(TurnRequest(MAIN, "", ""), History(MAIN))
    assert context.system == ("You are the agent.", *(rank.name for rank in Rank))
