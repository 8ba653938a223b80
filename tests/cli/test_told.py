"""A transcript for people."""

from __future__ import annotations

from typing import Any

from agentd.app.cli.sessions import conversation


def line(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks), "at": "today 10:00"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_each_speaker_has_a_paragraph_and_tools_are_folded() -> None:
    use = {"type": "tool_use", "id": "a", "name": "memory_write", "input": {"target": "memory"}}
    again = {"type": "tool_use", "id": "b", "name": "notify", "input": {"text": "x"}}
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": "a long result"},
        {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": True},
    ]
    told = conversation(
        [
            line("user", text("note it\n\nplease")),
            line("assistant", text("I do"), use, again),
            line("user", *results),
            line("assistant", text("done")),
            line("notice", text("a new conversation")),
        ]
    )
    assert told == (
        "you, today 10:00\n  note it\n\n  please\n\n"
        "agent, today 10:00\n  I do\n  · memory_write memory\n  · notify (failed)\n\n"
        "agent, today 10:00\n  done\n\n"
        "notice, today 10:00\n  a new conversation"
    )


def test_nothing_that_steers_a_terminal_comes_through() -> None:
    assert "\x1b" not in conversation([line("assistant", text("\x1b[2Jgone\u202e"))])


def test_what_only_its_provider_understands_is_left_out() -> None:
    opaque = {"type": "opaque", "provider": "p", "raw": {}}
    assert conversation([line("assistant", opaque)]) == ""
