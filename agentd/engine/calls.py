"""The tool calls of one assistant message: every one gets its result, in order, in one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentd.domain.choices import Mode
from agentd.domain.event import ToolCallAdvanced, ToolCallEnded, ToolCallStarted
from agentd.domain.message import ToolResult, ToolUse
from agentd.domain.source import TextSource, Writer
from agentd.domain.tool import ToolCall, ToolOutput
from agentd.domain.transcript import NewRow, RowRole
from agentd.engine.durable import when_space
from agentd.engine.interrupt import Interrupted
from agentd.engine.progress import Progress
from agentd.engine.toolbox import Toolbox
from agentd.ports import Clock, Journal


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
        )
        told = sum(len(output.text) for output in earlier)

        def show(text: str) -> None:
            progress.sink.emit(ToolCallAdvanced(request.session, use.id, text))

        turn_id, interrupt = progress.receipt.turn_id, progress.interrupt
        return await self._toolbox.run(turn_id, call, request, interrupt, told=told, show=show)

    def _announce(self, progress: Progress, use: ToolUse) -> None:
        spec = self._toolbox.spec(use.name)
        progress.sink.emit(
            ToolCallStarted(
                progress.scene.request.session,
                use.id,
                use.name,
                use.title,
                spec.kind if spec else "other",
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
