"""Forgetting everywhere: what was begun is carried on until no place says it any more.

The words to be erased are kept durably until then, and go last. Doing a place twice is harmless, so
after a failure or a crash everything that is left is done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from agentd.domain.erasure import Needles, folded
from agentd.domain.fact import ErasureReport, Fact
from agentd.domain.health import Problem
from agentd.domain.turn import SessionKey
from agentd.errors import AgentdError, Busy, InvalidRequest
from agentd.facts.telltale import COMMON, IsCommon, is_common, joined, needles_of
from agentd.failpoints import hit
from agentd.ports import Clock, Eraser, FactStore

log = structlog.get_logger()

_AGAIN = 5.0  # seconds until what failed is tried again
_PATIENCE = 600.0  # seconds for one place
_LEAST = 3  # letters or digits of a text that may be erased
_SHOWN = 100  # lines of the user's that are named

Said = Callable[[SessionKey, int], Awaitable[str]]
Kept = Callable[[Needles], Awaitable[Sequence[str]]]
Copies = Callable[[], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Place:
    """The Eraser of a place that has the function but not the form."""

    name: str
    work: Callable[[Needles], Awaitable[int]]

    async def erase(self, needles: Needles) -> int:
        """See Eraser."""
        return await self.work(needles)


class Forgetting:
    """Erases what facts said, or any text, in all places, in their order. `run` is its long life, which
    finishes what was left over.

    `said` gives the words of a row of a transcript, "" if it is gone; `kept` the user's own lines that
    still say it; `copies` what may hold it and is out of reach.
    """

    def __init__(
        self,
        store: FactStore,
        places: Sequence[Eraser],
        clock: Clock,
        *,
        said: Said,
        kept: Kept,
        copies: Copies,
        common: IsCommon = is_common,
    ) -> None:
        self._store = store
        self._places = tuple(places)
        self._clock = clock
        self._said = said
        self._kept = kept
        self._copies = copies
        self._common = common
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._left: dict[str, Exception] = {}  # places that failed, and how
        self._is_due = True  # until it is known that nothing is left over

    async def begin(self, facts: Sequence[Fact]) -> None:
        """Remember durably what is to be erased of these facts: their words are about to go. Raises
        StorageError.
        """
        gone = {fact.id for fact in facts}
        others = [fact for fact in await self._store.facts() if fact.id not in gone]
        several = [
            needles_of(fact, await self._sayings(fact), others, self._common) for fact in facts
        ]
        needles = joined(several)
        if needles.phrases or needles.values:
            await self._store.begin_erasure(needles)
            hit("erasure.begun")

    async def carry_out(self) -> ErasureReport:
        """Erase all that was begun. Raises StorageError; a place that fails is done later."""
        async with self._lock:
            begun = await self._store.erasures()
            if not begun:
                return ErasureReport({})
            needles = joined(begun.values())
            counts = await self._visit(self._places, needles)
            return await self._close(begun, needles, counts)

    async def erase_text(self, text: str) -> ErasureReport:
        """Erase every sentence with these words, whatever facts say. Raises InvalidRequest for text
        that says too little, StorageError.
        """
        words = folded(text).split()
        if len("".join(words)) < _LEAST or (len(words) == 1 and words[0] in COMMON):
            raise InvalidRequest(
                f"too much would be erased by {text!r}", cure="name it by more words"
            )
        await self._store.begin_erasure(Needles((text,)))
        hit("erasure.begun")
        return await self.carry_out()

    async def run(self) -> None:
        """Finish what an earlier run or a failure left, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick())
            tasks.create_task(self._work())

    def touch(self, _: SessionKey) -> None:
        """A turn has ended: erasing may have waited for it."""
        if self._left:
            self._wake.set()

    def problems(self) -> tuple[Problem, ...]:
        """Places that fail; that a turn goes on is none."""
        failed = {n: e for n, e in self._left.items() if not isinstance(e, Busy)}
        if not failed:
            return ()
        why = next(iter(failed.values()))
        told = why.message if isinstance(why, AgentdError) else type(why).__name__
        cure = why.cure if isinstance(why, AgentdError) else ""
        text = f"what was forgotten is still to be erased from {', '.join(failed)}: {told}"
        return (Problem("erasure_pending", text, cure or "it is tried again; see `agentd logs`"),)

    async def _sayings(self, fact: Fact) -> list[str]:
        sighted = (await self._store.sightings([fact.id])).get(fact.id, ())
        origins = dict.fromkeys([fact.origin, *(sighting.origin for sighting in sighted)])
        return [await self._said(o.session, o.seq) for o in origins if o.session and o.seq]

    async def _visit(self, places: Sequence[Eraser], needles: Needles) -> dict[str, int]:
        """How much each place had; those that fail are noted."""
        self._is_due = True
        counts: dict[str, int] = {}
        for place in places:
            try:
                async with asyncio.timeout(_PATIENCE):
                    count = await place.erase(needles)
            except Exception as error:
                # The other places must not wait for this one, which is done again later.
                if not isinstance(error, Busy):
                    log.exception("erasing_failed", place=place.name)
                self._left[place.name] = error
            else:
                self._left.pop(place.name, None)
                counts[place.name] = count
            hit("erasure.place_done")
        return {name: count for name, count in counts.items() if count}

    async def _close(
        self, begun: Mapping[int, Needles], needles: Needles, counts: dict[str, int]
    ) -> ErasureReport:
        """End it if no place is left."""
        kept, copies = await _found(self._kept(needles)), await _found(self._copies())
        if not self._left:
            hit("erasure.done")
            for number in begun:
                await self._store.end_erasure(number)
            self._is_due = False
        log.info("erased", places=counts, left=sorted(self._left), kept=len(kept))
        return ErasureReport(counts, kept[:_SHOWN], copies, tuple(self._left))

    async def _retry(self) -> None:
        """What failed first; once it succeeds, the others again: they may have been written to."""
        async with self._lock:
            begun = await self._store.erasures()
            self._is_due = bool(begun)
            if not begun:
                self._left.clear()
                return
            needles = joined(begun.values())
            late = [place for place in self._places if place.name in self._left]
            counts = await self._visit(late, needles)
            if not self._left:
                rest = [place for place in self._places if place not in late]
                counts |= await self._visit(rest, needles)
                await self._close(begun, needles, counts)

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(_AGAIN)
            if self._is_due:
                self._wake.set()

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._retry()
            except AgentdError as error:
                # The words are safe in the store, and the next tick tries again.
                log.warning("erasing_failed", reason=error.reason)
            await self._wake.wait()


async def _found(looking: Awaitable[Sequence[str]]) -> tuple[str, ...]:
    """What was found; nothing when it cannot be looked for, which keeps nobody from forgetting."""
    try:
        return tuple(await looking)
    except (AgentdError, OSError) as error:
        log.warning("erasing_not_surveyed", error=type(error).__name__)
        return ()
