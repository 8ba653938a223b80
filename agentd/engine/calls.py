"""The tool calls of one assistant message: every one gets its result, in order, in one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agentd.core.event import ToolCallAdvanced, ToolCallEnded, ToolCallStarted
from agentd.core.links import FETCH, KnownText, known_texts
from agentd.core.message import TextSource, ToolResult, ToolUse, Writer
from agentd.core.ports import Clock, Journal, TurnAudience
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.transcript import Mode, NewRow, Row, RowRole
from agentd.core.turn import CallMade, Receipt, Usage
from agentd.engine.context import Scene
from agentd.engine.durable import when_space
from agentd.engine.interrupt import Interrupt, Interrupted
from agentd.engine.toolbox import Toolbox

# How far a running turn has come.

CLIP_RESULTS = 2000  # characters left of a tool result when a turn's results must be cut
_NOTHING = Usage()


@dataclass(slots=True)
class Progress:
    """One turn while it runs; owned by the task that runs it."""

    receipt: Receipt
    scene: Scene
    sink: TurnAudience
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

    def known_texts(self) -> tuple[KnownText, ...]:
        """The texts of the turn's prompt whose addresses it may open, however tainted it is."""
        return known_texts((*self.scene.past, *self.rows))

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


class Calls:
    """Runs what the journal has no output for, and makes the row of results."""

    def __init__(self, toolbox: Toolbox, journal: Journal, clock: Clock) -> None:
        self._toolbox = toolbox
        self._journal = journal
        self._clock = clock

    async def run(self, progress: Progress, uses: Sequence[ToolUse]) -> NewRow:
        """The results of all calls. Those beyond the limits of an answer and a turn, and those that cannot
        be run as they came, are refused, and neither shown nor journaled. Raises Interrupted when the user wants to stop before one.
        """
        done = await self._outputs(progress.receipt.turn_id)
        refused: dict[str, ToolOutput] = {}
        for place, use in enumerate(uses):
            if use.id not in done:
                if progress.interrupt.requested:
                    raise Interrupted
                if use.refused:
                    refused[use.id] = ToolOutput(use.refused, is_error=True)
                    continue
                if refusal := self._toolbox.refusal(place, len(done)):
                    refused[use.id] = refusal
                    continue
            self._announce(progress, use)
            if use.id not in done:
                done[use.id] = await self._run_one(progress, use, tuple(done.values()))
            output = done[use.id]
            progress.called(use, output)
            session = progress.scene.request.session
            progress.sink.emit(
                ToolCallEnded(session, use.id, use.name, output.text, output.is_error)
            )
        return _results(uses, done | refused, is_tainted=progress.is_tainted)

    async def settle(self, turn_id: int) -> None:
        """Finish or explain what had begun and has no output, before anything runs again."""
        await self._toolbox.settle_open(turn_id)

    async def close(self, progress: Progress, uses: Sequence[ToolUse], why: str) -> NewRow:
        """The results of a turn that ends here: what has begun as it really ended, the rest `why`."""
        turn_id = progress.receipt.turn_id
        await self.settle(turn_id)
        done = await self._outputs(turn_id)
        for use in uses:
            done.setdefault(use.id, ToolOutput(why, is_error=True))
        return _results(uses, done, is_tainted=progress.is_tainted)

    async def _run_one(
        self, progress: Progress, use: ToolUse, earlier: Sequence[ToolOutput]
    ) -> ToolOutput:
        request = progress.scene.request
        tainted = progress.is_tainted or any(output.tainted for output in earlier)
        call = ToolCall(
            use.id,
            use.name,
            use.input,
            request.session,
            request.kind,
            request.origin,
            tainted,
            careful=progress.scene.choices.mode is Mode.ASK,
            known=progress.known_texts() if tainted and use.name == FETCH else (),
        )
        told = sum(len(output.text) for output in earlier)

        def show(text: str) -> None:
            progress.sink.emit(ToolCallAdvanced(request.session, use.id, text))

        turn_id, interrupt = progress.receipt.turn_id, progress.interrupt
        return await self._toolbox.run(turn_id, call, request, interrupt, told=told, show=show)

    def _announce(self, progress: Progress, use: ToolUse) -> None:
        progress.sink.emit(
            ToolCallStarted(
                progress.scene.request.session,
                use.id,
                use.name,
                use.title,
                self._toolbox.kind(use.name, progress.scene.request),
                use.input,
            )
        )

    async def _outputs(self, turn_id: int) -> dict[str, ToolOutput]:
        return dict(await when_space(self._clock, lambda: self._journal.outputs(turn_id)))


def _results(
    uses: Sequence[ToolUse], done: Mapping[str, ToolOutput], *, is_tainted: bool
) -> NewRow:
    """The row; what a tainted turn has called answers in its words, which are tainted, too."""
    blocks = tuple(ToolResult(u.id, done[u.id].text, done[u.id].is_error) for u in uses)
    tainted = is_tainted or any(done[u.id].tainted for u in uses)
    return NewRow(RowRole.USER, blocks, source=TextSource(Writer.AGENT, tainted))
