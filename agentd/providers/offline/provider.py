"""The provider that needs no key and no network: deterministic rules over the prompt.

Like any model, it reads messages and tool specs, calls tools, reads their results in the next
prompt, and answers. Text in fences, notes and tool results is quoted, never obeyed.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from itertools import count

from agentd.core.message import Message, ToolUse, assistant
from agentd.core.money import BUILT_IN
from agentd.core.prompt import AnswerCompleted, ModelStop, Prompt, ProviderEvent, TextDelta
from agentd.core.turn import Origin, Usage
from agentd.engine import tokens
from agentd.providers.offline.conversation import OfflineCall, Reply

_PIECE = re.compile(r"\S+\s*|\s+")
_STREAMED = 4_000  # characters that are sent word by word; the rest is sent at once


class OfflineProvider:
    """A provider without a language model: equal prompts get equal answers.

    The rules are loaded at the first call, or by `warm`.
    """

    name = "offline"

    def __init__(self, model: str = BUILT_IN) -> None:
        self.model = model

    async def warm(self) -> None:
        """Load the rules now, so that the first call does not wait for them."""
        await asyncio.to_thread(_rules)

    async def stream(self, prompt: Prompt) -> AsyncIterator[ProviderEvent]:
        """Yield the answer's text word by word, then `AnswerCompleted`. Never raises."""
        reply = await asyncio.to_thread(_reply, prompt)  # the rules take their time over long texts
        if isinstance(reply, OfflineCall):
            use = ToolUse(_call_id(prompt, reply), reply.tool, reply.input)
            message, stop = assistant("", use), ModelStop.TOOL_USE
        else:
            for piece in _pieces(reply.text):
                yield TextDelta(piece)
            message, stop = assistant(reply.text), ModelStop.END_TURN
        yield AnswerCompleted(message, stop, _usage(prompt, message), self.model, self.name)


@cache
def _rules() -> Mapping[Origin, Callable[[Prompt], Reply]]:
    """Load the rules and return the function that replies to turns of each origin."""
    # Compiling the rules' patterns takes a tenth of a second, which a start does not wait for.
    from agentd.providers.offline import beat, chat, flush, forgetting, learning, summary

    return {
        Origin.USER: chat.reply,
        Origin.EMBEDDING: chat.reply,  # never in a prompt
        Origin.HEARTBEAT: beat.reply,
        Origin.JOB: beat.reply_to_job,
        Origin.FLUSH: flush.reply,
        Origin.SUMMARY: summary.reply,
        Origin.EXTRACTION: learning.reply,
        Origin.FORGETTING: forgetting.reply,
    }


def _reply(prompt: Prompt) -> Reply:
    return _rules()[prompt.origin](prompt)


def _pieces(text: str) -> list[str]:
    pieces = _PIECE.findall(text[:_STREAMED])
    return [*pieces, text[_STREAMED:]] if len(text) > _STREAMED else pieces


def _call_id(prompt: Prompt, call: OfflineCall) -> str:
    """Return an id for the call that depends on the conversation alone and is not used in it."""
    used = {use.id for message in prompt.messages for use in message.tool_uses}
    seed = repr((len(prompt.messages), prompt.messages[-1:], call.tool, dict(call.input)))
    digests = (
        hashlib.sha256(f"{attempt} {seed}".encode(errors="replace")).hexdigest()
        for attempt in count()
    )
    return next(name for d in digests if (name := f"offline_{d[:16]}") not in used)


def _usage(prompt: Prompt, message: Message) -> Usage:
    read = sum(tokens.of_block(b) for m in prompt.messages for b in m.blocks)
    wrote = sum(tokens.of_block(b) for b in message.blocks)
    return Usage(tokens.of_fixed(prompt.system, prompt.tools) + read, wrote)
