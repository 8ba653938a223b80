"""The single holder of the known facts: keeps them level with page and rows, and changes them in
one step.

A change builds the next state beside the present one. It changes the page first, then the rows,
then the index, and then replaces the present state. Until then readers see the present state
unchanged, and nothing has to be rolled back if a step fails: the stored state is then read again. A
crash between page and rows is repaired when the page is next compared with the rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog
from msgspec import Struct

from agentd.core.errors import EditConflict, WorkspaceError
from agentd.core.fact import NO_SESSION, ErasureReport, Fact, FactChange
from agentd.core.health import Problem
from agentd.core.offloading import offload
from agentd.core.ports import Clock, FactIndex, FactStore, Workspace
from agentd.core.turn import SessionKey
from agentd.core.workspace import FACTS_PATH
from agentd.memory.facts import changes
from agentd.memory.facts.draft import Draft, OperationContext
from agentd.memory.facts.keeping import (
    FactWriter,
    PendingForgetting,
    changing_error,
    parse_page,
)
from agentd.memory.facts.known import Digests, Known, Tombstones
from agentd.memory.facts.page import UnreadableLine
from agentd.memory.facts.reconcile import (
    Differences,
    PageChange,
    compare,
    page_facts,
    reconcile,
    settle_copies,
)

log = structlog.get_logger()

_T = TypeVar("_T")
_TRIES = 5
_SHOWN = 3


class PageNotices(Struct, frozen=True):
    """What was wrong with the page when it was last read."""

    troubles: tuple[UnreadableLine, ...] = ()
    refused: tuple[UnreadableLine, ...] = ()
    dead: int = 0

    def problems(self) -> tuple[Problem, ...]:
        """Return the notices as problems for `status`."""
        found = []
        if self.troubles:
            found.append(_of_lines("facts_unreadable", "cannot be read", self.troubles))
        if self.refused:
            found.append(_of_lines("facts_refused", "are not taken as facts", self.refused))
        if self.dead:
            text = f"{FACTS_PATH} had {self.dead} forgotten facts again; they were taken out"
            cure = "write what you want kept as a new line without the comment"
            found.append(Problem("facts_revived", text, cure))
        return tuple(found)


class FactState:
    """The known facts, as page and rows give them. Nothing is read before the first request."""

    def __init__(
        self,
        store: FactStore,
        index: FactIndex,
        workspace: Workspace,
        clock: Clock,
        *,
        new_id: Callable[[], str],
        digests: Digests,
        forgetting: PendingForgetting,
    ) -> None:
        self._store = store
        self._index = index
        self._clock = clock
        self._new_id = new_id
        self._digests = digests
        self._forgetting = forgetting
        self._keeping = FactWriter(store, workspace, digests, forgetting)
        self._changed: list[Callable[[], None]] = []
        self._lock = asyncio.Lock()  # held while the next state is made
        self._known = Known()
        self._digest: str | None = None  # of the page as last read; None: read all again
        self._is_erasing = False
        self._unreadable: WorkspaceError | None = None
        self._notices = PageNotices()

    def listen(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each change, once it is durable. It must not block."""
        self._changed.append(changed)

    async def known(self) -> Known:
        """Return the known facts, level with the page if that can be read. During a change this is
        the state before or after it. Raises StorageError.
        """
        try:
            is_level = self._digest is not None and (await self._keeping.look())[1] == self._digest
            if not is_level or self._known.ended(self._clock.now()):
                async with self._lock:
                    await self._level_in_tries()
        except WorkspaceError as error:
            self._unreadable = error
        return self._known

    async def change(
        self, make: Callable[[Known], Awaitable[tuple[_T, PageChange]]]
    ) -> tuple[_T, tuple[FactChange, ...]]:
        """Make a change from the present state and carry it out, all or nothing; return its result
        and the changes as stored. If the page changes meanwhile, the change is made again. Raises
        WorkspaceError, StorageError, and what `make` raises.
        """
        async with self._lock:
            for _ in range(_TRIES):
                try:
                    await self._level()
                    result, change = await make(self._known)
                    return result, await self._commit(change, self._digest or "")
                except EditConflict:
                    log.info("facts_changed_meanwhile")
            raise changing_error()

    async def context(
        self,
        known: Known,
        *,
        session: SessionKey = NO_SESSION,
        ids: Sequence[str] = (),
        texts: Sequence[str] = (),
    ) -> OperationContext:
        """Return what a change needs besides the facts. `ids` and `texts` name the facts whose
        evidence it needs.
        """
        named = [fact.id for text in texts if (fact := known.saying(text)) is not None]
        current = [fact.id for i in ids if (fact := known.current(i)) is not None]
        wanted = (*ids, *current, *named)
        said = await self._store.evidence(wanted) if wanted else {}
        tombstones = Tombstones(self._digests, await self._store.tombstones())
        return OperationContext(tombstones, self._new_id, self._clock.now(), said, session)

    async def rebuild(self) -> int:
        """Rebuild the rows from the page; return how many there are. Facts that the page cannot
        account for stay: parked ones, and all missing ones while some lines are unreadable.
        """
        async with self._lock:
            known = await asyncio.to_thread(Known.of, await self._store.facts())
            text, _ = await self._keeping.look()
            now = self._clock.now()
            page = settle_copies(await parse_page(text or ""), known, now)
            parked = set(await self._store.parked_ids())
            keeps_all = text is None or bool(page.troubles())

            def work() -> tuple[Fact, ...]:
                return page_facts(page, known, now, lambda f: keeps_all or f.id in parked)

            facts = await offload(len(text or ""), work)
            self._digest = None
            await self._store.rebuild(facts)
            self._tell()
            await self._level()
            return len(self._known)

    async def erase(self) -> ErasureReport:
        """Carry out the erasures of what was forgotten; return the report."""
        self._is_erasing = False
        return await self._forgetting.carry_out()

    @property
    def is_erasing(self) -> bool:
        """Whether something was forgotten since the last `erase`."""
        return self._is_erasing

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with the page."""
        found = list(self._notices.problems())
        if (error := self._unreadable) is not None:
            found.insert(0, Problem("facts_page_unreadable", error.message, error.cure))
        if parked := len(self._known.parked):
            lines = "the line of one fact is"
            if parked > 1:
                lines = f"the lines of {parked} facts are"
            text = f"{lines} gone from {FACTS_PATH}; nothing was forgotten yet"
            cure = "`agentd facts parked --accept` forgets them, `--restore` writes them again"
            found.append(Problem("facts_parked", text, cure))
        return tuple(found)

    async def _level_in_tries(self) -> None:
        for _ in range(_TRIES):
            try:
                return await self._level()
            except EditConflict:
                log.info("facts_changed_meanwhile")
        return None

    async def _level(self) -> None:
        """Take over changes of the page, and end facts whose end has passed. Raises EditConflict,
        WorkspaceError, StorageError.
        """
        if self._digest is None:
            await self._read_again()
        text, digest = await self._keeping.look()
        self._unreadable = None
        if digest != self._digest:
            await self._take_in(text or "", digest)
        if change := changes.expired(self._known, self._clock.now()):
            await self._commit(change, self._digest or "")

    async def _read_again(self) -> None:
        """Read the stored facts: at the start, and after a change that failed half-way and may have
        been stored nevertheless.
        """
        before = self._known
        facts, parked = await self._store.facts(), await self._store.parked_ids()
        known = await asyncio.to_thread(Known.of, facts, parked)
        if lost := [fact.id for fact in before if known.get(fact.id) is None]:
            await self._index.remove(lost)
        await self._index.put(known.all)
        self._known = known
        if len(before):
            self._tell()

    async def _take_in(self, text: str, digest: str) -> None:
        known = self._known
        context = await self.context(known)
        page = await self._keeping.settled(text, digest, known, context.now)
        objection, trusted = changes.objection, bool(text.strip())

        def work() -> tuple[Differences, PageChange, tuple[UnreadableLine, ...]]:
            found = compare(page, known, context.now, objection, trusted=trusted)
            return found, *reconcile(found, Draft(known, context), objection)

        found, change, refused = await offload(len(text), work)
        await self._commit(change, digest)
        if found != Differences():
            log.info("facts_page_changed", gone=len(change.buried), dead=len(found.dead))
        lines = (*refused, *page.passed_over())
        self._notices = PageNotices(page.troubles(), lines, len(found.dead))

    async def _commit(self, change: PageChange, digest: str) -> tuple[FactChange, ...]:
        """Store a change made from the present state and the page with this digest, then replace
        the state. Raises EditConflict, with nothing done, if the page has another digest.
        """
        try:
            after, stored = await self._keeping.carry_out(change, digest, self._known)
            self._is_erasing = self._is_erasing or bool(change.buried or change.revived)
            if gone := (*change.buried, *change.write.removed):
                await self._index.remove(gone)
            if change.write.facts:
                await self._index.put(change.write.facts)
        except EditConflict:
            raise
        except BaseException:
            self._digest = None  # to read what was stored of it
            raise
        self._known, self._digest = change.after(self._known), after
        if change.is_of_page or change.write.facts:
            self._tell()
        return stored

    def _tell(self) -> None:
        for changed in self._changed:
            changed()


def _of_lines(code: str, what: str, lines: Sequence[UnreadableLine]) -> Problem:
    named = "; ".join(str(trouble) for trouble in lines[:_SHOWN])
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return Problem(code, f"{len(lines)} lines of {FACTS_PATH} {what}: {named}{more}", lines[0].cure)
