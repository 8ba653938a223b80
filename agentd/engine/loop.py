"""The loop of one turn: prompt, stream, tools, and again until the model is done.

Everything the loop knows about its own progress is in the journal, so running it on a turn that a
crash cut continues that turn: it looks at the last row and does what comes next. Rules it keeps:

- the whole assistant message is durable before any tool of it starts;
- every tool call has its result in the very next row, whatever happens in between;
- a cut answer is never stored.

Keys in texts are not kept (`redactor`): what the store gives back has marks in their place, and the
running turn goes on with the words as they were.

It waits in no queue, compacts nothing and knows no sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from agentd.core.errors import AgentdError, ProviderError, ShuttingDown
from agentd.core.event import (
    AnswerDelayed,
    AnswerRetracted,
    TextChunk,
    ThoughtChunk,
    ToolCallAdvanced,
    ToolCallEnded,
    ToolCallStarted,
)
from agentd.core.failpoints import hit
from agentd.core.links import FETCH, KnownText, known_texts
from agentd.core.message import Block, Text, TextSource, ToolResult, ToolUse, Writer
from agentd.core.offloading import ROWS, offload
from agentd.core.ports import Clock, Inbox, Journal, Ledger, Provider, TurnAudience
from agentd.core.prompt import (
    Answered,
    ModelStop,
    Restarted,
    RetryScheduled,
    TextDelta,
    ThoughtDelta,
    closing,
)
from agentd.core.redaction import Redactor
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.transcript import Mode, NewRow, Row, RowRole
from agentd.core.turn import CallMade, Failure, Origin, Receipt, StopReason, Turn, Usage
from agentd.engine import context as prompts
from agentd.engine.context import PromptContext
from agentd.engine.durable import together, when_space
from agentd.engine.queue import Interrupt, Interrupted
from agentd.engine.toolbox import Toolbox

CANCELLED_CALL = "The user cancelled the turn before this tool had answered."
CLIP_RESULTS = 2000  # characters left of a tool result when a turn's results must be cut
_PIECE = 64 * 1024  # characters of an answer that are shown at once
_NOTHING = Usage()


class Loop:
    """Runs turns over a given context."""

    def __init__(
        self,
        store: Inbox,
        journal: Journal,
        ledger: Ledger,
        toolbox: Toolbox,
        provider: Provider,
        clock: Clock,
        *,
        price: Callable[[str, Usage], float],
        max_model_calls: int,
        redactor: Redactor | None = None,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._calls = Calls(toolbox, journal, clock)
        self._provider = provider
        self._clock = clock
        self._price = price
        self._max_model_calls = max_model_calls
        self._redactor = redactor or Redactor()
        self.draining = False  # no new model call once this is set

    async def run(self, progress: Progress) -> Turn:
        """Run the turn to its end and store it.

        Raises ProviderError and ContextOverflow with nothing half-stored (the caller decides, and
        may call again), Interrupted when the user wants to stop, ShuttingDown when a new model call
        would be needed while draining.
        """
        if not progress.rows:
            await self.resume(progress)
            hit("turn.begun")
            self._restore_words(progress)
            if len(progress.rows) > 1 and progress.rows[-1].role is RowRole.ASSISTANT:
                await self._calls.settle(progress.receipt.turn_id)
        while True:
            if progress.interrupt.requested:
                raise Interrupted
            if uses := _open_calls(progress.rows):
                await self._answer_calls(progress, uses)
            elif progress.model_calls >= self._max_model_calls:
                return await self._end(progress, StopReason.MAX_TURN_REQUESTS, ())
            else:
                turn = await self._ask(progress)
                if turn is not None:
                    return turn

    async def resume(self, progress: Progress) -> None:
        """Count an attempt, and take over the turn's rows so far with what they have used and called."""
        turn_id = progress.receipt.turn_id
        progress.rows.extend(await when_space(self._clock, lambda: self._store.begin(turn_id)))
        if len(progress.rows) > 1:  # a crash, a stop or an outage has cut it before
            progress.recount(lambda used: self._price(self._provider.model, used))

    async def cancelled(self, progress: Progress) -> Turn:
        """Store a turn that the user cancelled: shown text is kept, open calls are answered."""
        rows = await self._closed(progress, CANCELLED_CALL)
        if (shown := "".join(progress.shown)).strip():
            blocks, provider = (Text(shown),), progress.context.provider
            rows.append(NewRow(RowRole.ASSISTANT, blocks, provider, source=_said_by(progress)))
        rows.append(NewRow(RowRole.NOTICE, (Text("Cancelled by the user."),), tag="cancelled"))
        return await self._end(progress, StopReason.CANCELLED, rows)

    async def failed(self, progress: Progress, failure: Failure) -> Turn:
        """Store a turn that failed: its rows stay, open calls are answered, a notice says why."""
        rows = await self._closed(progress, failure.message)
        words = f"This turn failed: {failure.message} {failure.cure}".strip()
        rows.append(NewRow(RowRole.NOTICE, (Text(words),), tag=prompts.FAILURE_TAG))
        return await self._end(progress, None, rows, failure)

    def _restore_words(self, progress: Progress) -> None:
        """Let the turn read its message as it was sent, where that is not what was stored."""
        request, first = progress.context.request, progress.rows[0]
        is_other = first.role is RowRole.USER and first.blocks != request.blocks
        if is_other and self._redactor.holds(request.text):
            progress.rows[0] = replace(first, blocks=request.blocks)

    async def _ask(self, progress: Progress) -> Turn | None:
        if self.draining:
            raise ShuttingDown
        progress.model_calls += 1
        answer = await self._stream(progress)
        hit("turn.answered")
        progress.usage += answer.usage
        blocks = _storable(answer, (*progress.context.past.rows, *progress.rows))
        row = NewRow(
            RowRole.ASSISTANT, blocks, answer.provider, answer.usage, source=_said_by(progress)
        )
        request = progress.context.request
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
        progress.rows.append(replace(await together(stored, charged), blocks=row.blocks))
        progress.shown.clear()
        hit("turn.assistant_stored")
        return None

    async def _stream(self, progress: Progress) -> Answered:
        session = progress.context.request.session
        rows = tuple(progress.rows)
        build = partial(prompts.build, progress.context, rows, clip_results=progress.clip)
        prompt = await offload(len(rows), build, light=ROWS)
        progress.shown.clear()
        try:
            async with (
                closing(self._provider.stream(prompt)) as events,
                progress.interrupt.guard(),
            ):
                async for event in events:
                    match event:
                        case TextDelta() | ThoughtDelta():
                            await _show(progress, event)
                        case Restarted(reason):
                            self._retract(progress, reason)
                        case RetryScheduled(reason, text, seconds):
                            progress.sink.emit(AnswerDelayed(session, reason, text, seconds))
                        case Answered():
                            return event
        except ProviderError as error:
            self._retract(progress, error.reason)
            raise
        self._retract(progress, "provider_stream_cut")
        raise ProviderError(
            "The model's answer ended before it was complete.",
            cure="Send the message again.",
            kind="stream_cut",
            retryable=True,
        )

    def _retract(self, progress: Progress, reason: str) -> None:
        if progress.shown:
            progress.sink.emit(AnswerRetracted(progress.context.request.session, reason))
            progress.shown.clear()

    async def _answer_calls(self, progress: Progress, uses: Sequence[ToolUse]) -> None:
        row = await self._calls.run(progress, uses)
        turn_id = progress.receipt.turn_id
        stored = await when_space(self._clock, lambda: self._store.append(turn_id, row))
        progress.rows.append(replace(stored, blocks=row.blocks))
        hit("turn.results_stored")

    async def _closed(self, progress: Progress, why: str) -> list[NewRow]:
        """The results with which the turn's open calls end, if it has any."""
        uses = _open_calls(progress.rows)
        return [await self._calls.close(progress, uses, why)] if uses else []

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
            context_tokens=_context_tokens(ended),
            tainted=progress.is_tainted or any(row.source.tainted for row in rows),
        )
        if progress.context.request.origin is not Origin.USER:  # others keep what nobody was shown
            turn = replace(turn, text=self._redactor.kept(turn.text).text)
        stored = await when_space(
            self._clock, lambda: self._store.finish(receipt.turn_id, turn, rows)
        )
        progress.rows.extend(stored)
        hit("turn.finished")
        return turn


async def _show(progress: Progress, said: TextDelta | ThoughtDelta) -> None:
    """Show the words as fast as those who watch read them."""
    session = progress.context.request.session
    for start in range(0, len(said.text), _PIECE):
        piece = said.text[start : start + _PIECE]
        if isinstance(said, TextDelta):
            progress.shown.append(piece)
            progress.sink.emit(TextChunk(session, piece))
            hit("turn.streaming")
        else:
            progress.sink.emit(ThoughtChunk(session, piece))
        await progress.sink.wait_room(session)


_STOPS = {
    ModelStop.END_TURN: StopReason.END_TURN,
    ModelStop.MAX_TOKENS: StopReason.MAX_TOKENS,
    ModelStop.REFUSAL: StopReason.REFUSAL,
}


def failure_of(error: AgentdError) -> Failure:
    """The error as it is stored and told."""
    return Failure(error.reason, error.message, error.cure)


def _said_by(progress: Progress) -> TextSource:
    """The source of what the model says now: what it makes of text from outside is tainted, too."""
    return TextSource(Writer.AGENT, progress.is_tainted)


def _open_calls(rows: Sequence[Row]) -> tuple[ToolUse, ...]:
    """The calls that the next row has to answer."""
    asked = bool(rows) and rows[-1].role is RowRole.ASSISTANT
    return rows[-1].as_message().tool_uses if asked else ()


def _storable(answer: Answered, earlier: Sequence[Row]) -> tuple[Block, ...]:
    """Tool calls are stored only when the model meant to stop for them: never a cut one.

    Some services number the calls of each answer from the same start. The journal and the API know
    a call by its id alone, so one that is used already is made new.
    """
    if answer.stop is not ModelStop.TOOL_USE:
        return tuple(b for b in answer.message.blocks if not isinstance(b, ToolUse))
    known = {b.id for r in earlier for b in r.blocks if isinstance(b, ToolUse)}
    numbers: dict[str, Iterator[int]] = {}  # an answer may give all of its calls one id
    blocks: list[Block] = []
    for block in answer.message.blocks:
        if not isinstance(block, ToolUse):
            blocks.append(block)
            continue
        mine = numbers.setdefault(block.id, count())
        fresh = (f"{block.id}-{n}" if n else block.id for n in mine)
        unused = next(name for name in fresh if name not in known)
        known.add(unused)
        blocks.append(replace(block, id=unused))
    return tuple(blocks)


def _context_tokens(rows: Sequence[Row | NewRow]) -> int:
    used = next((row.usage for row in reversed(rows) if row.usage is not None), None)
    return used.total_tokens if used else 0


def _last_words(rows: Sequence[Row | NewRow]) -> str:
    """What the model said last; an answer that it paused in stands in several rows."""
    said: list[str] = []
    for row in reversed(rows):
        if row.role is RowRole.ASSISTANT:
            said.append("".join(b.text for b in row.blocks if isinstance(b, Text)))
        elif said:
            break
    return "".join(reversed(said))


@dataclass(slots=True)
class Progress:
    """How far a turn has come that runs; owned by the task that runs it."""

    receipt: Receipt
    context: PromptContext
    sink: TurnAudience
    rows: list[Row] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)  # words streamed since the last stored row
    usage: Usage = _NOTHING
    cost_usd: float = 0.0
    calls: list[CallMade] = field(default_factory=list)
    model_calls: int = 0
    clip: int | None = None
    interrupt: Interrupt = field(default_factory=Interrupt)

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
        return self.context.past.is_tainted or any(
            row.source.tainted and row.role.is_spoken for row in self.rows
        )

    def known_texts(self) -> tuple[KnownText, ...]:
        """The texts of the turn's prompt whose addresses it may open, however tainted it is."""
        return known_texts((*self.context.past.rows, *self.rows))

    def called(self, use: ToolUse, output: ToolOutput) -> None:
        """Note a call for the turn's record."""
        made = CallMade(use.id, use.name, use.input, output.is_error, output.is_repetition)
        self.calls.append(made)

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
    """The tool calls of one assistant message: runs what the journal has no output for, and makes the row
    of results. Every call gets its own, in order, in one row.
    """

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
            session = progress.context.request.session
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
            careful=progress.context.choices.mode is Mode.ASK,
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
                progress.context.request.session,
                use.id,
                use.name,
                use.title,
                self._toolbox.kind(use.name, progress.context.request),
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
