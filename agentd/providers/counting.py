"""The tokens that a call has used: the service's counts where plausible, estimates elsewhere.

Some servers count nothing, some only what was not cached, some nonsense. Budgets and the size of a
conversation depend on these figures, so impossible ones are replaced.
"""

from __future__ import annotations

import structlog
from msgspec.structs import replace

from agentd.core.health import Problem
from agentd.core.message import Image, Text, ToolResult
from agentd.core.offloading import offload_rows
from agentd.core.prompt import Prompt
from agentd.core.turn import Usage
from agentd.engine import tokens

log = structlog.get_logger()

# An estimate may be wrong by this factor: repeated letters take few tokens, rare scripts many.
_FACTOR = 10
# Tokens: what services add to a prompt (templates, tools of their own), the most that any of them
# counts for an image, and the size below which a text says too little of how a service counts.
_ADDED = 20_000
_MOST_OF_IMAGE = 50_000
_SMALL = 1_000
# A prompt of so many tokens, by our estimate, of which a service has never counted one in _CUT
# tokens has been cut, or is of a rare kind.
_LONG, _CUT = 2_000, 2
_LONGER = (
    "Start the server with a longer context, and set [provider] context_window to the same; "
    "`agentd config check` says what yours needs."
)


class TokenCounts:
    """Checks the counts that one service reports; the first implausible one is logged."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._is_told = False
        self._most_told = self._most_sent = 0  # tokens of one prompt, by the service and by us

    def problems(self) -> tuple[Problem, ...]:
        """Return the problem that the service seems to read only a part of long prompts: it has
        never counted half as much as was sent. None is returned where it counts nothing.
        """
        if not 0 < self._most_told * _CUT < self._most_sent:
            return ()
        text = (
            f"{self._service} counted at most {self._most_told:,} tokens of a prompt of about "
            f"{self._most_sent:,}: it may have cut the rest without a word."
        )
        return (Problem("prompt_cut", text, _LONGER),)

    async def used(
        self, prompt: Prompt, told: Usage | None, written: int, max_tokens: int
    ) -> Usage:
        """Return the tokens that a call has used. `told` is what the service reports (None:
        nothing). About `written` tokens of an answer have arrived, of at most `max_tokens`
        requested.
        """
        self._most_told = max(self._most_told, told.prompt_tokens if told else 0)
        if told is not None and _is_usual(told, _letters(prompt), written):
            return told
        return await offload_rows(
            prompt.messages, lambda: self._used(prompt, told, written, max_tokens)
        )

    def _used(self, prompt: Prompt, told: Usage | None, written: int, max_tokens: int) -> Usage:
        estimate = Usage(tokens.of_prompt(prompt), written)
        if told is None:
            return estimate
        images = sum(isinstance(b, Image) for m in prompt.messages for b in m.blocks)
        pictures = images * tokens.PER_IMAGE
        if estimate.input_tokens - pictures >= _LONG:
            self._most_sent = max(self._most_sent, estimate.input_tokens - pictures)
        most_read = estimate.input_tokens * _FACTOR + images * _MOST_OF_IMAGE + _ADDED
        most_said = (written + max_tokens) * _FACTOR
        found = told
        if not _can_be(told.prompt_tokens, estimate.input_tokens - pictures, most_read):
            found = Usage(estimate.input_tokens, told.output_tokens)
        if not _can_be(told.output_tokens, written, most_said):
            found = replace(found, output_tokens=written)
        if found != told and not self._is_told:
            self._is_told = True
            log.warning(
                "token_count_not_believed",
                service=self._service,
                told_input=told.prompt_tokens,
                told_output=told.output_tokens,
                used_input=found.prompt_tokens,
                used_output=found.output_tokens,
            )
        return found


def _letters(prompt: Prompt) -> int:
    """Return the characters of the prompt's texts. Estimating its tokens takes several times as
    long.
    """
    return sum(map(len, prompt.system)) + sum(
        len(block.text)
        for message in prompt.messages
        for block in message.blocks
        if isinstance(block, Text | ToolResult)
    )


def _is_usual(told: Usage, letters: int, written: int) -> bool:
    """Whether the reported counts are those of an ordinary text, so that no estimate is needed: two
    to eight characters of the prompt a token, with an allowance for what services add, and half to
    twice the answer's estimate.
    """
    is_read = letters <= 8 * told.prompt_tokens and 2 * told.prompt_tokens <= letters + _ADDED
    return is_read and written <= 2 * told.output_tokens and told.output_tokens <= 2 * written


def _can_be(told: int, estimate: int, most: int) -> bool:
    """Whether a service can have counted `told` tokens for a text of about `estimate` tokens,
    `most` being the upper bound.
    """
    if not told:
        return not estimate
    return told <= most and (estimate < _SMALL or told * _FACTOR >= estimate)
