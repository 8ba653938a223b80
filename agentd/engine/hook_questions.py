"""The questions of compaction hooks: silent turns beside a session.

Such a turn runs through the same loop as any other, but over the rows of the question, with only
the tools that the question names, and its events are dropped. It takes no place in the queue,
because the work that waits for its answer may hold the session.
"""

from __future__ import annotations

import asyncio

from agentd.core.compaction import Answer, Question
from agentd.core.errors import ProviderError
from agentd.core.ports import Clock, Inbox
from agentd.core.prompt import Effect
from agentd.core.turn import Failure, Origin, Receipt, SessionKey, Turn, TurnRequest
from agentd.engine.context import PromptGatherer, bare
from agentd.engine.durable import when_space
from agentd.engine.loop import TurnLoop
from agentd.engine.progress import Progress, log_context
from agentd.engine.toolbox import Toolbox
from agentd.engine.watchers import NullSink
from agentd.engine.workers import Stopping

_GIVEN_UP = Failure("given_up", "The question was not answered in time.")


class HookQuestions:
    """Asks the model the questions of compaction hooks."""

    def __init__(
        self,
        store: Inbox,
        loop: TurnLoop,
        builder: PromptGatherer,
        toolbox: Toolbox,
        clock: Clock,
        stopping: Stopping,
    ) -> None:
        self._store = store
        self._loop = loop
        self._builder = builder
        self._toolbox = toolbox
        self._clock = clock
        self._stopping = stopping

    async def ask(self, session: SessionKey, question: Question) -> Answer:
        """Return the model's answer to a question about the session.

        `question.key` identifies the turn: a turn that a crash or an outage cut is resumed, and a
        stored answer is returned without asking again. Raises ProviderError, ShuttingDown.
        """
        request = TurnRequest(
            session, question.text, question.key, origin=Origin.FLUSH, tools=question.tools
        )
        try:
            receipt = await when_space(self._clock, self._store.receive, request)
        except asyncio.CancelledError:
            if not self._stopping.is_set:  # it may be stored, and nobody would ever end it
                await asyncio.shield(self._give_up(request))
            raise
        if receipt.ended is not None:
            return self._answer(receipt.ended)
        with log_context(request, receipt):
            return await self._run(question, request, receipt)

    async def _run(self, question: Question, request: TurnRequest, receipt: Receipt) -> Answer:
        context = await self._builder.for_question(question, request)
        progress = Progress(receipt, context, NullSink())
        try:
            turn = await self._loop.run(progress)
        except ProviderError as error:
            if error.away:  # the next question with this key resumes the turn
                await when_space(self._clock, self._store.park, receipt.turn_id)
            else:
                await self._loop.end_failed(progress, Failure.of(error))
            raise
        except asyncio.CancelledError:
            if self._stopping.is_set:
                raise  # the turn is put aside for the next start
            ended = await asyncio.shield(self._give_up(request, progress))
            if ended is None:
                raise
            turn = ended
        return self._answer(turn)

    async def _give_up(self, request: TurnRequest, progress: Progress | None = None) -> Turn | None:
        """End the turn because nobody waits for it any more: it must not go on after a restart. If
        its end had been stored just then, return the turn, which would otherwise be paid for and
        asked again; else None.
        """
        receipt = await when_space(self._clock, self._store.receive, request)
        if receipt.ended is None:
            running = progress or Progress(receipt, bare(request), NullSink())
            await self._loop.end_failed(running, _GIVEN_UP)
        return receipt.ended

    def _answer(self, turn: Turn) -> Answer:
        if turn.failure is not None:
            raise ProviderError(turn.failure.message, kind="unknown")
        writes = failed = 0
        for made in turn.tool_calls:
            spec = self._toolbox.spec(made.name)
            effect = spec.effect if spec is not None else Effect.EXTERNAL
            writes += effect is Effect.FILE and not made.is_error
            failed += effect is not Effect.READ_ONLY and made.is_error
        return Answer(turn.text, writes, turn.usage, failed)
