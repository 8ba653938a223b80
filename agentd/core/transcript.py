"""A session's choices, the rows of its transcript, and the part of them that a model sees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from agentd.core.message import (
    BY_AGENT,
    BY_OWNER,
    Block,
    Image,
    Message,
    Role,
    Text,
    TextSource,
    ToolResult,
    ToolUse,
    Writer,
    encode_blocks,
)
from agentd.core.turn import Kind, SessionKey, Usage, kind_of


class Mode(StrEnum):
    """When the user is asked before a file changes."""

    AUTO = "auto"  # where the rules ask for it
    ASK = "ask"  # always


@dataclass(frozen=True, slots=True)
class Choices:
    """What a user has chosen for one session; "" leaves it to the configuration."""

    mode: Mode = Mode.AUTO
    model: str = ""
    effort: str = ""


UNCHOSEN = Choices()


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is to choose from: models, the configured one first, and how much one may think."""

    models: tuple[str, ...] = ()
    efforts: tuple[str, ...] = ()

    def kept(self, choices: Choices) -> Choices:
        """The choices without what is no longer offered, since another service may be configured."""
        return Choices(
            choices.mode,
            choices.model if choices.model in self.models else "",
            choices.effort if choices.effort in self.efforts else "",
        )


NOTHING_OFFERED = Offer()


DAMAGED = "damaged"  # the tag of a row whose digest does not prove it
AWAY = "service_away"  # of rows that are offered again when the service is back
DISABLED = "disabled"  # the owner wants no flush
NO_MEMORY = "no_memory"  # the reason of a coverage whose session writes no memories: a group's
_BY_ROLE = TextSource(Writer.OTHER, tainted=True)  # no source was named: this very value is none


class RowRole(StrEnum):
    """What a row is. The first two are messages of the API, the others our own."""

    USER = "user"
    ASSISTANT = "assistant"
    SUMMARY = "summary"  # stands for everything before it in the context
    NOTICE = "notice"  # told to the user: a failure, an alert, a compaction

    @property
    def is_spoken(self) -> bool:
        """Whether such a row is a message, its tool calls and results among them."""
        return self in (RowRole.USER, RowRole.ASSISTANT)


@dataclass(frozen=True, slots=True)
class Row:
    """One stored row. `seq` counts from 1 within its session and never changes; only retention, which
    erases old rows, leaves gaps. Unless `source` says otherwise, what opens a turn was written by the
    owner, and all other rows by the agent. What came with the owner's words (an image, a resource, a
    paste) always taints them.
    """

    seq: int
    role: RowRole
    blocks: tuple[Block, ...]
    at: datetime
    turn_id: int | None = None
    provider: str = ""  # who wrote an assistant row: opaque blocks go back only to it
    usage: Usage | None = None  # of the model call that wrote an assistant row
    tag: str = ""  # of a notice: `alert`, `failure`, `cancelled`, `compaction` …
    source: TextSource = _BY_ROLE

    def __post_init__(self) -> None:
        """Name the source that the role says."""
        _fill_source(self)

    @property
    def text(self) -> str:
        """All words of the row."""
        return "".join(b.text for b in self.blocks if isinstance(b, Text))

    @property
    def images(self) -> tuple[Image, ...]:
        """The images that it refers to, in order."""
        return tuple(b for b in self.blocks if isinstance(b, Image))

    def as_message(self) -> Message:
        """The message of a user or assistant row."""
        return Message(Role(self.role.value), self.blocks)


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row before the store has numbered and dated it. `source` is as in Row."""

    role: RowRole
    blocks: tuple[Block, ...]
    provider: str = ""
    usage: Usage | None = None
    tag: str = ""
    source: TextSource = _BY_ROLE

    def __post_init__(self) -> None:
        """Name the source that the role says."""
        _fill_source(self)

    def stored(self, seq: int, at: datetime, turn_id: int | None) -> Row:
        """The row that it becomes."""
        return Row(
            seq,
            self.role,
            self.blocks,
            at,
            turn_id,
            self.provider,
            self.usage,
            self.tag,
            self.source,
        )


@dataclass(frozen=True, slots=True)
class Coverage:
    """Rows `first`…`last` were offered to memory by one flush, or gave up with a recorded failure."""

    first: int
    last: int
    ok: bool
    reason: str

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is to be saved of the rows, so that they need not be kept for it."""
        return self.ok or self.reason == NO_MEMORY


def unsaved(coverages: Sequence[Coverage]) -> tuple[tuple[int, int, int], ...]:
    """The rows that were given up and that no later flush has saved: first, last, and how often that was
    tried, the oldest first.
    """
    given_up: dict[tuple[int, int], int] = {}
    for coverage in coverages:
        span = coverage.first, coverage.last
        if coverage.is_settled:
            given_up = {
                old: times
                for old, times in given_up.items()
                if not (coverage.first <= old[0] and old[1] <= coverage.last)
            }
        else:
            given_up[span] = given_up.get(span, 0) + 1
    return tuple((first, last, times) for (first, last), times in sorted(given_up.items()))


@dataclass(frozen=True, slots=True)
class SummaryTrouble:
    """How summaries of a session have failed: so many tries in a row, the last one for `reason`. The
    next try is not made before `retry_at` (None after a success).
    """

    failures: int = 0
    reason: str = ""
    retry_at: datetime | None = None

    def holds(self, now: datetime) -> bool:
        """Whether it is too early for another try."""
        return self.retry_at is not None and now < self.retry_at


NO_TROUBLE = SummaryTrouble()


@dataclass(frozen=True, slots=True)
class History:
    """What a session's next prompt is made from.

    `rows` are the user, assistant and notice rows from `context_from` on, oldest first, those of
    unfinished turns included. `summary` stands for what is before them.
    `covered_to` is the last row that a flush has covered (0: none). `generation` counts the swaps
    of the context; a compaction made for another generation is stale. Usage of rows up to
    `swapped_at` was measured on an older context and says nothing about this one, and if
    `is_excerpted` none does: turns have run on a part of this context, which was too long for them.
    `left_out` are about as many characters of older rows of the context that were not read.
    """

    session: SessionKey
    rows: tuple[Row, ...] = ()
    summary: str = ""
    context_from: int = 1
    covered_to: int = 0
    generation: int = 0
    swapped_at: int = 0
    flush_failures: int = 0  # failed tries for what is not covered yet
    flush_due: bool = False  # a stop found something uncovered
    choices: Choices = UNCHOSEN
    trouble: SummaryTrouble = NO_TROUBLE
    is_excerpted: bool = False
    left_out: int = 0

    @property
    def used_tokens(self) -> int:
        """What the newest model call on this context read and wrote (0: none yet)."""
        if self.is_excerpted:
            return 0
        newest = (row for row in reversed(self.rows) if row.usage and row.seq > self.swapped_at)
        return next((row.usage.total_tokens for row in newest if row.usage), 0)


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A line of `agentd sessions list`."""

    key: SessionKey
    title: str
    created_at: datetime
    updated_at: datetime
    rows: int
    turns: int
    context_tokens: int  # of the last model call
    generation: int
    cwd: str = ""
    flush_due: bool = False
    trouble: SummaryTrouble = NO_TROUBLE


def opens_turn(row: Row | NewRow) -> bool:
    """Whether a turn starts here: something the user said, not a tool's result."""
    return row.role is RowRole.USER and not any(isinstance(b, ToolResult) for b in row.blocks)


def without_loose_calls(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows, with words for calls and results that lost each other to a damaged row: a service
    refuses a prompt with one of them alone.
    """
    if all(row.tag != DAMAGED for row in rows):
        return tuple(rows)
    blocks = [block for row in rows for block in row.blocks]
    called = {block.id for block in blocks if isinstance(block, ToolUse)}
    answered = {block.tool_use_id for block in blocks if isinstance(block, ToolResult)}

    def worded(block: Block) -> Block:
        if isinstance(block, ToolUse) and block.id not in answered:
            return Text(f"(A call of {block.name}, whose result is damaged.)")
        if isinstance(block, ToolResult) and block.tool_use_id not in called:
            return Text(block.text)
        return block

    return tuple(replace(row, blocks=tuple(map(worded, row.blocks))) for row in rows)


def export_row(row: Row) -> dict[str, Any]:
    """One line of `agentd sessions export`, and of the virtual file `sessions/KEY.jsonl`. Rows that
    hold text from outside say so: `"tainted": true`, with `"writer": "owner"` where the owner's own
    words stand around it.
    """
    line = {
        "role": str(row.role),
        "content": encode_blocks(row.blocks),
        "at": row.at.isoformat(),
        "seq": row.seq,
    }
    if not row.source.tainted:
        return line
    own = {"writer": str(Writer.OWNER)} if row.source.is_owners_own else {}
    return {**line, "tainted": True, **own}


def summary_rows(session: SessionKey, summary: str, outside: str = "") -> tuple[NewRow, ...]:
    """The rows of a compaction's summaries: last the one that the context carries, whose words are all
    tainted where others take part; before it that of what came from outside.
    """
    is_shared = kind_of(session) is not Kind.MAIN
    return tuple(
        NewRow(RowRole.SUMMARY, (Text(text),), source=TextSource(Writer.AGENT, tainted))
        for text, tainted in ((outside, True), (summary, is_shared))
        if text
    )


def holds_attachments(blocks: Iterable[Block]) -> bool:
    """Whether something of a message is not what its sender wrote: images, resources, pastes."""
    return any(isinstance(b, Image) or (isinstance(b, Text) and b.quoted) for b in blocks)


def _fill_source(row: Row | NewRow) -> None:
    source = row.source
    if source is _BY_ROLE:
        source = BY_OWNER if opens_turn(row) else BY_AGENT
    if source == BY_OWNER and holds_attachments(row.blocks):
        source = TextSource(Writer.OWNER, tainted=True)
    if source is not row.source:
        object.__setattr__(row, "source", source)
