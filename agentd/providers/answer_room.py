"""How long an answer may be where the model's window is small."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from math import ceil

from agentd.core.offloading import ROWS, offload
from agentd.core.ports import Provider
from agentd.core.prompt import Prompt, ProviderEvent, closing
from agentd.engine import tokens

_LEAST = 256  # tokens; a shorter answer says nothing
_MARGIN = 1.1  # by which a service may count more than is estimated here
_SMALL = 8  # of a window so many answers long, what is left of it is never looked at


class AnswerRoom:
    """A provider that is asked for no longer an answer than the window of `window` tokens has room for:
    servers that hold whole windows for each call refuse one whose prompt and longest answer exceed it.
    """

    def __init__(self, provider: Provider, window: int, max_tokens: int) -> None:
        self._inner = provider
        self._window = window
        self._max_tokens = max_tokens

    @property
    def name(self) -> str:
        """The wrapped provider's."""
        return self._inner.name

    @property
    def model(self) -> str:
        """The wrapped provider's."""
        return self._inner.model

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """The wrapped provider's events."""
        wanted = prompt.max_tokens or self._max_tokens
        if _SMALL * wanted > self._window:
            used = await offload(
                len(prompt.messages), partial(tokens.of_prompt, prompt), light=ROWS
            )
            room = max(self._window - ceil(_MARGIN * used), _LEAST)
            prompt = replace(prompt, max_tokens=min(wanted, room))
        async with closing(self._inner.stream(prompt)) as events:
            async for event in events:
                yield event
