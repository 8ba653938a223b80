"""The loop of one turn: prompt, stream, tools, and again until the model is done.

Everything the loop knows about its own progress is in the journal, so running it on a turn that a
crash cut continues that turn: it looks at the last row and does what comes next. Rules it keeps:

- the whole assistant message is durable before any tool of it starts;
- every tool call has its result in the very next row, whatever happens in between;
- a cut answer is never stored.

It takes no lane, compacts nothing and knows no sockets.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

from agentd.domain.event import (
    AnswerRetracted,
    TextChunk,
    ThoughtChunk,
    ToolCallEnded,
    ToolCallStarted,
    TurnStarted,
)
from agentd.domain.message import Block, Text, ToolResult, ToolUse
from agentd.domain.prompt import Answered, ModelStop, Restarted, TextDelta, ThoughtDelta
from agentd.domain.tool import ToolCall, ToolOutput
from agentd.domain.transcript import TAINTED, NewRow, Row, RowRole
from agentd.domain.turn import Failure, Receipt, StopReason, Turn, Usage
from agentd.engine import prompt as prompts
from agentd.engine.durable import together, when_space
from agentd.engine.interrupt import Interrupt, Interrupted
from agentd.engine.prompt import Scene
from agentd.engine.toolbox import Toolbox
from agentd.errors import ProviderError, ShuttingDown
from agentd.failpoints import hit
from agentd.ports import Clock, EventSink, Journal, Ledger, Provider, SessionStore

CANCELLED_CALL = "The user cancelled the turn before this tool had answered."
CLIP_RESULTS = 2000
_NOTHING = Usage()


@dataclass(slots=True)
class Progress:
    """One turn while it runs; owned by the task that runs it."""

    receipt: Receipt
    scene: Scene
    sink: EventSink
    rows: list[Row] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)  # words streamed since the last stored row
    usage: Usage = _NOTHING
    cost_usd: float = 0.0
    calls: list[dict[str, Any]] = field(default_factory=list)
    model_calls: int = 0
    clip: int | None = None
    interrupt: Interrupt = field(default_factory=Interrupt)


class Loop:
    """Runs turns over a given scene."""

    def __init__(
        self,
        store: SessionStore,
        journal: Journal,
        ledger: Ledger,
        toolbox: Toolbox,
        provider: Provider,
        clock: Clock,
        *,
        price: Callable[[str, Usage], float],
        max_model_calls: int,
    ) -> None:
        self._store = store
        self._journal = journal
        self._ledger = ledger
        self._toolbox = toolbox
        self._provider = provider
        self._clock = clock
        self._price = price
        self._max_model_calls = max_model_calls
        self.draining = False  # no new model call once this is set

    async def run(self, progress: Progress) -> Turn:
        """Run the turn to its end and store it.

        Raises ProviderError and ContextOverflow with nothing half-stored (the caller decides, and
        may call again), Interrupted when the user wants to stop, ShuttingDown when a new model call
        would be needed while draining.
        """
        if not progress.rows:
            receipt = progress.receipt
            progress.rows.extend(await self.begin(receipt))
            hit("turn.begun")
            self._recount(progress)
            if progress.rows[-1].role is RowRole.ASSISTANT:
                await self._toolbox.settle_open(receipt.turn_id)
            request = progress.scene.request
            progress.sink.emit(TurnStarted(request.session, request.message_id, request.text))
        while True:
            if progress.interrupt.requested:
                raise Interrupted
            last = progress.rows[-1]
            uses = last.as_message().tool_uses if last.role is RowRole.ASSISTANT else ()
            if uses:
                await self._run_tools(progress, uses)
            elif progress.model_calls >= self._max_model_calls:
                return await self._end(progress, StopReason.MAX_TURN_REQUESTS, ())
            else:
                turn = await self._ask(progress)
                if turn is not None:
                    return turn

    async def begin(self, receipt: Receipt) -> list[Row]:
        """Count an attempt; the turn's rows so far."""
        rows = await when_space(self._clock, lambda: self._store.begin(receipt.turn_id))
        return list(rows)

    async def cancelled(self, progress: Progress) -> Turn:
        """Store a turn that the user cancelled: shown text is kept, open calls are answered."""
        rows: list[NewRow] = []
        last = progress.rows[-1] if progress.rows else None
        if last is not None and last.role is RowRole.ASSISTANT:
            uses = last.as_message().tool_uses
            if uses:
                rows.append(await self._close_calls(progress.receipt.turn_id, uses, CANCELLED_CALL))
        if (shown := "".join(progress.shown)).strip():
            rows.append(NewRow(RowRole.ASSISTANT, (Text(shown),), provider=progress.scene.provider))
        rows.append(NewRow(RowRole.NOTICE, (Text("Cancelled by the user."),), tag="cancelled"))
        return await self._end(progress, StopReason.CANCELLED, rows)

    async def failed(self, progress: Progress, failure: Failure) -> Turn:
        """Store a turn that failed: its rows stay, open calls are answered, a notice says why."""
        rows: list[NewRow] = []
        last = progress.rows[-1] if progress.rows else None
        uses = last.as_message().tool_uses if last and last.role is RowRole.ASSISTANT else ()
        if uses:
            rows.append(await self._close_calls(progress.receipt.turn_id, uses, failure.message))
        words = f"This turn failed: {failure.message} {failure.cure}".strip()
        rows.append(NewRow(RowRole.NOTICE, (Text(words),), tag="failure"))
        return await self._end(progress, None, rows, failure)

    async def _ask(self, progress: Progress) -> Turn | None:
        if self.draining:
            raise ShuttingDown
        progress.model_calls += 1
        answer = await self._stream(progress)
        hit("turn.answered")
        progress.usage += answer.usage
        blocks = _storable(answer, (*progress.scene.past, *progress.rows))
        row = NewRow(RowRole.ASSISTANT, blocks, answer.provider, answer.usage)
        request = progress.scene.request
        cost = self._price(answer.model, answer.usage)
        progress.cost_usd += cost
        charge = partial(
            self._ledger.charge,
            request.session,
            request.origin,
            answer.model,
            answer.usage,
            cost,
            reservation=answer.reservation,
        )
        charged = partial(when_space, self._clock, charge)
        has_calls = any(isinstance(b, ToolUse) for b in blocks)
        if not has_calls and answer.stop is not ModelStop.PAUSE:
            stop = _STOPS.get(answer.stop, StopReason.END_TURN)
            return await together(self._end(progress, stop, (row,)), charged)
        stored = when_space(self._clock, lambda: self._store.append(progress.receipt.turn_id, row))
        progress.rows.append(await together(stored, charged))
        progress.shown.clear()
        hit("turn.assistant_stored")
        return None

    async def _stream(self, progress: Progress) -> Answered:
        session = progress.scene.request.session
        prompt = prompts.build(progress.scene, progress.rows, clip_results=progress.clip)
        progress.shown.clear()
        events = self._provider.stream(prompt)
        try:
            async with progress.interrupt.guard():
                async for event in events:
                    match event:
                        case TextDelta(text):
                            progress.shown.append(text)
                            progress.sink.emit(TextChunk(session, text))
                            hit("turn.streaming")
                        case ThoughtDelta(text):
                            progress.sink.emit(ThoughtChunk(session, text))
                        case Restarted(reason):
                            self._retract(progress, reason)
                        case Answered():
                            return event
        except ProviderError as error:
            self._retract(progress, error.reason)
            raise
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()
        self._retract(progress, "provider_stream_cut")
        raise ProviderError(
            "The model's answer ended before it was complete.",
            cure="Send the message again.",
            kind="stream_cut",
            retryable=True,
        )

    def _retract(self, progress: Progress, reason: str) -> None:
        if progress.shown:
            progress.sink.emit(AnswerRetracted(progress.scene.request.session, reason))
            progress.shown.clear()

    async def _run_tools(self, progress: Progress, uses: Sequence[ToolUse]) -> None:
        turn_id = progress.receipt.turn_id
        done = await self._outputs(turn_id)
        for use in uses:
            if use.id not in done and progress.interrupt.requested:
                raise Interrupted
            self._announce(progress, use)
            if use.id not in done:
                done[use.id] = await self._run_tool(progress, use, tuple(done.values()))
            output = done[use.id]
            progress.calls.append(_call_json(use, output))
            session = progress.scene.request.session
            progress.sink.emit(
                ToolCallEnded(session, use.id, use.name, output.text, output.is_error)
            )
        row = _results_row(uses, done)
        progress.rows.append(
            await when_space(self._clock, lambda: self._store.append(turn_id, row))
        )
        hit("turn.results_stored")

    async def _run_tool(
        self, progress: Progress, use: ToolUse, earlier: Sequence[ToolOutput]
    ) -> ToolOutput:
        request = progress.scene.request
        tainted = any(o.tainted for o in earlier) or any(
            r.tag == TAINTED for r in (*progress.scene.past, *progress.rows)
        )
        call = ToolCall(
            use.id, use.name, use.input, request.session, request.kind, request.origin, tainted
        )
        return await self._toolbox.run(progress.receipt.turn_id, call, request, progress.interrupt)

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

    async def _close_calls(self, turn_id: int, uses: Sequence[ToolUse], why: str) -> NewRow:
        await self._toolbox.settle_open(turn_id)  # what has begun is told as it really ended
        done = await self._outputs(turn_id)
        for use in uses:
            done.setdefault(use.id, ToolOutput(why, is_error=True))
        return _results_row(uses, done)

    async def _end(
        self,
        progress: Progress,
        stop: StopReason | None,
        rows: Sequence[NewRow],
        failure: Failure | None = None,
    ) -> Turn:
        receipt = progress.receipt
        ended: list[Row | NewRow] = [*progress.rows, *rows]
        turn = Turn(
            session=receipt.session,
            message_id=receipt.message_id,
            seq=receipt.seq,
            text=_last_words(ended) if failure is None else "",
            stop_reason=stop,
            usage=progress.usage,
            cost_usd=progress.cost_usd,
            tool_calls=tuple(progress.calls),
            failure=failure,
        )
        stored = await when_space(
            self._clock, lambda: self._store.finish(receipt.turn_id, turn, rows)
        )
        progress.rows.extend(stored)
        hit("turn.finished")
        return turn

    def _recount(self, progress: Progress) -> None:
        """Take over what a cut turn had already used and called."""
        results = {
            b.tool_use_id: b for r in progress.rows for b in r.blocks if isinstance(b, ToolResult)
        }
        for row in progress.rows:
            if row.role is RowRole.ASSISTANT:
                progress.model_calls += 1
                used = row.usage or Usage()
                progress.usage += used
                progress.cost_usd += self._price(self._provider.model, used)
                for use in row.as_message().tool_uses:
                    if use.id in results:
                        result = results[use.id]
                        output = ToolOutput(result.text, result.is_error)
                        progress.calls.append(_call_json(use, output))


_STOPS = {
    ModelStop.END_TURN: StopReason.END_TURN,
    ModelStop.MAX_TOKENS: StopReason.MAX_TOKENS,
    ModelStop.REFUSAL: StopReason.REFUSAL,
}


def can_clip(progress: Progress) -> bool:
    """Whether this turn has tool results that could be cut to make room."""
    return progress.clip is None and any(
        isinstance(b, ToolResult) and len(b.text) > CLIP_RESULTS
        for row in progress.rows
        for b in row.blocks
    )


def failure_of(error: ProviderError) -> Failure:
    """The error as it is stored and told."""
    return Failure(error.reason, error.message, error.cure)


def _storable(answer: Answered, earlier: Sequence[Row]) -> tuple[Block, ...]:
    """Tool calls are stored only when the model meant to stop for them: never a cut one.

    Some services number the calls of each answer from the same start. The journal and the API know
    a call by its id alone, so one that is used already is made new.
    """
    if answer.stop is not ModelStop.TOOL_USE:
        return tuple(b for b in answer.message.blocks if not isinstance(b, ToolUse))
    known = {b.id for r in earlier for b in r.blocks if isinstance(b, ToolUse)}
    blocks: list[Block] = []
    for block in answer.message.blocks:
        if not isinstance(block, ToolUse):
            blocks.append(block)
            continue
        fresh = (f"{block.id}-{n}" if n else block.id for n in count())
        unused = next(name for name in fresh if name not in known)
        known.add(unused)
        blocks.append(replace(block, id=unused))
    return tuple(blocks)


def _results_row(uses: Sequence[ToolUse], done: dict[str, ToolOutput]) -> NewRow:
    blocks = tuple(ToolResult(u.id, done[u.id].text, done[u.id].is_error) for u in uses)
    tainted = any(done[u.id].tainted for u in uses)
    return NewRow(RowRole.USER, blocks, tag=TAINTED if tainted else "")


def _call_json(use: ToolUse, output: ToolOutput) -> dict[str, Any]:
    return {"id": use.id, "name": use.name, "input": dict(use.input), "is_error": output.is_error}


def _last_words(rows: Sequence[Row | NewRow]) -> str:
    """What the model said last; an answer that it paused in stands in several rows."""
    said: list[str] = []
    for row in reversed(rows):
        if row.role is RowRole.ASSISTANT:
            said.append("".join(b.text for b in row.blocks if isinstance(b, Text)))
        elif said:
            break
    return "".join(reversed(said))
