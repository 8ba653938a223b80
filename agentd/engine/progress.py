"""The state of a running turn: its rows, usage and calls so far, and its fields in the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from msgspec import Struct, field
from structlog.contextvars import bound_contextvars

from agentd.core.links import KnownText, openable_texts
from agentd.core.message import TextSource, ToolResult, ToolUse, Writer
from agentd.core.ports import TurnAudience
from agentd.core.tool import ToolOutput
from agentd.core.transcript import Row, RowRole
from agentd.core.turn import FinishedCall, Receipt, SessionKey, Turn, TurnRequest, Usage
from agentd.engine.context import TurnPromptParts
from agentd.engine.queue import Interrupt

CLIP_RESULTS = 2000  # characters left of a tool result when a turn's results must be cut
_UNUSED = Usage()


class Progress(Struct):
    """The state of a running turn; the task that runs the turn owns it."""

    receipt: Receipt
    context: TurnPromptParts
    sink: TurnAudience
    rows: list[Row] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)  # words streamed since the last stored row
    usage: Usage = _UNUSED
    cost_usd: float = 0.0
    calls: list[FinishedCall] = field(default_factory=list)
    model_calls: int = 0
    clip: int | None = None
    interrupt: Interrupt = field(default_factory=Interrupt)

    @property
    def session(self) -> SessionKey:
        """The session of the turn."""
        return self.context.request.session

    @property
    def source(self) -> TextSource:
        """The source of what the model says now: the agent, tainted if the turn's prompt is."""
        return TextSource(Writer.AGENT, self.is_tainted)

    @property
    def can_clip(self) -> bool:
        """Whether the turn has tool results that could be cut to make room."""
        return self.clip is None and any(
            isinstance(b, ToolResult) and len(b.text) > CLIP_RESULTS
            for row in self.rows
            for b in row.blocks
        )

    @property
    def is_tainted(self) -> bool:
        """Whether the turn's prompt carries text from outside, or text derived from it."""
        return self.context.past.is_tainted or any(
            row.source.tainted and row.role.is_spoken for row in self.rows
        )

    def known_texts(self) -> tuple[KnownText, ...]:
        """Return the texts of the turn's prompt whose web addresses the turn may open even if it is
        tainted.
        """
        return openable_texts((*self.context.past.rows, *self.rows))

    def called(self, use: ToolUse, output: ToolOutput) -> None:
        """Add an answered tool call to the turn's record."""
        made = FinishedCall(use.id, use.name, use.input, output.is_error, output.is_repetition)
        self.calls.append(made)

    def open_calls(self) -> tuple[ToolUse, ...]:
        """Return the tool calls that the turn's next row has to answer."""
        asked = bool(self.rows) and self.rows[-1].role is RowRole.ASSISTANT
        return self.rows[-1].as_message().tool_uses if asked else ()

    def recount(self, price: Callable[[Usage], float], outputs: Mapping[str, ToolOutput]) -> None:
        """Add up what a cut turn had used and called before, from its rows and from the outputs of
        its tool calls by call id. Calls that the next row has to answer are counted when it does.
        """
        open_ids = {use.id for use in self.open_calls()}
        for row in self.rows:
            if row.role is not RowRole.ASSISTANT:
                continue
            used = row.usage or _UNUSED
            self.model_calls += 1
            self.usage += used
            self.cost_usd += price(used)
            for use in row.as_message().tool_uses:
                if use.id in outputs and use.id not in open_ids:
                    self.called(use, outputs[use.id])


def log_context(request: TurnRequest, receipt: Receipt) -> AbstractContextManager[None]:
    """Return a context manager: what this task, and tasks started by it, log during the block is
    marked with the session, the turn and its origin, so that the log can be read turn by turn.
    """
    return bound_contextvars(
        session=str(request.session), turn=receipt.turn_id, origin=str(request.origin)
    )


def log_fields(turn: Turn) -> dict[str, Any]:
    """Return the fields of the log line about a turn that has ended."""
    return {
        "outcome": str(turn.stop_reason or "failed"),
        "tools": len(turn.tool_calls),
        "tokens": turn.usage.total_tokens,
    }
