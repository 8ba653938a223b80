"""Limit the length of an answer to what the model's context window has room for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from math import ceil

from msgspec.structs import replace

from agentd.core.offloading import offload_rows
from agentd.core.ports import Provider
from agentd.core.prompt import Prompt, ProviderEvent, closing
from agentd.engine import tokens

_LEAST = 256  # tokens; a shorter answer says nothing
_MARGIN = 1.1  # factor by which a service may count more tokens than are estimated here
# The room is checked only in a window that holds fewer than this many of the longest answers.
_SMALL = 8


class AnswerRoom:
    """A provider that lowers `max_tokens` of each prompt to what is left of the window of `window`
    tokens. Servers that reserve the whole window for each call refuse one whose prompt and longest
    answer exceed it together.
    """

    def __init__(self, provider: Provider, window: int, max_tokens: int) -> None:
        self._inner = provider
        self._window = window
        self._max_tokens = max_tokens

    @property
    def name(self) -> str:
        """The wrapped provider's name."""
        return self._inner.name

    @property
    def model(self) -> str:
        """The wrapped provider's model."""
        return self._inner.model

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Yield the wrapped provider's events for the prompt with its answer limited."""
        wanted = prompt.max_tokens or self._max_tokens
        if _SMALL * wanted > self._window:
            used = await offload_rows(prompt.messages, partial(tokens.of_prompt, prompt))
            room = max(self._window - ceil(_MARGIN * used), _LEAST)
            prompt = replace(prompt, max_tokens=min(wanted, room))
        async with closing(self._inner.stream(prompt)) as events:
            async for event in events:
                yield event
