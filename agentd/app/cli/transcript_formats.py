"""Transcripts of other agents as lines of ours. Pure.

Ours, and RustyClaw's, have a message a line: `role` and `content`. OpenClaw's begin with a `session`
line; what follows are entries that name their parent, since a conversation may be taken up again at an
earlier point: what counts is the way from the newest entry back to the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentd.core import message as picture
from agentd.core.errors import InvalidRequest

Line = dict[str, Any]
Numbered = tuple[int, Line]  # the number in the file
_SHOWN = frozenset({"message", "compaction", "branch_summary", "custom_message"})
_IMAGE: Line = {"type": "text", "text": "[image]"}  # stands for one that cannot come along
_IMAGES = 1_000_000  # characters of base64 in one message: what a frame carries beside words
_MILLISECONDS = 1e11  # from here on a number cannot be seconds since 1970


def read(lines: Sequence[Numbered]) -> tuple[list[Numbered], list[str]]:
    """The messages of a transcript in our form, each with the number of its line, and what is wrong with
    others, by line.
    """
    if not any("type" in line and "role" not in line for _, line in lines[:1]):
        return [(number, _message(line)) for number, line in lines], []
    path, faults = _path(lines)
    found = []
    for number, line in path:
        try:
            if line.get("type") in _SHOWN:
                found.append((number, _entry(number, line)))
        except InvalidRequest as error:
            faults.append(error.message)
    return found, faults


def _path(lines: Sequence[Numbered]) -> tuple[list[Numbered], list[str]]:
    """The entries that lead to the newest one, oldest first; all, where none has a parent. An entry whose
    parent is missing follows the last one above it, and that is told.
    """
    entries = [(n, line) for n, line in lines if line.get("type") != "session"]
    known = {line["id"]: (n, line) for n, line in entries if isinstance(line.get("id"), str)}
    if not known:
        return entries, []
    by_number = sorted(known.values(), key=lambda entry: entry[0])
    path, faults = [by_number.pop()], []
    while (parent := path[-1][1].get("parentId")) is not None:
        number = path[-1][0]
        before = known.get(parent) if isinstance(parent, str) else None
        if before is None or before[0] >= number:
            told = "what it follows is not above it in the file; it is taken to follow the last that is"
            faults.append(f"line {number}: {told}")
            while by_number and by_number[-1][0] >= number:
                by_number.pop()
            if not by_number:
                break
            before = by_number[-1]
        path.append(before)
    return path[::-1], faults[::-1]


def _entry(number: int, entry: Line) -> Line:
    """An entry of OpenClaw as a message of ours."""
    at = _time(entry.get("timestamp"))
    match entry:
        case {"type": "message", "message": {"role": "user" | "assistant" as role, **message}}:
            line = {"role": role, "content": _content(message.get("content"))}
        case {"type": "message", "message": {"role": "toolResult", "toolCallId": str(id_), **rest}}:
            result = _result(id_, rest.get("content"), is_error=rest.get("isError") is True)
            line = {"role": "user", "content": [result], "tainted": True}
        case {"type": "message", "message": {"role": str(role), **message}}:
            line = {"role": "notice", "content": f"[{role}] {_as_text(message)}"}
        case {"type": "compaction", "summary": str(summary)}:
            line = {"role": "summary", "content": summary}
        case {"type": "branch_summary", "summary": str(summary)}:
            line = {"role": "notice", "content": summary}
        case {"type": "custom_message", "content": content}:
            line = {"role": "notice", "content": _words(content)}
        case _:
            raise InvalidRequest(
                f"line {number}: this {entry.get('type')} cannot be read", cure="leave it out"
            )
    return line if at is None else {**line, "at": at}


def _message(line: Line) -> Line:
    """A line of ours or RustyClaw's as one of ours: only what we do not write is changed."""
    changed = dict(line)
    if line.get("role") == "tool":
        result = _result(str(line.get("tool_call_id", "")), line.get("content"), is_error=False)
        changed |= {"role": "user", "content": [result], "tainted": True}
    elif isinstance(line.get("content"), list):
        changed["content"] = _content(line["content"])
    for name in ("at", "timestamp"):
        if name in line:
            changed[name] = _time(line[name])
    return changed


def _content(content: Any) -> Any:
    """Blocks as ours; what is no list is left to be judged by whoever stores it."""
    if not isinstance(content, list):
        return content
    blocks = [block for item in content if (block := _block(item)) is not None]
    return list(_carried(blocks))


def _carried(blocks: Sequence[Any]) -> Iterator[Any]:
    """The blocks with words for images that make the message too long for a frame."""
    left = _IMAGES
    for block in blocks:
        match block:
            case {"type": "image", "source": {"data": str(data)}}:
                left -= len(data)
                yield block if left >= 0 else _IMAGE
            case _:
                yield block


def _block(item: Any) -> Any:
    """A block as ours; None for thoughts, which only the model that had them can read."""
    match item:
        case str():
            return {"type": "text", "text": item}
        case {"type": "thinking" | "redacted_thinking"}:
            return None
        case {"type": "toolCall", "id": str(id_), "name": str(name), **rest}:
            arguments = rest.get("arguments")
            given = arguments if isinstance(arguments, dict) else {}
            return {"type": "tool_use", "id": id_, "name": name, "input": given}
        case {"type": "toolResult", "toolCallId": str(id_), **rest}:
            return _result(id_, rest.get("content"), is_error=rest.get("isError") is True)
        case {"type": "tool_result", "tool_use_id": str(id_), "content": list(content), **rest}:
            return _result(id_, content, is_error=rest.get("is_error") is True)
        case {"type": "image" | "image_url" | "document" | "audio"}:
            return _medium(item)
        case {"type": "text", "text": str(text), **rest}:
            # What of it its sender did not write himself stays told apart.
            own = {"quoted": rest["quoted"]} if "quoted" in rest else {}
            return {"type": "text", "text": text, **own}
    return item


def _medium(item: Mapping[str, Any]) -> Line:
    """An image with its bytes, or a reference to one, as ours; words for anything else."""
    match item:
        case {"type": "image", "sha256": str()} | {"type": "image", "source": {"type": "base64"}}:
            return dict(item)
        case {"type": "image", "data": str(data), "mimeType": str(kind)} if kind in picture.TYPES:
            source = {"type": "base64", "media_type": kind, "data": data}
            return {"type": "image", "source": source}
    return {"type": "text", "text": f"[{item['type']}]"}


def _result(id_: str, content: Any, *, is_error: bool) -> Line:
    text = _words(content)
    return {"type": "tool_result", "tool_use_id": id_, "content": text, "is_error": is_error}


def _words(content: Any) -> str:
    """All words of a message's content."""
    if isinstance(content, str):
        return content
    blocks = _content(content) if isinstance(content, list) else []
    texts = (_worded(b).get("text") for b in blocks if isinstance(b, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _worded(block: Mapping[str, Any]) -> Mapping[str, Any]:
    return _IMAGE if block.get("type") == "image" else block


def _as_text(message: Mapping[Any, Any]) -> str:
    """What a message of a role of its own says: a command and its output, or words."""
    parts = [message.get(name) for name in ("command", "output", "summary")]
    return "\n".join(
        p for p in (*parts, _words(message.get("content"))) if isinstance(p, str) and p
    )


def _time(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value / 1000 if is_number and value >= _MILLISECONDS else value
