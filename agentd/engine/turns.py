"""One turn from its stored request to its stored end: make room, run, retry, fail, put aside."""

from __future__ import annotations

import asyncio

import structlog

from agentd.domain.turn import Context, Origin, Turn
from agentd.engine.interrupt import Interrupted
from agentd.engine.loop import Loop, failure_of
from agentd.engine.progress import CLIP_RESULTS, Progress
from agentd.engine.rooms import Rooms
from agentd.engine.scenes import Scenes, bare
from agentd.engine.submission import INTERNAL, Submission
from agentd.engine.trace import marked, outcome
from agentd.errors import ContextOverflow, ProviderError, ShuttingDown, StorageError
from agentd.ports import SessionStore

log = structlog.get_logger()


class Turns:
    """Runs a turn that has its session's lane."""

    def __init__(self, store: SessionStore, loop: Loop, scenes: Scenes, rooms: Rooms) -> None:
        self._store = store
        self._loop = loop
        self._scenes = scenes
        self._rooms = rooms

    async def run(self, submission: Submission) -> Turn:
        """The turn, ended and stored one way or the other.

        Raises ShuttingDown when it was put aside, StorageError when not even its failure could be
        stored; then it goes on at the next start.
        """
        with marked(submission.request, submission.receipt):
            turn = await self._run(submission)
            log.info("turn_ended", **outcome(turn))
            return turn

    def drain(self) -> None:
        """Begin no model call from now on; a turn that needs one is put aside."""
        self._loop.draining = True

    async def _run(self, submission: Submission) -> Turn:
        progress: Progress | None = None
        try:
            progress = await self._prepare(submission)
            return await self._attempt(submission, progress)
        except Interrupted:
            progress = progress or await self._bare(submission)
            return await self._loop.cancelled(progress)
        except (ShuttingDown, asyncio.CancelledError):
            if progress is not None:
                await self._park(submission.receipt.turn_id)
            raise
        except ProviderError as error:
            log.info("turn_failed", reason=error.reason)
            return await self._loop.failed(
                progress or await self._bare(submission), failure_of(error)
            )
        except Exception:
            # The boundary of a turn: whatever a part did wrong costs this turn, never the daemon.
            log.exception("turn_crashed")
            return await self._loop.failed(progress or await self._bare(submission), INTERNAL)

    async def _park(self, turn_id: int) -> None:
        try:
            await asyncio.shield(self._store.park(turn_id))
        except StorageError as error:
            log.warning("turn_not_parked", reason=error.reason)  # it counts as crashed once

    async def _attempt(self, submission: Submission, progress: Progress) -> Turn:
        """Run, and once or twice again with more room if the prompt turns out too long."""
        try:
            return await self._loop.run(progress)
        except ContextOverflow:
            if progress.can_clip:
                log.info("overflow", cure="clip tool results")
                progress.clip = CLIP_RESULTS
            elif not await self._make_room(submission, progress):
                raise
        try:
            return await self._loop.run(progress)
        except ContextOverflow:
            if progress.clip is None or not await self._make_room(submission, progress):
                raise
        return await self._loop.run(progress)

    async def _prepare(self, submission: Submission) -> Progress:
        request = submission.request
        turn_id = submission.receipt.turn_id
        past = await self._rooms.past(request.session, turn_id)
        scene = await self._scenes.for_turn(request, past)
        if request.origin is Origin.USER and await self._rooms.before_turn(past, scene):
            past = await self._rooms.past(request.session, turn_id)
            scene = await self._scenes.for_turn(request, past)
        if request.context is not Context.LIGHT:
            part = await self._rooms.fitting(past, scene)
            if part is not past:
                scene = await self._scenes.for_turn(request, part)
        return Progress(submission.receipt, scene, submission.sink, interrupt=submission.interrupt)

    async def _make_room(self, submission: Submission, progress: Progress) -> bool:
        if (
            submission.request.context is Context.LIGHT
            or submission.request.origin is not Origin.USER
        ):
            return False
        turn_id = submission.receipt.turn_id
        if not await self._rooms.after_overflow(progress.scene):
            return False
        past = await self._rooms.past(submission.request.session, turn_id)
        progress.scene = await self._scenes.for_turn(submission.request, past)
        return True

    async def _bare(self, submission: Submission) -> Progress:
        """Enough to end a turn that failed before it had a scene."""
        rows = await self._loop.begin(submission.receipt)
        return Progress(submission.receipt, bare(submission.request), submission.sink, rows)
