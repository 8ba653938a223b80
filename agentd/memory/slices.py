"""Rows cut into parts that fit a token budget. Pure.

A tool call and its result always stay in the same part. A row of words that is too large for any
part is given in several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agentd.domain.message import Block, Image, Text, ToolResult, ToolUse
from agentd.domain.source import BY_OWNER
from agentd.domain.spans import Span, shifted, within
from agentd.domain.transcript import Row
from agentd.engine import tokens

RESULT_CHARS = 2_000  # kept of a tool's result
_CHARS_PER_TOKEN = 2  # of a piece: keeps wide scripts below the budget in most cases
_SMALLEST = 64


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that are asked about at once. `covered` is the last row that is done with when this part
    is: a row given in pieces is done with its last one. `piece` counts those pieces from 1.
    """

    rows: tuple[Row, ...]
    covered: int
    piece: int = 0

    @property
    def name(self) -> str:
        """`first-last`, with `.n` for a piece of one row: the same for the same rows and budget."""
        span = f"{self.rows[0].seq}-{self.rows[-1].seq}"
        return f"{span}.{self.piece}" if self.piece else span


def split(rows: Sequence[Row], budget: int) -> tuple[Part, ...]:
    """The rows in order, in as few parts as fit `budget` tokens each."""
    parts: list[Part] = []
    held: list[Row] = []
    weight = 0
    for unit in _units([clip(row) for row in rows]):
        size = tokens.of_rows(unit)
        if held and weight + size > budget:
            parts.append(Part(tuple(held), held[-1].seq))
            held, weight = [], 0
        if size > budget and len(unit) == 1 and _is_words(unit[0]):
            parts.extend(_pieces(unit[0], budget))
            continue
        held.extend(unit)
        weight += size
    if held:
        parts.append(Part(tuple(held), held[-1].seq))
    return tuple(parts)


def clip(row: Row) -> Row:
    """The row with long tool results cut, and words for its images."""
    return replace(row, blocks=tuple(map(_clip_block, row.blocks)))


def _clip_block(block: Block) -> Block:
    if isinstance(block, Image):
        return Text(block.label)
    if not isinstance(block, ToolResult) or len(block.text) <= RESULT_CHARS:
        return block
    left = len(block.text) - RESULT_CHARS
    return replace(block, text=f"{block.text[:RESULT_CHARS]} [… {left} more characters]")


def _units(rows: Sequence[Row]) -> Iterator[tuple[Row, ...]]:
    """Runs of rows that must stay together: up to where every call has its result."""
    unit: list[Row] = []
    waiting: set[str] = set()
    for row in rows:
        unit.append(row)
        waiting |= {b.id for b in row.blocks if isinstance(b, ToolUse)}
        waiting -= {b.tool_use_id for b in row.blocks if isinstance(b, ToolResult)}
        if not waiting:
            yield tuple(unit)
            unit = []
    if unit:
        yield tuple(unit)


def _is_words(row: Row) -> bool:
    return all(isinstance(block, Text) for block in row.blocks)


def _quoted(row: Row) -> list[Span]:
    """What its sender marked in the words of all blocks."""
    spans: list[Span] = []
    offset = 0
    for block in row.blocks:
        if isinstance(block, Text):
            spans += shifted(block.quoted, offset)
            offset += len(block.text)
    return spans


def _pieces(row: Row, budget: int) -> Iterator[Part]:
    size = max(_SMALLEST, budget * _CHARS_PER_TOKEN)
    text, quoted = row.text, _quoted(row)
    source = BY_OWNER if row.source.is_owners_own else row.source  # each is tainted by its own
    starts = range(0, len(text), size)
    for number, start in enumerate(starts, 1):
        end = start + size
        piece = replace(
            row, blocks=(Text(text[start:end], within(quoted, start, end)),), source=source
        )
        done = row.seq if number == len(starts) else row.seq - 1
        yield Part((piece,), done, number)
