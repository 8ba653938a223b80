"""What a chat that is opened again shows of what was said before."""

from __future__ import annotations

from typing import Any

import pytest

from agentd.app.chat.last_exchange import last_of
from agentd.core.message import Text, ToolResult, ToolUse, encode_blocks
from tests.cli.test_chat import answering, daemon, talk

__all__ = ["daemon"]  # a fixture

_AT = "2026-11-20T07:30:00+00:00"


def row(role: str, *blocks: Any) -> dict[str, Any]:
    parts = [Text(block) if isinstance(block, str) else block for block in blocks]
    return {"role": role, "content": encode_blocks(parts), "at": _AT}


def with_rows(daemon: Any, *rows: dict[str, Any], count: int | None = None) -> None:
    listed = {"key": "main", "rows": len(rows) if count is None else count}
    daemon.on("_agentd/sessions/list", lambda params, wire: {"sessions": [listed]})
    daemon.on("_agentd/sessions/export", lambda params, wire: {"lines": list(rows), "next": None})


async def test_the_last_exchange_stands_above_the_first_prompt(daemon, capsys) -> None:
    with_rows(daemon, row("user", "Is it cold?"), row("assistant", "Four degrees."))
    daemon.on("session/prompt", answering("Yes."))
    await talk(daemon, "still?")
    assert capsys.readouterr().out.splitlines() == [
        "· said last, yesterday 08:30",
        "> Is it cold?",
        "Four degrees.",
        "Yes.",
    ]


async def test_only_the_end_of_a_long_session_is_fetched(daemon, capsys) -> None:
    with_rows(daemon, row("user", "Hi"), row("assistant", "Hello."), count=5000)
    await talk(daemon)
    assert daemon.params_of("_agentd/sessions/export") == [{"key": "main", "first": 4961}]
    assert "Hello." in capsys.readouterr().out


async def test_a_session_without_an_exchange_begins_with_nothing(daemon, capsys) -> None:
    with_rows(daemon)
    await talk(daemon)
    assert daemon.params_of("_agentd/sessions/export") == []
    assert not capsys.readouterr().out


async def test_a_daemon_that_does_not_tell_is_no_reason_to_disturb(daemon, capsys) -> None:
    daemon.on("session/prompt", answering("Yes."))
    await talk(daemon, "there?")
    assert capsys.readouterr().out == "Yes.\n"


async def test_a_long_answer_is_cut_and_says_where_the_whole_is(daemon, capsys) -> None:
    answer = "\n".join(f"step {number}" for number in range(1, 101))
    with_rows(daemon, row("user", "How?"), row("assistant", answer))
    await talk(daemon)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == [
        *(f"step {number}" for number in range(1, 17)),
        "· cut here; `agentd sessions show main` has it whole",
    ]


async def test_control_characters_of_the_past_do_not_reach_the_terminal(daemon, capsys) -> None:
    with_rows(daemon, row("user", "a\x1b[31m"), row("assistant", "b\x1b]0;pwned\x07"))
    await talk(daemon)
    assert "\x1b" not in capsys.readouterr().out


_CALL = ToolUse("c1", "memory_read", {"path": "MEMORY.md"})
_RESULT = ToolResult("c1", "tea", is_error=False)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], None),
        ([row("user", "Hi")], None),
        ([row("assistant", "Good morning.")], None),
        (
            [row("user", "Old"), row("assistant", "answered"), row("user", "New, unanswered")],
            ("Old", "answered"),
        ),
        (
            [
                row("user", "What do I drink?"),
                row("assistant", "I look.", _CALL),
                row("user", _RESULT),
                row("assistant", "Tea."),
                row("notice", "history was shortened"),
            ],
            ("What do I drink?", "Tea."),
        ),
    ],
)
def test_an_exchange_is_the_last_answer_and_the_words_it_answers(rows, told) -> None:
    found = last_of(rows)
    assert (found and (found.question, found.answer)) == told
