"""The loop of one turn: prompt, stream, tools, and again until the model is done.

Everything the loop knows about its own progress is stored: the rows of the turn in the inbox, what
its tool calls did in the journal. So running it on a turn that a crash cut continues that turn: it
looks at the last row and does what comes next. Rules it keeps:

- the whole assistant message is durable before any tool of it starts;
- every tool call has its result in the very next row, whatever happens in between;
- a cut answer is never stored.

Secrets that `redactor` finds are never stored: rows come back from the store with marks in their
place, and the running turn goes on with the original words.

The loop waits in no queue, compacts nothing and knows no sockets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count

from msgspec.structs import replace

from agentd.core.errors import ProviderError, ShuttingDown
from agentd.core.event import AnswerDelayed, AnswerRetracted, TextChunk, ThoughtChunk
from agentd.core.failpoints import hit
from agentd.core.message import Block, Role, Text, ToolUse
from agentd.core.offloading import offload_rows
from agentd.core.ports import Clock, Inbox, Journal, Provider
from agentd.core.prompt import (
    AnswerCompleted,
    Effect,
    ModelStop,
    Prompt,
    RetryScheduled,
    StreamRestarted,
    TextDelta,
    ThoughtDelta,
    closing,
)
from agentd.core.redaction import Redactor
from agentd.core.transcript import NewRow, Row, RowRole
from agentd.core.turn import Failure, StopReason, Turn
from agentd.engine.budget import Charges
from agentd.engine.calls import Calls
from agentd.engine.context import build_prompt
from agentd.engine.durable import when_space, write_beside
from agentd.engine.progress import Progress
from agentd.engine.queue import Interrupted
from agentd.engine.rendering import FAILURE_TAG
from agentd.engine.toolbox import Toolbox
from agentd.engine.workers import Stopping

CANCELLED_CALL = "The user cancelled the turn before this tool had answered."
LAST_CALL = (
    "This is the last step of this turn: no tool can be called in it. Answer "
    "now with what you have."
)
_NO_WORD = "empty_answer"  # the kind of the error of an answer without text and calls
_PIECE = 64 * 1024  # characters of an answer that are shown at once


class TurnLoop:
    """Runs turns over a given context."""

    def __init__(
        self,
        store: Inbox,
        journal: Journal,
        charges: Charges,
        toolbox: Toolbox,
        provider: Provider,
        clock: Clock,
        stopping: Stopping,
        *,
        max_model_calls: int,
        redactor: Redactor | None = None,
    ) -> None:
        self._store = store
        self._charges = charges
        self._toolbox = toolbox
        self._calls = Calls(toolbox, journal, clock)
        self._provider = provider
        self._clock = clock
        self._stopping = stopping
        self._max_model_calls = max_model_calls
        self._redactor = redactor or Redactor()

    async def run(self, progress: Progress) -> Turn:
        """Run the turn to its end and store it.

        Raises ProviderError and ContextOverflow with nothing half-stored (the caller decides, and
        may call again), Interrupted when the user wants to stop, ShuttingDown when a new model call
        would be needed while the daemon is stopping.
        """
        if not progress.rows:
            await self.begin(progress)
            hit("turn.begun")
            self._restore_words(progress)
            if len(progress.rows) > 1 and progress.rows[-1].role is RowRole.ASSISTANT:
                await self._calls.settle(progress.receipt.turn_id)
        while True:
            if progress.interrupt.requested:
                raise Interrupted
            if uses := progress.open_calls():
                await self._answer_calls(progress, uses)
            elif progress.model_calls >= self._max_model_calls:
                return await self._end(progress, StopReason.MAX_TURN_REQUESTS, ())
            else:
                turn = await self._ask(progress)
                if turn is not None:
                    return turn

    async def begin(self, progress: Progress) -> None:
        """Begin the turn, or begin it again: count an attempt, and load the turn's rows so far,
        with the usage and the tool calls that they hold.
        """
        turn_id = progress.receipt.turn_id
        progress.rows.extend(await when_space(self._clock, self._store.begin, turn_id))
        if len(progress.rows) > 1:  # a crash, a stop or an outage cut the turn
            outputs = await self._calls.outputs(turn_id)
            progress.recount(lambda used: self._charges.price(self._provider.model, used), outputs)

    async def end_cancelled(self, progress: Progress) -> Turn:
        """Store a turn that the user cancelled: shown text is kept, open calls are answered."""
        rows = await self._closed(progress, CANCELLED_CALL)
        if (shown := "".join(progress.shown)).strip():
            blocks, provider = (Text(shown),), progress.context.provider
            rows.append(NewRow(RowRole.ASSISTANT, blocks, provider, source=progress.source))
        rows.append(NewRow(RowRole.NOTICE, (Text("Cancelled by the user."),), tag="cancelled"))
        return await self._end(progress, StopReason.CANCELLED, rows)

    async def end_failed(self, progress: Progress, failure: Failure) -> Turn:
        """Store a turn that failed: its rows stay, open calls are answered, a notice says why."""
        rows = await self._closed(progress, failure.message)
        words = f"This turn failed: {failure.message} {failure.cure}".strip()
        rows.append(NewRow(RowRole.NOTICE, (Text(words),), tag=FAILURE_TAG))
        return await self._end(progress, None, rows, failure)

    def _restore_words(self, progress: Progress) -> None:
        """Let the running turn read the user's message as it was sent, if its stored form has
        masked secrets.
        """
        request, first = progress.context.request, progress.rows[0]
        is_other = first.role is RowRole.USER and first.blocks != request.blocks
        if is_other and self._redactor.holds(request.text):
            progress.rows[0] = replace(first, blocks=request.blocks)

    async def _ask(self, progress: Progress) -> Turn | None:
        if self._stopping.is_set:
            raise ShuttingDown
        progress.model_calls += 1
        try:
            answer = await self._stream(progress)
        except ProviderError as error:
            if error.kind == _NO_WORD and self._has_acted(progress):
                return await self._end(progress, StopReason.END_TURN, (), is_wordless=True)
            raise
        hit("turn.answered")
        progress.usage += answer.usage
        blocks = _storable(answer, (*progress.context.past.rows, *progress.rows))
        row = NewRow(
            RowRole.ASSISTANT, blocks, answer.provider, answer.usage, source=progress.source
        )
        request = progress.context.request
        progress.cost_usd += self._charges.cost(answer)
        charged = partial(self._charges.charge, request.session, request.origin, answer)
        has_calls = any(isinstance(b, ToolUse) for b in blocks)
        if not has_calls and answer.stop is not ModelStop.PAUSE:
            stop = _STOPS.get(answer.stop, StopReason.END_TURN)
            return await write_beside(self._end(progress, stop, (row,)), charged)
        stored = when_space(self._clock, self._store.append, progress.receipt.turn_id, row)
        progress.rows.append(replace(await write_beside(stored, charged), blocks=row.blocks))
        progress.shown.clear()
        hit("turn.assistant_stored")
        return None

    def _has_acted(self, progress: Progress) -> bool:
        """Whether a tool of the turn has done more than look something up. A model may end its turn
        with that, without a word.
        """
        done = {made.name for made in progress.calls if not made.is_error}
        specs = [self._toolbox.spec(name) for name in done]
        return any(spec and spec.effect is not Effect.READ_ONLY for spec in specs)

    async def _stream(self, progress: Progress) -> AnswerCompleted:
        rows = tuple(progress.rows)
        build = partial(build_prompt, progress.context, rows, clip_results=progress.clip)
        prompt = await offload_rows(rows, build)
        if progress.model_calls >= self._max_model_calls and progress.model_calls > 1:
            prompt = _last(prompt)
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
                        case StreamRestarted(reason):
                            self._retract(progress, reason)
                        case RetryScheduled(reason, text, seconds):
                            delayed = AnswerDelayed(progress.session, reason, text, seconds)
                            progress.sink.emit(delayed)
                        case AnswerCompleted():
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
            progress.sink.emit(AnswerRetracted(progress.session, reason))
            progress.shown.clear()

    async def _answer_calls(self, progress: Progress, uses: Sequence[ToolUse]) -> None:
        row = await self._calls.run(progress, uses)
        turn_id = progress.receipt.turn_id
        stored = await when_space(self._clock, self._store.append, turn_id, row)
        progress.rows.append(replace(stored, blocks=row.blocks))
        hit("turn.results_stored")

    async def _closed(self, progress: Progress, why: str) -> list[NewRow]:
        """Return the row of results that closes the turn's open calls; an empty list if it has
        none.
        """
        uses = progress.open_calls()
        return [await self._calls.close(progress, uses, why)] if uses else []

    async def _end(
        self,
        progress: Progress,
        stop: StopReason | None,
        rows: Sequence[NewRow],
        failure: Failure | None = None,
        *,
        is_wordless: bool = False,
    ) -> Turn:
        receipt = progress.receipt
        ended: list[Row | NewRow] = [*progress.rows, *rows]
        turn = Turn(
            session=receipt.session,
            message_id=receipt.message_id,
            text="" if failure or is_wordless else _last_words(ended),
            stop_reason=stop,
            usage=progress.usage,
            cost_usd=progress.cost_usd,
            tool_calls=tuple(progress.calls),
            failure=failure,
            context_tokens=_context_tokens(ended),
            tainted=progress.is_tainted or any(row.source.tainted for row in rows),
        )
        if progress.context.request.is_silent:  # callers store the reply, which nobody was shown
            turn = replace(turn, text=self._redactor.kept(turn.text).text)
        stored = await when_space(self._clock, self._store.finish, receipt.turn_id, turn, rows)
        progress.rows.extend(stored)
        hit("turn.finished")
        return turn


async def _show(progress: Progress, said: TextDelta | ThoughtDelta) -> None:
    """Emit the words in pieces, and wait after each piece until the audience has room for more."""
    session = progress.session
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


def _last(prompt: Prompt) -> Prompt:
    """Return the prompt of the last call that a turn may make: tools can no longer be called, so
    that the turn ends with an answer to what they returned.
    """
    *before, newest = prompt.messages
    if newest.role is Role.USER:  # else the service paused its answer, and continues it unchanged
        newest = replace(newest, blocks=(*newest.blocks, Text(LAST_CALL)))
    return replace(prompt, messages=(*before, newest), may_call=False)


def _storable(answer: AnswerCompleted, earlier: Sequence[Row]) -> tuple[Block, ...]:
    """Return the blocks of the answer that may be stored. Tool calls are stored only when the model
    stopped in order to call them: otherwise a call may be cut.

    Some services number the calls of each answer from the same start. The journal and the API know
    a call by its id alone, so an id that is used already gets a suffix.
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
    """Return what the model said last; an answer that the model paused in is joined from several
    rows.
    """
    said: list[str] = []
    for row in reversed(rows):
        if row.role is RowRole.ASSISTANT:
            said.append("".join(b.text for b in row.blocks if isinstance(b, Text)))
        elif said:
            break
    return "".join(reversed(said))
