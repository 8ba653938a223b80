"""Transcripts of other agents become messages of ours, or are refused by line."""

from __future__ import annotations

from typing import Any

import pytest

from agentd.cli.foreign import read
from agentd.errors import InvalidRequest

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-02-01T09:00:00.000Z"}


def said(id_: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    """An entry of OpenClaw."""
    message = {"role": role, "content": content, **more}
    at = "2026-02-01T09:00:01.000Z"
    return {"type": "message", "id": id_, "parentId": parent, "timestamp": at, "message": message}


def lines(*entries: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(entries, start=1))


def texts(found: list[tuple[int, dict[str, Any]]]) -> list[Any]:
    return [line["content"] for _, line in found]


def test_the_way_from_the_newest_entry_to_the_first_is_the_conversation() -> None:
    found = read(
        lines(
            HEADER,
            said("a", None, "user", "first"),
            said("b", "a", "assistant", [{"type": "text", "text": "an answer taken back"}]),
            said("c", "b", "user", "dead end"),
            said("d", "a", "assistant", [{"type": "text", "text": "a better answer"}]),
            {"type": "label", "id": "e", "parentId": "d", "label": "x"},
            said("f", "e", "user", "thanks"),
        )
    )
    assert [(n, line["role"]) for n, line in found] == [(2, "user"), (5, "assistant"), (7, "user")]
    assert texts(found) == ["first", [{"type": "text", "text": "a better answer"}], "thanks"]
    assert found[0][1]["at"] == "2026-02-01T09:00:01.000Z"


def test_entries_without_parents_are_a_straight_line() -> None:
    first, second = said("a", None, "user", "one"), said("b", None, "assistant", "two")
    for entry in (first, second):
        del entry["id"], entry["parentId"]
    assert texts(read(lines(HEADER, first, second))) == ["one", "two"]


def test_tool_calls_and_their_results_keep_their_ids() -> None:
    call = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a.md"}}
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look"}, call]
    answer = [{"type": "text", "text": "hello"}, {"type": "image", "data": "…", "mimeType": "x"}]
    found = read(
        lines(
            HEADER,
            said("a", None, "assistant", content),
            said("b", "a", "toolResult", answer, toolCallId="t1", toolName="read", isError=False),
        )
    )
    assert texts(found)[0] == [
        {"type": "text", "text": "I look"},
        {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.md"}},
    ]
    text = "hello\n[image]"
    assert found[1][1]["role"] == "user"
    assert found[1][1]["tainted"] is True
    assert found[1][1]["content"] == [
        {"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": False}
    ]


def test_summaries_and_asides_are_rows_of_their_own_kind() -> None:
    found = read(
        lines(
            HEADER,
            said("a", None, "user", "one"),
            {"type": "model_change", "id": "b", "parentId": "a", "modelId": "m"},
            {"type": "compaction", "id": "c", "parentId": "b", "summary": "they spoke"},
            {"type": "custom_message", "id": "d", "parentId": "c", "content": "a hint"},
            said("e", "d", "bashExecution", None, command="ls", output="a.md"),
        )
    )
    assert [(line["role"], line["content"]) for _, line in found] == [
        ("user", "one"),
        ("summary", "they spoke"),
        ("notice", "a hint"),
        ("notice", "[bashExecution] ls\na.md"),
    ]


@pytest.mark.parametrize("parent", ["never", "f"])
def test_a_torn_tree_is_refused_by_line(parent: str) -> None:
    entries = (HEADER, said("a", None, "user", "one"), said("f", parent, "user", "two"))
    with pytest.raises(InvalidRequest, match="line 3"):
        read(lines(*entries))


def test_an_entry_that_cannot_be_read_is_refused_by_line() -> None:
    with pytest.raises(InvalidRequest, match="line 2"):
        read(lines(HEADER, {"type": "message", "message": "?"}))


def test_rustyclaws_lines_are_nearly_ours() -> None:
    found = read(
        lines(
            {"role": "user", "content": "look", "timestamp": 1770000000000},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "read", "input": {}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "t", "content": "c"},
        )
    )
    assert found[0][1] == {"role": "user", "content": "look", "timestamp": 1770000000}
    assert found[2][1]["content"][0]["content"] == "a\nb"
    assert (found[3][1]["role"], found[3][1]["content"][0]["content"]) == ("user", "c")


def test_our_own_lines_are_not_touched() -> None:
    ours = {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "hm"},
            {"type": "opaque", "provider": "p", "raw": {"type": "thinking"}},
            {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}},
        ],
        "at": "2026-02-01T09:00:00+00:00",
        "seq": 4,
    }
    assert read(lines(ours)) == [(1, ours)]


def test_images_of_messages_come_along_as_far_as_a_frame_carries_them() -> None:
    sent = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    ours = {"type": "image", "source": source}
    (found,) = texts(read(lines(HEADER, said("a", None, "user", [sent]))))
    assert found == [ours]
    large = {"type": "image", "source": {**source, "data": "A" * 600_000}}
    reference = {"type": "image", "media_type": "image/png", "sha256": "0" * 64, "size": 2}
    message = {"role": "user", "content": [large, reference, large]}
    (found,) = texts(read(lines(message)))
    assert found == [large, reference, {"type": "text", "text": "[image]"}]
