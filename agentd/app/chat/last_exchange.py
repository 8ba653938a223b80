"""What was said last in a session that a chat opens again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.app.chat.screen import Display
from agentd.core.errors import AgentdError
from agentd.core.message import Text, decode_block
from agentd.interfaces.client.conversation import (
    Conversation,
)
from agentd.interfaces.commands.plain import Times

_ROWS = 40  # of the end of the transcript, among which the exchange is looked for
_PATIENCE = 2.0  # seconds for each of two questions; a chat begins without it rather than late
_QUESTION_LINES, _ANSWER_LINES = 4, 16
Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LastExchange:
    """A message and its answer; `at` is the ISO time of the answer."""

    question: str
    answer: str
    at: str


async def fetch_last(conversation: Conversation) -> LastExchange | None:
    """The last message of the conversation's session that was answered, None where there is none
    among the newest rows or the daemon does not tell in time.
    """
    try:
        told = await conversation.call("_agentd/sessions/list", within=_PATIENCE)
        here = [one for one in told["sessions"] if one["key"] == conversation.session]
        if not here or not here[0].get("rows"):
            return None
        asked = {"key": conversation.session, "first": max(1, here[0]["rows"] - _ROWS + 1)}
        page = await conversation.call("_agentd/sessions/export", asked, within=_PATIENCE)
    except AgentdError:
        return None  # what was said stands in the transcript; that is no reason to disturb
    return last_of(page["lines"])


def last_of(lines: Sequence[Line]) -> LastExchange | None:
    """The last answered message among exported rows."""
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


def show_exchange(exchange: LastExchange, session: str, screen: Display, times: Times) -> None:
    """Put it on the screen, with its time, cut where it is long."""
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
