"""Removes secrets, such as keys of services, from the texts of what is stored about turns. Pure.

An opaque block, which only its provider understands, cannot be changed. It is left out if it
contains a secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from agentd.core.message import (
    Block,
    Image,
    OpaqueBlock,
    Text,
    ToolResult,
    ToolUse,
)
from agentd.core.redaction import KeptSecrets, Redactor
from agentd.core.spans import Spans, unite_spans
from agentd.core.tool import Intent, ToolOutput
from agentd.core.transcript import NewRow
from agentd.core.turn import (
    Turn,
    TurnRequest,
)


def redact_request(request: TurnRequest, redactor: Redactor) -> tuple[TurnRequest, int]:
    """Return the request without secrets, and how many its text contained."""
    kept = redactor.kept(request.text)
    if not kept.cuts:
        return request, 0
    quoted = _moved_spans(request.quoted, kept)
    return replace(request, text=kept.text, quoted=quoted), len(kept.cuts)


def redact_row(row: NewRow, redactor: Redactor) -> NewRow:
    """Return the row without secrets; the same object if it has none."""
    blocks = tuple(_blocks(row.blocks, redactor))
    return row if blocks == row.blocks else replace(row, blocks=blocks)


def redact_turn(turn: Turn, redactor: Redactor) -> Turn:
    """Return the outcome of a turn without secrets."""
    failure = turn.failure
    return replace(
        turn,
        text=redactor.kept(turn.text).text,
        tool_calls=tuple(
            replace(call, name=redactor.kept(call.name).text, input=redactor.plain(call.input))
            for call in turn.tool_calls
        ),
        failure=failure and replace(failure, message=redactor.kept(failure.message).text),
    )


def redact_intent(intent: Intent, redactor: Redactor) -> Intent:
    """Return the intent without secrets in its call. The bytes of its file change stay: the tool
    made them from a call without secrets.
    """
    name, arguments = redactor.kept(intent.call.name).text, redactor.plain(intent.call.input)
    call = replace(intent.call, name=name, input=arguments)
    return replace(intent, call=call)


def redact_output(output: ToolOutput, redactor: Redactor) -> ToolOutput:
    """Return the output of a tool without secrets."""
    return replace(output, text=redactor.kept(output.text).text)


def _blocks(blocks: Iterable[Block], redactor: Redactor) -> Iterator[Block]:
    for block in blocks:
        match block:
            case Text(text, quoted):
                kept = redactor.kept(text)
                yield Text(kept.text, _moved_spans(quoted, kept)) if kept.cuts else block
            case ToolUse(name=name, input=arguments):
                kept, plain = redactor.kept(name), redactor.plain(arguments)
                is_same = plain == arguments and not kept.cuts
                yield block if is_same else replace(block, name=kept.text, input=plain)
            case ToolResult(text=text):
                kept = redactor.kept(text)
                yield replace(block, text=kept.text) if kept.cuts else block
            case OpaqueBlock(raw=raw):
                if not redactor.holds(json.dumps(raw, ensure_ascii=False)):
                    yield block
            case Image():
                yield block


def _moved_spans(quoted: Spans, kept: KeptSecrets) -> Spans:
    spans = ((kept.moved(start), kept.moved(end)) for start, end in quoted)
    return unite_spans(spans, len(kept.text))
