"""What a turn's prompt is made of."""

from __future__ import annotations

from agentd.core.transcript import NOTHING_OFFERED, History
from agentd.core.turn import MAIN, TurnRequest
from agentd.core.workspace import ContextBlock
from agentd.engine.context import Instructions, Scenes
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
    scenes = Scenes(
        (cheap, dear), NoTools(), FakeClock(), ScriptedProvider(), words, NOTHING_OFFERED
    )
    request = TurnRequest(MAIN, "", "")
    scene = await scenes.for_turn(request, History(MAIN), without=(dear,))
    assert scene.system == ("You are the agent.", "files")
    assert (cheap.asked, dear.asked) == (1, 0)
    scene = await scenes.for_turn(request, History(MAIN))
    assert scene.system == ("You are the agent.", "files", "facts")
