"""The rows of a session's transcript, its context, and the user's choices for the session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr, replace

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
from agentd.core.turn import SessionKey, SessionKind, Usage, kind_of


class ApprovalMode(StrEnum):
    """When the user is asked before a file changes."""

    AUTO = "auto"  # where the rules demand it
    ASK = "ask"  # always


class Choices(Struct, frozen=True):
    """The user's choices for one session; "" leaves a choice to the configuration."""

    mode: ApprovalMode = ApprovalMode.AUTO
    model: str = ""
    effort: str = ""


UNCHOSEN = Choices()


class AvailableChoices(Struct, frozen=True):
    """The available choices: models (the configured one first) and levels of reasoning effort."""

    models: tuple[str, ...] = ()
    efforts: tuple[str, ...] = ()

    def kept(self, choices: Choices) -> Choices:
        """Return the choices without those no longer offered: another service may be configured
        now.
        """
        return Choices(
            choices.mode,
            choices.model if choices.model in self.models else "",
            choices.effort if choices.effort in self.efforts else "",
        )


NOTHING_OFFERED = AvailableChoices()


DAMAGED = "damaged"  # the tag of a row that does not match its digest
AWAY = "service_away"  # reason of a flush that is retried when the service is back
DISABLED = "disabled"  # reason: the owner has switched flushes off
NO_MEMORY = "no_memory"  # reason of a coverage in a session that writes no memory: a group
# Stands for "no source was given"; compared by identity.
_BY_ROLE = TextSource(Writer.OTHER, tainted=True)


class RowRole(StrEnum):
    """The kind of a row. The first two are messages of the API, the others are agentd's own."""

    USER = "user"
    ASSISTANT = "assistant"
    SUMMARY = "summary"  # replaces everything before it in the context
    NOTICE = "notice"  # shown to the user: a failure, an alert, a compaction

    @property
    def is_spoken(self) -> bool:
        """Whether such a row is part of the conversation, tool calls and results included."""
        return self in (RowRole.USER, RowRole.ASSISTANT)


class Row(Struct, frozen=True):
    """One stored row of a transcript.

    `seq` counts from 1 within its session and never changes; only retention, which erases old rows,
    leaves gaps. Unless `source` is given, a row that opens a turn was written by the owner and any
    other by the agent. Anything attached to the owner's words (an image, a resource, a paste)
    always taints the row.
    """

    seq: int
    role: RowRole
    blocks: tuple[Block, ...]
    at: datetime
    turn_id: int | None = None
    provider: str = ""  # the writer of an assistant row: opaque blocks go back only to it
    usage: Usage | None = None  # of the model call that wrote an assistant row
    tag: str = ""  # of a notice: `alert`, `failure`, `cancelled`, `compaction` …
    source: TextSource = _BY_ROLE

    def __post_init__(self) -> None:
        """Set the source that follows from the role, if none was given."""
        _fill_source(self)

    @property
    def text(self) -> str:
        """All words of the row."""
        return "".join(b.text for b in self.blocks if isinstance(b, Text))

    @property
    def images(self) -> tuple[Image, ...]:
        """The images that the row refers to, in order."""
        return tuple(b for b in self.blocks if isinstance(b, Image))

    def as_message(self) -> Message:
        """Return the message of a user or assistant row."""
        return Message(Role(self.role.value), self.blocks)


class NewRow(Struct, frozen=True):
    """A row before the store has given it a number and a time. `source` is as in Row."""

    role: RowRole
    blocks: tuple[Block, ...]
    provider: str = ""
    usage: Usage | None = None
    tag: str = ""
    source: TextSource = _BY_ROLE

    def __post_init__(self) -> None:
        """Set the source that follows from the role, if none was given."""
        _fill_source(self)

    def stored(self, seq: int, at: datetime, turn_id: int | None) -> Row:
        """Return the row as stored."""
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


class Coverage(Struct, frozen=True):
    """A record that rows `first`…`last` were handled by one flush: it succeeded (`ok`), or gave up
    for `reason`.
    """

    first: int
    last: int
    ok: bool
    reason: str

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is to be saved from the rows, so that they need not be kept for
        that.
        """
        return self.ok or self.reason == NO_MEMORY


def unsaved_ranges(coverages: Sequence[Coverage]) -> tuple[tuple[int, int, int], ...]:
    """Return the row ranges that were given up and that no later flush has saved, as (first, last,
    number of times given up), oldest first.
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


class SummaryTrouble(Struct, frozen=True):
    """Failed summaries of a session: `failures` in a row, the last for `reason`. The next try comes
    no sooner than `retry_at` (None after a success).
    """

    failures: int = 0
    reason: str = ""
    retry_at: datetime | None = None

    def holds(self, now: datetime) -> bool:
        """Whether it is too early for the next try."""
        return self.retry_at is not None and now < self.retry_at


NO_TROUBLE = SummaryTrouble()


class History(Struct, frozen=True):
    """A session's context: what its next prompt is built from.

    `rows` are the user, assistant and notice rows from `context_from` on, oldest first, those of
    unfinished turns included. `summary` replaces the rows before them. `covered_to` is the last row
    that a flush has covered (0: none).

    `generation` counts the swaps of the context; a compaction planned for another generation is
    stale. Token usage of rows up to `swapped_at` was measured on an older context and does not
    apply to this one. With `is_excerpted` no usage applies, because turns ran on a part of a
    context that was too long for them. `left_out` is about how many characters of older context
    rows were not read.
    """

    session: SessionKey
    rows: tuple[Row, ...] = ()
    summary: str = ""
    context_from: int = 1
    covered_to: int = 0
    generation: int = 0
    swapped_at: int = 0
    flush_failures: int = 0  # failed tries to flush the uncovered rows
    flush_due: bool = False  # a shutdown left uncovered rows
    choices: Choices = UNCHOSEN
    trouble: SummaryTrouble = NO_TROUBLE
    is_excerpted: bool = False
    left_out: int = 0

    @property
    def used_tokens(self) -> int:
        """The tokens that the newest model call on this context read and wrote (0: none yet)."""
        if self.is_excerpted:
            return 0
        newest = (row for row in reversed(self.rows) if row.usage and row.seq > self.swapped_at)
        return next((row.usage.total_tokens for row in newest if row.usage), 0)

    def without_turns(self, turns: frozenset[int]) -> History:
        """Return the history without the rows of these turns."""
        return replace(self, rows=tuple(r for r in self.rows if r.turn_id not in turns))


class SessionInfo(Struct, frozen=True):
    """One line of `agentd sessions list`."""

    key: SessionKey
    title: str
    created_at: datetime
    updated_at: datetime
    rows: int
    turns: int
    context_tokens: int  # of the last model call with its answer, as in Turn
    generation: int
    cwd: str = ""
    flush_due: bool = False
    trouble: SummaryTrouble = NO_TROUBLE


def opens_turn(row: Row | NewRow) -> bool:
    """Whether a turn starts with this row: a user row that holds no tool result."""
    return row.role is RowRole.USER and not any(isinstance(b, ToolResult) for b in row.blocks)


def without_loose_calls(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows with tool calls and results turned into text where a damaged row lost their
    counterpart: a service refuses a prompt with only one of them.
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
    """Return a row as one line of `agentd sessions export` and of the virtual file
    `sessions/KEY.jsonl`.

    A row that holds text from outside has `"tainted": true`, and `"writer": "owner"` if the owner's
    own words are around that text.
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
    """Return the rows of a compaction's summaries: first the summary of text from outside, if any,
    then the one that the context includes. The latter is tainted where others take part in the
    session.
    """
    is_shared = kind_of(session) is not SessionKind.OWNER
    return tuple(
        NewRow(RowRole.SUMMARY, (Text(text),), source=TextSource(Writer.AGENT, tainted))
        for text, tainted in ((outside, True), (summary, is_shared))
        if text
    )


def holds_attachments(blocks: Iterable[Block]) -> bool:
    """Whether a message holds anything that its sender did not write himself: images, resources,
    pastes.
    """
    return any(isinstance(b, Image) or (isinstance(b, Text) and b.quoted) for b in blocks)


def _fill_source(row: Row | NewRow) -> None:
    source = row.source
    if source is _BY_ROLE:
        source = BY_OWNER if opens_turn(row) else BY_AGENT
    if source == BY_OWNER and holds_attachments(row.blocks):
        source = TextSource(Writer.OWNER, tainted=True)
    if source is not row.source:
        force_setattr(row, "source", source)
