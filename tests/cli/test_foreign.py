"""Transcripts of other agents become messages of ours, or are refused by line."""

from __future__ import annotations

from typing import Any

import pytest

from agentd.app.cli.transcripts import read

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


def taken(entries: list[Any]) -> list[Any]:
    """The messages of a transcript with which nothing is wrong."""
    found, faults = read(entries)
    assert faults == []
    return found


def test_the_way_from_the_newest_entry_to_the_first_is_the_conversation() -> None:
    found = taken(
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
    assert texts(taken(lines(HEADER, first, second))) == ["one", "two"]


def test_an_entry_with_an_id_that_names_no_parent_follows_the_one_above_it() -> None:
    entries = [said(name, None, "user", name) for name in ("one", "two", "three")]
    for entry in entries:
        del entry["parentId"]
    assert texts(taken(lines(HEADER, *entries))) == ["one", "two", "three"]
    again = said("four", None, "user", "begun anew")
    assert texts(taken(lines(HEADER, *entries, again))) == ["begun anew"]


def test_tool_calls_and_their_results_keep_their_ids() -> None:
    call = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a.md"}}
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look"}, call]
    answer = [{"type": "text", "text": "hello"}, {"type": "image", "data": "…", "mimeType": "x"}]
    found = taken(
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
    found = taken(
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


@pytest.mark.parametrize("parent", ["never", "f", "g", 7])
def test_an_entry_of_a_torn_tree_follows_the_last_above_it_and_is_told(parent: object) -> None:
    entries = (
        HEADER,
        said("a", None, "user", "one"),
        said("f", parent, "user", "two"),
        said("g", "f", "user", "three"),
    )
    found, faults = read(lines(*entries))
    assert [line["content"] for _, line in found] == ["one", "two", "three"]
    assert [fault.partition(":")[0] for fault in faults] == ["line 3"]


def test_a_first_entry_without_what_it_follows_is_taken_and_told() -> None:
    found, faults = read(lines(HEADER, said("a", "never", "user", "one")))
    assert ([line["content"] for _, line in found], len(faults)) == (["one"], 1)


def test_an_entry_that_cannot_be_read_is_told_by_line() -> None:
    found, faults = read(lines(HEADER, {"type": "message", "message": "?"}))
    assert (found, [fault.partition(":")[0] for fault in faults]) == ([], ["line 2"])


def test_rustyclaws_lines_are_nearly_ours() -> None:
    found = taken(
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
            {"type": "text", "text": "hm", "quoted": [[0, 1]]},
            {"type": "opaque", "provider": "p", "raw": {"type": "thinking"}},
            {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}},
        ],
        "at": "2026-02-01T09:00:00+00:00",
        "seq": 4,
    }
    assert taken(lines(ours)) == [(1, ours)]


def test_images_of_messages_come_along_as_far_as_a_frame_carries_them() -> None:
    sent = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    ours = {"type": "image", "source": source}
    (found,) = texts(taken(lines(HEADER, said("a", None, "user", [sent]))))
    assert found == [ours]
    large = {"type": "image", "source": {**source, "data": "A" * 600_000}}
    reference = {"type": "image", "media_type": "image/png", "sha256": "0" * 64, "size": 2}
    message = {"role": "user", "content": [large, reference, large]}
    (found,) = texts(taken(lines(message)))
    assert found == [large, reference, {"type": "text", "text": "[image]"}]
