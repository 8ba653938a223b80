"""Reads a prompt: the user's own words, the results of tools, the facts and the time. Pure.

The user's words are the last text block of the last user message that has one. Blocks before it may
be fenced data (a summary, an alert) or the line with the time, which are never taken for the
user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from agentd.core.message import Image, JsonObject, Message, Role, Text, ToolResult, ToolUse
from agentd.core.prompt import Prompt


class FinalText(Struct, frozen=True):
    """The final text of the turn."""

    text: str


class OfflineCall(Struct, frozen=True):
    """A tool call; its result is in the next prompt."""

    tool: str
    input: JsonObject


Reply = FinalText | OfflineCall


_CLOCK = re.compile(r"\[Now: \w+ (\d{4}-\d{2}-\d{2} \d{2}:\d{2})[^\]\n]{0,40}\]\s*\Z")
_FENCE = '<data source="'
# Sections of facts: in the system prompt for the session, in a message for those relevant to it.
_TOLD = re.compile(
    r"^## (?:What is known about the user|Changes to what is known about the user"
    r"|Relevant Memories)\n"
    r'(?s:.{0,4000}?)^<data source="agentd, facts the user told">\n(?P<facts>(?s:.*?))^</data>$',
    re.MULTILINE,
)
_FACT = re.compile(r"- \[(?P<id>[^\s\]]{1,40})(?: since [\d-]{10})?\] (?P<text>.+)")
_OVER = re.compile(
    r"- \[(?P<old>[^\s\]]{1,40})\] no longer holds"
    r"(?:; since [\d-]{10}: \[(?P<id>[^\s\]]{1,40})\](?: (?P<text>.+))?|(?: since [\d-]{10})?\.)"
)


class FinishedToolCall(Struct, frozen=True):
    """A tool call of this turn and its result."""

    use: ToolUse
    result: ToolResult

    @property
    def is_done(self) -> bool:
        """Whether the tool succeeded."""
        return not self.result.is_error


def own_words(prompt: Prompt) -> str:
    """Return what the user said in this turn; "" if nothing."""
    at = _start(prompt)
    texts = [b.text for b in prompt.messages[at].blocks if isinstance(b, Text)] if at >= 0 else []
    return texts[-1] if texts and not _CLOCK.fullmatch(texts[-1]) else ""


def has_image(prompt: Prompt) -> bool:
    """Whether the user sent an image in this turn."""
    turn = prompt.messages[max(0, _start(prompt)) :]
    return any(isinstance(block, Image) for message in turn for block in message.blocks)


def done(prompt: Prompt) -> tuple[FinishedToolCall, ...]:
    """Return the calls of this turn that have results, in order."""
    return tuple(_pairs(prompt.messages[max(0, _start(prompt)) :]))


def written_notes(prompt: Prompt) -> tuple[str, ...]:
    """Return what successful `memory_write` calls anywhere in the conversation have stored."""
    pairs = _pairs(prompt.messages)
    return tuple(
        str(p.use.input.get("content", ""))
        for p in pairs
        if p.use.name == "memory_write" and not p.result.is_error
    )


def earlier_words(prompt: Prompt) -> tuple[str, ...]:
    """Return the user's own words of earlier turns, oldest first, without fenced text and tool
    results.
    """
    at = _start(prompt)
    texts = [
        block.text
        for message in prompt.messages[: at + 1]
        if message.role is Role.USER
        for block in message.blocks
        if isinstance(block, Text)
    ]
    return tuple(t for t in texts[:-1] if not t.startswith(_FENCE) and not _ends_in_clock(t))


def facts(prompt: Prompt) -> tuple[str, ...]:
    """Return the current facts in the prompt, one sentence each."""
    return tuple(dict.fromkeys(facts_by_id(prompt).values()))


def facts_by_id(prompt: Prompt) -> Mapping[str, str]:
    """Return the current facts in the prompt by id: the session's facts with later changes applied,
    and those relevant to this message.
    """
    at = _start(prompt)
    texts = [b.text for b in prompt.messages[at].blocks if isinstance(b, Text)] if at >= 0 else []
    beside = (text for text in texts[:-1] if not text.startswith(_FENCE))
    holding: dict[str, str] = {}
    for text in (*prompt.system, *beside):
        for told in _TOLD.finditer(text):
            for line in told["facts"].split("\n"):
                _take(line, holding)
    return holding


def fence_content(text: str, label: str) -> str:
    """Return the content of the text's first fence with this label; "" without one."""
    _, opened, rest = f"\n{text}".partition(f'\n<data source="{label}">\n')
    inside, closed, _ = f"\n{rest}".partition("\n</data>")
    return inside[1:] if opened and closed else ""


def entries(text: str, head: re.Pattern[str]) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the entries of a request, each as the match of its first line and all of its text. A
    line that `head` matches begins an entry; further lines of it are indented by two blanks.
    """
    found: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        if match := head.fullmatch(line):
            if found is not None:
                yield found, "\n".join(lines)
            found, lines = match, [match["text"]]
        else:
            lines.append(line.removeprefix("  "))
    if found is not None:
        yield found, "\n".join(lines)


def answer_before(prompt: Prompt) -> str:
    """Return the answer of the previous turn; "" if there is none."""
    before = prompt.messages[: max(0, _start(prompt))]
    return before[-1].text if before and before[-1].role is Role.ASSISTANT else ""


def remembered_words(prompt: Prompt) -> tuple[str, ...]:
    """Return the user's words of turns in which `remember` has kept a fact."""
    found: list[str] = []
    said = ""
    kept = {p.use.id for p in _pairs(prompt.messages) if p.use.name == "remember" and p.is_done}
    for message in prompt.messages:
        texts = [b.text for b in message.blocks if isinstance(b, Text)]
        if message.role is Role.USER and texts:
            said = texts[-1]
        found += [said for use in message.tool_uses if use.id in kept]
    return tuple(found)


def has_answered(prompt: Prompt) -> bool:
    """Whether the assistant has said anything in this conversation yet."""
    return any(m.role is Role.ASSISTANT and m.text for m in prompt.messages)


def now(prompt: Prompt) -> datetime | None:
    """Return the owner's wall time from the prompt, without a zone; None if the prompt does not
    contain it.
    """
    at = _start(prompt)
    texts = [b.text for b in prompt.messages[at].blocks if isinstance(b, Text)] if at >= 0 else []
    for text in reversed(texts[:-1] or texts):  # the last one is the user's, who may write anything
        if match := _CLOCK.search(text[-200:]):
            return _parse_time(match[1])
    return None


def _take(line: str, holding: dict[str, str]) -> None:
    """Apply one line of a list of facts to `holding`, the current facts by id: add, replace or
    remove.
    """
    over = _OVER.fullmatch(line)
    if over is not None:
        holding.pop(over["old"], None)
    told = over or _FACT.fullmatch(line)
    if told is not None and told["text"]:
        holding[told["id"]] = told["text"]


def _ends_in_clock(text: str) -> bool:
    return _CLOCK.search(text[-200:]) is not None


def _parse_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _start(prompt: Prompt) -> int:
    """Return the index of the message that begins this turn: the last user message with text; -1 if
    there is none.
    """
    for index in range(len(prompt.messages) - 1, -1, -1):
        message = prompt.messages[index]
        if message.role is Role.USER and any(isinstance(b, Text) for b in message.blocks):
            return index
    return -1


def _pairs(messages: tuple[Message, ...]) -> Iterator[FinishedToolCall]:
    uses: dict[str, ToolUse] = {}
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolUse):
                uses[block.id] = block
            elif isinstance(block, ToolResult) and block.tool_use_id in uses:
                yield FinishedToolCall(uses.pop(block.tool_use_id), block)
