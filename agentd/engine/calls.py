"""Runs the tool calls of one answer, each once, and puts their results into one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentd.core.event import ToolCallAdvanced, ToolCallEnded, ToolCallStarted
from agentd.core.links import FETCH
from agentd.core.message import TextSource, ToolResult, ToolUse, Writer
from agentd.core.ports import Clock, Journal
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.transcript import ApprovalMode, NewRow, RowRole
from agentd.engine.durable import when_space
from agentd.engine.progress import Progress
from agentd.engine.queue import Interrupted
from agentd.engine.toolbox import Toolbox


class Calls:
    """Runs those tool calls of an assistant message that have no output in the journal yet, and
    makes one row with the results of all its calls, in order.
    """

    def __init__(self, toolbox: Toolbox, journal: Journal, clock: Clock) -> None:
        self._toolbox = toolbox
        self._journal = journal
        self._clock = clock

    async def run(self, progress: Progress, uses: Sequence[ToolUse]) -> NewRow:
        """Return the row with the results of all calls. A call beyond the limits of an answer or a
        turn, or with `refused` set, gets an error result; it is neither shown nor journaled. Raises
        Interrupted when the user wants to stop before a call.
        """
        done = await self.outputs(progress.receipt.turn_id)
        refused: dict[str, ToolOutput] = {}
        for index, use in enumerate(uses):
            if use.id not in done:
                if progress.interrupt.requested:
                    raise Interrupted
                if use.refused:
                    refused[use.id] = ToolOutput(use.refused, is_error=True)
                    continue
                if refusal := self._toolbox.refusal(index, len(done)):
                    refused[use.id] = refusal
                    continue
            self._announce(progress, use)
            if use.id not in done:
                done[use.id] = await self._run_one(progress, use, tuple(done.values()))
            output = done[use.id]
            progress.called(use, output)
            ended = ToolCallEnded(progress.session, use.id, use.name, output.text, output.is_error)
            progress.sink.emit(ended)
        return _results(uses, done | refused, is_tainted=progress.is_tainted)

    async def outputs(self, turn_id: int) -> dict[str, ToolOutput]:
        """Return the outputs of the turn's tool calls so far, by the ids of the calls."""
        return dict(await when_space(self._clock, self._journal.outputs, turn_id))

    async def settle(self, turn_id: int) -> None:
        """Settle the turn's calls that have begun and have no output. To be done before any call of
        the turn runs again.
        """
        await self._toolbox.settle_open(turn_id)

    async def close(self, progress: Progress, uses: Sequence[ToolUse], why: str) -> NewRow:
        """Return the row of results that closes the open calls of a turn that ends: a call that has
        begun gets its real result, any other the error text `why`.
        """
        turn_id = progress.receipt.turn_id
        await self.settle(turn_id)
        done = await self.outputs(turn_id)
        for use in uses:
            done.setdefault(use.id, ToolOutput(why, is_error=True))
        return _results(uses, done, is_tainted=progress.is_tainted)

    async def _run_one(
        self, progress: Progress, use: ToolUse, earlier: Sequence[ToolOutput]
    ) -> ToolOutput:
        request = progress.context.request
        tainted = progress.is_tainted or any(output.tainted for output in earlier)
        call = ToolCall(
            use.id,
            use.name,
            use.input,
            request.session,
            request.kind,
            request.origin,
            tainted,
            careful=progress.context.choices.mode is ApprovalMode.ASK,
            known=progress.known_texts() if tainted and use.name == FETCH else (),
        )
        chars_before = sum(len(output.text) for output in earlier)

        def show(text: str) -> None:
            progress.sink.emit(ToolCallAdvanced(request.session, use.id, text))

        turn_id, interrupt = progress.receipt.turn_id, progress.interrupt
        return await self._toolbox.run(
            turn_id, call, request, interrupt, chars_before=chars_before, show=show
        )

    def _announce(self, progress: Progress, use: ToolUse) -> None:
        progress.sink.emit(
            ToolCallStarted(
                progress.session,
                use.id,
                use.name,
                use.title,
                self._toolbox.kind(use.name, progress.context.request),
                use.input,
            )
        )


def _results(
    uses: Sequence[ToolUse], done: Mapping[str, ToolOutput], *, is_tainted: bool
) -> NewRow:
    """Return the row of results. It is tainted if the turn or one of the outputs is."""
    blocks = tuple(ToolResult(u.id, done[u.id].text, done[u.id].is_error) for u in uses)
    tainted = is_tainted or any(done[u.id].tainted for u in uses)
    return NewRow(RowRole.USER, blocks, source=TextSource(Writer.AGENT, tainted))
