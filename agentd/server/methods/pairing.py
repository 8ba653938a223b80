"""Tool calls and their results in a transcript from elsewhere, kept only as pairs. Pure.

A model's service refuses a call without its result in the next message, and a result without its call.
What cannot be paired becomes words, so that an imported conversation can be gone on with.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from agentd.domain.message import Block, Text, ToolResult, ToolUse
from agentd.domain.transcript import NewRow, RowRole

_CLIP = 2000  # characters of a call or result that becomes words

_NOTHING = (Text(""),)  # prompts say of an empty message of the user that it is one

Group = list[Block]  # the blocks of neighbours of one role: the service reads them as one message


def paired(rows: Sequence[NewRow]) -> list[NewRow]:
    """The rows with calls and results that have each other; all others as words."""
    spoken = [row for row in rows if row.role.is_spoken]
    groups = [
        (role, [block for row in group for block in row.blocks or _NOTHING])
        for role, group in groupby(spoken, key=lambda row: row.role)
    ]
    kept = _pairs(groups)
    return [replace(row, blocks=tuple(_as_words(b, kept) for b in row.blocks)) for row in rows]


def _pairs(groups: Sequence[tuple[RowRole, Group]]) -> frozenset[str]:
    """The ids whose call and result may stay."""
    calls = Counter(b.id for _, group in groups for b in group if isinstance(b, ToolUse))
    answers = Counter(
        b.tool_use_id for _, group in groups for b in group if isinstance(b, ToolResult)
    )
    kept: set[str] = set()
    for (role, asked), (_, told) in pairwise(groups):
        if role is not RowRole.ASSISTANT:
            continue
        ids = {b.id for b in asked if isinstance(b, ToolUse) and calls[b.id] == 1}
        # Results come first in a message; those behind something else do not count.
        for block in told:
            if not isinstance(block, ToolResult):
                break
            id_ = block.tool_use_id
            if id_ not in ids or answers[id_] != 1:
                break
            kept.add(id_)
    return frozenset(kept)


def _as_words(block: Block, kept: frozenset[str]) -> Block:
    match block:
        case ToolUse(id_, name, arguments) if id_ not in kept:
            given = json.dumps(dict(arguments), ensure_ascii=False)
            return Text(f"[called {name}: {_clipped(given)}]")
        case ToolResult(id_, text, _) if id_ not in kept:
            return Text(f"[a tool answered: {_clipped(text)}]")
    return block


def _clipped(text: str) -> str:
    return text if len(text) <= _CLIP else text[:_CLIP] + "…"
