"""What the Messages API would refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentd.domain.message import Message, encode_blocks


def check_messages(messages: Iterable[Message]) -> None:
    """AssertionError if the Messages API would refuse these.

    Messages without blocks, and blocks of other providers, are left out as a provider does.
    """
    check_api_messages(
        [{"role": str(m.role), "content": encode_blocks(m.blocks)} for m in messages if m.blocks]
    )


def check_api_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    """AssertionError if the Messages API would refuse this array, saying where and why.

    Neighbours of one role count as one message, as they do there.
    """
    turns = _api_turns(messages)
    assert turns, "no messages"
    assert turns[0][0] == "user", "the first message is not the user's"
    seen: set[str] = set()
    asked: list[str] = []
    for number, (role, blocks) in enumerate(turns):
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert not results or role == "user", f"message {number}: a tool result of the assistant"
        assert sorted(results) == sorted(asked), (
            f"message {number}: {asked} must be answered here, {results} are"
        )
        leading = [b["type"] == "tool_result" for b in blocks[: len(results)]]
        assert all(leading), f"message {number}: something stands before the tool results"
        asked = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert not asked or role == "assistant", f"message {number}: a tool call of the user"
        twice = [i for i in asked if i in seen or asked.count(i) > 1]
        assert not twice, f"message {number}: the ids {twice} are used again"
        seen.update(asked)
    assert not asked, f"the last message asks for {asked} and nothing answers"


def _api_turns(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    turns: list[tuple[str, list[Mapping[str, Any]]]] = []
    for number, message in enumerate(messages):
        role, content = message["role"], message["content"]
        assert role in ("user", "assistant"), f"message {number}: {role!r} is no role"
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
        assert blocks, f"message {number} is empty"
        for block in blocks:
            blank = block["type"] == "text" and not block["text"].strip()
            assert not blank, f"message {number}: a text without a visible character"
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    return turns
