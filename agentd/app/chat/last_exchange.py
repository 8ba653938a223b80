"""The last message and answer of a session, shown when a chat opens it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from agentd.app.chat.screen import Display
from agentd.core.errors import AgentdError
from agentd.core.message import Text, decode_block
from agentd.interfaces.client.conversation import (
    Conversation,
)
from agentd.interfaces.commands.plain import TimeFormatter

_ROWS = 40  # rows at the end of the transcript that are searched
_PATIENCE = 2.0  # seconds for each of two calls; the chat then begins without the exchange
_QUESTION_LINES, _ANSWER_LINES = 4, 16
Line = Mapping[str, Any]


class LastExchange(Struct, frozen=True):
    """A message and its answer; `at` is the ISO time of the answer."""

    question: str
    answer: str
    at: str


async def fetch_last(conversation: Conversation) -> LastExchange | None:
    """Return the last answered message of the conversation's session; None if there is none among
    the newest rows, or the daemon does not answer in time.
    """
    try:
        told = await conversation.call("_agentd/sessions/list", within=_PATIENCE)
        here = [one for one in told["sessions"] if one["key"] == conversation.session]
        if not here or not here[0].get("rows"):
            return None
        asked = {"key": conversation.session, "first": max(1, here[0]["rows"] - _ROWS + 1)}
        page = await conversation.call("_agentd/sessions/export", asked, within=_PATIENCE)
    except AgentdError:
        return None  # the exchange is only a reminder: its absence is not reported
    return last_of(page["lines"])


def last_of(lines: Sequence[Line]) -> LastExchange | None:
    """Return the last answered message among exported rows."""
    answer: Line | None = None
    for line in reversed(lines):
        if line["role"] == "assistant" and answer is None and _text(line):
            answer = line
        elif line["role"] == "user" and answer is not None and _text(line):
            return LastExchange(_text(line), _text(answer), answer["at"])
    return None


def _text(line: Line) -> str:
    blocks = (decode_block(block) for block in line["content"])
    return "\n".join(block.text.strip() for block in blocks if isinstance(block, Text)).strip()


def show_exchange(
    exchange: LastExchange, session: str, screen: Display, times: TimeFormatter
) -> None:
    """Show the exchange with its time, long texts cut."""
    question, question_is_cut = _beginning(exchange.question, _QUESTION_LINES)
    answer, answer_is_cut = _beginning(exchange.answer, _ANSWER_LINES)
    screen.aside(f"said last, {times.short(exchange.at)}")
    screen.line(f"> {question}")
    screen.words(answer)
    screen.end_line()
    if question_is_cut or answer_is_cut:
        screen.aside(f"cut here; `agentd sessions show {session}` has it whole")


def _beginning(text: str, most: int) -> tuple[str, bool]:
    lines = text.split("\n")
    return "\n".join(lines[:most]), len(lines) > most
