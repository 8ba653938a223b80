"""Where the window is small, prompt and longest answer fit it together."""

import pytest

from agentd.core.message import user
from agentd.core.prompt import Prompt
from agentd.engine import tokens
from agentd.providers.answer_room import AnswerRoom
from agentd.testing import ScriptedProvider


async def asked(words: int, window: int, longest: int, of_prompt: int | None = None) -> Prompt:
    inner = ScriptedProvider("yes")
    prompt = Prompt((), (user("word " * words),), max_tokens=of_prompt)
    async for _ in AnswerRoom(inner, window, longest).stream(prompt):
        pass
    return inner.prompts[0]


@pytest.mark.parametrize("words", [1, 500, 2000, 4000])
async def test_a_call_fits_a_window_that_is_no_longer_than_the_longest_answer(words: int) -> None:
    prompt = await asked(words, 8192, 8192)
    assert prompt.max_tokens is not None
    assert prompt.max_tokens + tokens.of_prompt(prompt) <= 8192


@pytest.mark.parametrize(
    ("words", "window", "longest", "of_prompt", "told"),
    [
        (100, 200_000, 8192, None, None),  # left to the service's settings
        (100, 200_000, 8192, 50, 50),
        (100, 8192, 8192, 1000, 1000),
        (9000, 8192, 8192, None, 256),  # it is the service's to refuse
    ],
)
async def test_nothing_else_is_shortened(
    words: int, window: int, longest: int, of_prompt: int | None, told: int | None
) -> None:
    assert (await asked(words, window, longest, of_prompt)).max_tokens == told
