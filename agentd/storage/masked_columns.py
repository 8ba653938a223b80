"""How to mask forgotten words in each text column of the state database. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from agentd.core.erasure import MASK, Erasure, mask_spans, offset_after_masking
from agentd.core.message import Block, OpaqueBlock, Text, decode_blocks, encode_block
from agentd.core.spans import Span
from agentd.storage.codec import dumps

_Change = Callable[[Erasure, str, tuple[str, ...]], str]


def _text(erasure: Erasure, text: str, places: tuple[str, ...]) -> str:
    return erasure.masked(text, *places)


def _message(erasure: Erasure, text: str, places: tuple[str, ...]) -> str:
    """Mask a user's message in the inbox: it has the same text as the turn's first row."""
    return erasure.masked(text, *places, begins=0)


def _json(erasure: Erasure, text: str, places: tuple[str, ...]) -> str:
    if not erasure.glimpsed(text, *places):
        return text
    data = json.loads(text)
    masked = erasure.within(data, *places)
    return text if masked == data else dumps(masked)


def _mask_watched(erasure: Erasure, text: str, places: tuple[str, ...]) -> str:
    """Mask the answers of watched calls. The digest of a masked answer is dropped, since it would
    confirm a guess of its words. If a call itself contains the words, all calls are dropped: none
    may be repeated, and the next beat looks at the entry anew.
    """
    if not erasure.glimpsed(text, *places):
        return text
    calls = json.loads(text)
    for call in calls:
        if erasure.within(call[:2], *places) != call[:2]:
            return "[]"
        answer = erasure.masked(call[2], *places)
        if answer != call[2]:
            call[2:4] = answer, ""
    return dumps(calls)


def _outcome(erasure: Erasure, text: str, places: tuple[str, ...]) -> str:
    """Mask the text, calls and failure of a turn's outcome; its other fields contain no words."""
    if not erasure.glimpsed(text, *places):
        return text
    data: dict[str, Any] = json.loads(text)
    said = {name: data[name] for name in ("text", "tool_calls", "failure") if name in data}
    masked = erasure.within(said, *places)
    return text if masked == said else dumps({**data, **masked})


def _blocks(erasure: Erasure, text: str, places: tuple[str, ...]) -> str:
    """Mask the blocks of a row. If any block changes, the opaque ones are dropped."""
    if not erasure.glimpsed(text, *places):
        return text
    blocks = decode_blocks(json.loads(text))
    masked, begins = [], 0
    for block in blocks:
        masked.append(_block(erasure, block, places, begins))
        begins += len(block.text) if isinstance(block, Text) else 0
    if masked == [encode_block(block) for block in blocks]:
        return text
    kept = [
        d for d, block in zip(masked, blocks, strict=True) if not isinstance(block, OpaqueBlock)
    ]
    return dumps(kept or [encode_block(Text(MASK))])


def _block(erasure: Erasure, block: Block, places: tuple[str, ...], begins: int) -> dict[str, Any]:
    if isinstance(block, Text):
        found = erasure.found(block.text, *places, begins=begins)
        quoted = tuple(
            (offset_after_masking(start, found), offset_after_masking(end, found))
            for start, end in block.quoted
        )
        return encode_block(Text(mask_spans(block.text, found), quoted))
    data = encode_block(block)
    for name in _WORDS:
        if name in data:
            data[name] = erasure.within(data[name], *places)
    return data


def masked_spans(erasure: Erasure, text: str, places: tuple[str, ...]) -> list[Span]:
    """Return the masked spans of a row's text."""
    spans: list[Span] = []
    begins = 0
    for block in decode_blocks(json.loads(text)):
        if isinstance(block, Text):
            found = erasure.found(block.text, *places, begins=begins)
            spans += [(begins + start, begins + end) for start, end in found]
            begins += len(block.text)
    return spans


_WORDS = ("content", "input", "raw")  # parts of an encoded block beside its text

# Every column that may contain words, and how it is masked. The intents of open calls stay, since
# recovery compares them by their bytes: they are erased when the turn ends.
COLUMNS: Mapping[str, Mapping[str, _Change]] = {
    "sessions": {
        "title": _text,
        "summary": _text,
        "flush_failure": _text,
        "summary_failure": _text,
    },
    "turns": {"text": _message, "outcome": _outcome},
    "rows": {"blocks": _blocks},
    "silent_rows": {"blocks": _blocks},
    "coverages": {"reason": _text},
    "calls": {"output": _json},
    "beats": {"text": _text, "reason": _text},
    "watches": {"calls": _mask_watched, "told": _text, "failure": _text},
    "jobs": {"text": _text},
    "job_runs": {"text": _text, "reason": _text},
    "alerts": {"text": _text},
}
