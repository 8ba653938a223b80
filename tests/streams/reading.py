"""What a stream says to somebody who has read the two protocols and nothing of agentd: a whole
answer, or none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

_LINE = re.compile(rb"\r\n|\r|\n")
_STOPS = ("end_turn", "stop_sequence", "max_tokens", "tool_use", "refusal", "pause_turn")
_REASONS = ("stop", "length", "tool_calls", "content_filter")

Json = dict[str, Any]


class _NotWhole(Exception):
    """The stream breaks a rule of its protocol, or has no end."""


class Said(Struct, frozen=True):
    """A whole answer: its words, and its calls as (tool, arguments in JSON). One that was
    `cut_short` by a limit calls nothing.
    """

    text: str
    calls: tuple[tuple[str, str], ...] = ()
    cut_short: bool = False


def said(wire: str, data: bytes, *, ended: bool) -> Said | None:
    """The whole answer that the bytes say, None if they say none. `ended`: the service ended its
    answer there, and did not break off; then the last event of chat completions, where some servers
    leave out the blank line, counts if its data is whole JSON.
    """
    try:
        events = _events(data, counts_last=ended and wire == "openai")
        return _message(events) if wire == "anthropic" else _completion(events)
    except (_NotWhole, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None


def _events(data: bytes, *, counts_last: bool) -> Iterator[str]:
    """The data of each event that has ended, as the HTML standard reads them."""
    if counts_last and isinstance(_loaded(data.rpartition(b"data:")[2]), dict):
        data += b"\n\n"
    found: list[str] = []
    *lines, _ = _LINE.split(data)
    for line in lines:
        name, _, value = line.partition(b":")
        if not line and found:
            yield "\n".join(found)
            found = []
        elif name == b"data":
            found.append(value.removeprefix(b" ").decode())


def _loaded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _message(events: Iterator[str]) -> Said:
    blocks: list[Json] = []
    stop, has_ended, has_begun = "", False, False
    for data in events:
        event = json.loads(data)
        kind = event["type"]
        if kind == "error" or has_ended:
            raise _NotWhole
        if kind == "message_start":
            has_begun = True
        elif kind == "content_block_start":
            blocks.append({"kind": event["content_block"]["type"], "text": "", "json": ""})
            blocks[-1] |= {"open": True, "name": event["content_block"].get("name")}
            blocks[-1]["text"] = event["content_block"].get("text", "")
        elif kind == "content_block_delta":
            delta = event["delta"]
            if not blocks[event["index"]]["open"]:
                raise _NotWhole
            if delta["type"] == "text_delta":
                blocks[event["index"]]["text"] += delta["text"]
            elif delta["type"] == "input_json_delta":
                blocks[event["index"]]["json"] += delta["partial_json"]
        elif kind == "content_block_stop":
            blocks[event["index"]]["open"] = False
        elif kind == "message_delta":
            stop = event["delta"].get("stop_reason") or stop
        has_ended = has_ended or kind == "message_stop"
        if has_ended:
            break
    cut_short = stop in ("max_tokens", "refusal")
    is_open = any(block["open"] for block in blocks) and not cut_short
    if not (has_begun and has_ended and stop in _STOPS) or is_open:
        raise _NotWhole
    text = "".join(block["text"] for block in blocks if block["kind"] == "text")
    used = [block for block in blocks if block["kind"] == "tool_use"]
    calls = tuple((b["name"], _arguments(b["json"])) for b in used)
    return Said(text, () if cut_short else calls, cut_short)


def _completion(events: Iterator[str]) -> Said:
    """What comes behind the stop reason is figures, and may be anything."""
    text, reason = "", ""
    calls: dict[Any, list[str]] = {}
    while not reason:
        chunk = json.loads(next(events, "[DONE]"))
        if chunk.get("error"):
            raise _NotWhole
        for choice in chunk.get("choices") or ():
            if choice.get("index") not in (0, None):
                continue
            delta = choice.get("delta") or {}
            text += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                # Some servers leave the index out; then it is of the call that is under way.
                index = call.get("index", next(reversed(calls), 0))
                function = call.get("function") or {}
                made = calls.setdefault(index, ["", ""])
                made[0] += function.get("name") or ""
                made[1] += function.get("arguments") or ""
            reason = choice.get("finish_reason") or reason
    if reason not in _REASONS:
        raise _NotWhole
    cut_short = reason in ("length", "content_filter")
    made_of = (
        () if cut_short else tuple((name, _arguments(given)) for name, given in calls.values())
    )
    return Said(text, made_of, cut_short)


def _arguments(given: str) -> str:
    """The arguments in one spelling."""
    return json.dumps(json.loads(given or "{}"), sort_keys=True)
