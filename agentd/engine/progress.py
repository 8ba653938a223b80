"""How far a running turn has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agentd.domain.message import ToolResult, ToolUse
from agentd.domain.tool import ToolOutput
from agentd.domain.transcript import Row, RowRole
from agentd.domain.turn import CallMade, Receipt, Usage
from agentd.engine.interrupt import Interrupt
from agentd.engine.prompt import Scene
from agentd.ports import Audience

CLIP_RESULTS = 2000  # characters left of a tool result when a turn's results must be cut
_NOTHING = Usage()


@dataclass(slots=True)
class Progress:
    """One turn while it runs; owned by the task that runs it."""

    receipt: Receipt
    scene: Scene
    sink: Audience
    rows: list[Row] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)  # words streamed since the last stored row
    usage: Usage = _NOTHING
    cost_usd: float = 0.0
    calls: list[CallMade] = field(default_factory=list)
    model_calls: int = 0
    clip: int | None = None
    interrupt: Interrupt = field(default_factory=Interrupt)
    is_announced: bool = False  # watchers know of the turn

    @property
    def can_clip(self) -> bool:
        """Whether this turn has tool results that could be cut to make room."""
        return self.clip is None and any(
            isinstance(b, ToolResult) and len(b.text) > CLIP_RESULTS
            for row in self.rows
            for b in row.blocks
        )

    @property
    def is_tainted(self) -> bool:
        """Whether the turn's prompt carries text from outside, or what was made of it."""
        rows = (*self.scene.past, *self.rows)
        return any(row.source.tainted and row.role.is_spoken for row in rows)

    def called(self, use: ToolUse, output: ToolOutput) -> None:
        """Note a call for the turn's record."""
        self.calls.append(CallMade(use.id, use.name, use.input, output.is_error))

    def recount(self, price: Callable[[Usage], float]) -> None:
        """Take over from the rows what a cut turn had already used and called."""
        results = {
            b.tool_use_id: b for r in self.rows for b in r.blocks if isinstance(b, ToolResult)
        }
        for row in self.rows:
            if row.role is not RowRole.ASSISTANT:
                continue
            used = row.usage or _NOTHING
            self.model_calls += 1
            self.usage += used
            self.cost_usd += price(used)
            for use in row.as_message().tool_uses:
                if use.id in results:
                    result = results[use.id]
                    self.called(use, ToolOutput(result.text, result.is_error))
