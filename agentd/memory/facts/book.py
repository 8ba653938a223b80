"""The one owner of the facts: it takes in what is said, keeps page and rows level, takes changes back,
and forgets.

The page is changed first and the rows second. A crash between the two is made good when the page is
next compared with the rows. What somebody else did to the page meanwhile is taken in before anything
is written to it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import structlog

from agentd.core.erasure import MASK
from agentd.core.errors import EditConflict, InvalidRequest, NotFound, WorkspaceError
from agentd.core.fact import (
    NO_SESSION,
    ErasureReport,
    Evidence,
    Fact,
    FactChange,
    FactHit,
    FactOperation,
    FactStatus,
    FactWrite,
    ForgetRequest,
    Learned,
    Op,
    Provenance,
    Refusal,
)
from agentd.core.health import Problem
from agentd.core.ports import Clock, FactIndex, FactStore, Workspace
from agentd.core.redaction import tells_secret
from agentd.core.turn import SessionKey
from agentd.core.workspace import FACTS_PATH
from agentd.memory.facts import changes
from agentd.memory.facts.keeping import Keeping, PendingForgetting, moved, parsed, quietly
from agentd.memory.facts.known import Digests, Known
from agentd.memory.facts.operations import Batch, OperationContext
from agentd.memory.facts.page import Trouble
from agentd.memory.facts.page_entry import MOST_CHARS, clean, clean_triple
from agentd.memory.facts.reconcile import (
    Differences,
    PageChange,
    compare,
    page_facts,
    reconciled,
    settled,
)

log = structlog.get_logger()

_SHOWN = 3


class Notices:
    """What `status` says of the page of facts, and of what was not kept; held between two looks at
    the page.
    """

    def __init__(self) -> None:
        self.unreadable: WorkspaceError | None = None
        self.troubles: tuple[Trouble, ...] = ()
        self.refused: tuple[Trouble, ...] = ()
        self.dead = 0
        self.not_kept: Counter[str] = Counter()  # since the start, by reason

    def count(self, learned: Sequence[Learned]) -> None:
        """Count what was not kept."""
        self.not_kept.update(str(one.reason) for one in learned if one.reason is not None)

    def problems(self, parked: int) -> tuple[Problem, ...]:
        """All of it; `parked` facts miss on the page."""
        found = []
        if self.unreadable is not None:
            error = self.unreadable
            found.append(Problem("facts_page_unreadable", error.message, error.cure))
        if self.troubles:
            found.append(_of_lines("facts_unreadable", "cannot be read", self.troubles))
        if self.refused:
            found.append(_of_lines("facts_refused", "are not taken as facts", self.refused))
        if self.dead:
            text = f"{FACTS_PATH} had {self.dead} forgotten facts again; they were taken out"
            cure = "write what you want kept as a new line without the comment"
            found.append(Problem("facts_revived", text, cure))
        if parked:
            text = (
                f"the lines of {parked} facts are gone from {FACTS_PATH}; nothing was forgotten yet"
            )
            cure = "`agentd facts parked --accept` forgets them, `--restore` writes them again"
            found.append(Problem("facts_parked", text, cure))
        return tuple(found)


def _of_lines(code: str, what: str, lines: Sequence[Trouble]) -> Problem:
    named = "; ".join(str(trouble) for trouble in lines[:_SHOWN])
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return Problem(code, f"{len(lines)} lines of {FACTS_PATH} {what}: {named}{more}", lines[0].cure)


_T = TypeVar("_T")
_TRIES = 5
_SLICE = 100  # operations that are done before others have their turn
_FAR_TOO_LONG = 16 * MOST_CHARS  # not even looked at


class FactBook:
    """The facts. Nothing is read before it is first asked. `key` makes hashes of what is forgotten
    useless to others.
    """

    def __init__(
        self,
        store: FactStore,
        index: FactIndex,
        workspace: Workspace,
        clock: Clock,
        *,
        new_id: Callable[[], str],
        key: bytes,
        forgetting: PendingForgetting,
    ) -> None:
        self._store = store
        self._index = index
        self._clock = clock
        self._new_id = new_id
        self._forgetting = forgetting
        self._changed: list[Callable[[], None]] = []
        self._digests = Digests(key)
        self._keeping = Keeping(store, workspace, self._digests, forgetting)
        self._lock = asyncio.Lock()
        self._known = Known()
        self._digest: str | None = None  # of the page that the rows are level with
        self._parked: tuple[str, ...] = ()
        self._is_erasing = False
        self._notices = Notices()

    def listen(self, changed: Callable[[], None]) -> None:
        """Call this after each change, once it is durable. It must not block."""
        self._changed.append(changed)

    async def learn(
        self,
        operations: Sequence[FactOperation],
        *,
        session: SessionKey = NO_SESSION,
        marks: Mapping[SessionKey, int] | None = None,
    ) -> tuple[Learned, ...]:
        """See Facts."""

        async def work(batch: Batch) -> tuple[Learned, ...]:
            learned = []
            for number, operation in enumerate(operations, start=1):
                learned.append(_done(batch, operation))
                if number % _SLICE == 0:
                    await asyncio.sleep(0)
            return tuple(learned)

        concerned = [i for operation in operations for i in operation.ids]
        texts = [operation.text for operation in operations if operation.text]
        done = await self._change(work, session=session, ids=concerned, texts=texts, marks=marks)
        learned = _numbered(*done)
        self._notices.count(learned)
        return learned

    async def all(self) -> tuple[Fact, ...]:
        """See Facts."""
        await self._refresh()
        return self._known.all()

    async def active(self) -> tuple[Fact, ...]:
        """See Facts."""
        await self._refresh()
        return self._known.active()

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """See Facts."""
        await self._refresh()
        return await self._index.find(query, limit)

    async def nearest(self, text: str, limit: int) -> Sequence[Fact]:
        """See Facts."""
        await self._refresh()
        return await self._index.nearest(text, limit)

    async def history(self, fact_id: str) -> tuple[Fact, ...]:
        """See Facts. Raises NotFound if there is no such fact."""
        await self._refresh()
        if self._known.get(fact_id) is None:
            raise _unknown(fact_id)
        return self._known.chain(fact_id)

    async def changes(self, limit: int) -> tuple[FactChange, ...]:
        """The newest changes first. Raises StorageError."""
        return await self._store.changes(limit)

    async def undo(
        self, change: int | None = None, session: SessionKey | None = None
    ) -> FactChange:
        """Take a change back: the newest that can be, of a session if one is given, or the one of this
        number. Raises NotFound where there is none, InvalidRequest where it cannot be taken back.
        """

        async def attempt() -> FactChange:
            listed = await self._store.changes(changes.LISTED)
            found = changes.chosen(listed, self._known, change, session)
            now = self._clock.now()
            await self._take_back(changes.undone(found, self._known, self._digests, now))
            return replace(found, undone=True)

        return await self._level_first(attempt)

    async def merge(self, keep: str, others: Sequence[str]) -> FactChange:
        """Let one fact stand for others that say the same. Raises NotFound, InvalidRequest."""
        evidence = await self._store.evidence(others)

        async def work(batch: Batch) -> FactChange:
            kept, *rest = (self._holding(i) for i in (keep, *dict.fromkeys(others)))
            if kept in rest or not rest:
                raise InvalidRequest(
                    "a fact cannot be merged with itself", cure="name the others after it"
                )
            said = [one for other in rest for one in evidence.get(other.id, ())]
            return batch.merge(kept, rest, said)

        _, (change,) = await self._change(work, ids=[keep, *others])
        return change

    async def accept(self, fact_ids: Sequence[str]) -> tuple[Learned, ...]:
        """Let proposed facts hold. Raises NotFound."""

        async def work(batch: Batch) -> tuple[Learned, ...]:
            return tuple(batch.accept(self._proposed(fact_id)) for fact_id in fact_ids)

        return _numbered(*await self._change(work))

    async def reject(self, fact_ids: Sequence[str]) -> tuple[Fact, ...]:
        """Take proposed facts away. Raises NotFound."""

        async def attempt() -> tuple[Fact, ...]:
            facts = tuple(self._proposed(fact_id) for fact_id in fact_ids)
            ids = tuple(fact.id for fact in facts)
            tombstones = changes.taken_back(facts, self._digests, self._clock.now())
            write = FactWrite(removed=ids, buried=tombstones)
            await self._take_back(PageChange(write, dropped=frozenset(ids)))
            return facts

        return await self._level_first(attempt)

    async def forget(
        self,
        fact_ids: Sequence[str],
        also: Sequence[int] = (),
        asked: Sequence[ForgetRequest] = (),
    ) -> ErasureReport:
        """See Facts. Raises WorkspaceError, StorageError; what was begun is then finished by `sync`."""

        async def attempt() -> None:
            self._living(fact_ids)
            now = self._clock.now()
            left = tuple(i for i in self._parked if i not in fact_ids)
            batch = Batch(self._known, self._context({}, {}, NO_SESSION))
            batch.forgotten(fact_ids)
            write = replace(batch.write(), parked=left)
            buried = dict.fromkeys(fact_ids, now)
            change = PageChange(write, buried=buried, also=tuple(also), asked=tuple(asked))
            await self._carry_out(change)

        await self._level_first(attempt)
        return await self._erase()

    async def preview(self, fact_ids: Sequence[str]) -> ErasureReport:
        """See Facts."""
        await self._refresh()
        facts = self._living(fact_ids)
        return await self._forgetting.preview(facts, await self._store.evidence(fact_ids))

    async def put_aside(self, successors: Mapping[str, str]) -> tuple[Fact, ...]:
        """Let active facts hold no longer, each for the fact named beside it or for none where that is
        ""; gives them as they are now. What has a successor that no longer holds itself stays.
        """

        async def work(batch: Batch) -> tuple[Fact, ...]:
            return batch.retire(successors)

        return (await self._change(work))[0]

    async def unlink(self, session: SessionKey) -> int:
        """Forget that facts were said in this session; they stay. Gives how many there were."""

        async def work(batch: Batch) -> int:
            said_there = [fact for fact in self._known if fact.origin.session == session]
            for fact in said_there:
                batch.put(replace(fact, origin=Provenance()))
            return len(said_there)

        return (await self._change(work))[0]

    async def sync(self) -> None:
        """Take in what the user did to the page, and erase what he forgot by it."""
        await self._refresh()
        if self._is_erasing:
            await self._erase()

    async def parked(self) -> tuple[Fact, ...]:
        """Facts whose lines are gone from the page, too many at once to be taken for forgotten."""
        await self._refresh()
        return self._missing()

    async def restore_parked(self) -> tuple[Fact, ...]:
        """Write their lines again."""

        async def attempt() -> tuple[Fact, ...]:
            missing = self._missing()
            await self._carry_out(PageChange(FactWrite(parked=()), written=missing))
            return missing

        return await self._level_first(attempt)

    async def accept_parked(self) -> ErasureReport:
        """Forget them, everywhere."""
        return await self.forget([fact.id for fact in await self.parked()])

    async def rebuild(self) -> int:
        """Make the rows anew from the page; gives how many there are. What the page cannot tell stays:
        facts that are parked, and all that miss while lines are unreadable.
        """
        async with self._lock:
            self._known = await asyncio.to_thread(Known, await self._store.facts())
            text, _ = await self._keeping.look()
            known, now = self._known, self._clock.now()
            page = settled(await parsed(text or ""), known, now)
            parked = set(await self._store.parked())
            keeps_all = text is None or bool(page.troubles())

            def work() -> tuple[Fact, ...]:
                return page_facts(page, known, now, lambda f: keeps_all or f.id in parked)

            await self._store.rebuild(await quietly(len(text or ""), work))
            self._tell()
            self._digest = None
            await self._level()
            return len(self._known)

    @property
    def not_kept(self) -> Mapping[str, int]:
        """How much was not kept since the start, by reason."""
        return dict(self._notices.not_kept)

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the page."""
        return self._notices.problems(len(self._parked))

    async def _change(
        self,
        work: Callable[[Batch], Awaitable[_T]],
        *,
        session: SessionKey = NO_SESSION,
        ids: Sequence[str] = (),
        texts: Sequence[str] = (),
        marks: Mapping[SessionKey, int] | None = None,
    ) -> tuple[_T, tuple[FactChange, ...]]:
        """The result of work on a batch, carried out, with the changes as they are stored; all of it or
        nothing. `ids` and `texts` name the facts whose evidence the work asks for.
        """

        async def attempt() -> tuple[_T, tuple[FactChange, ...]]:
            named = [fact.id for text in texts if (fact := self._known.saying(text)) is not None]
            current = [fact.id for i in ids if (fact := self._known.current(i)) is not None]
            said = await self._store.evidence([*ids, *current, *named])
            batch = Batch(self._known, self._context(await self._store.buried(), said, session))
            try:
                result = await work(batch)
                written = batch.facts()
                stored = await self._carry_out(PageChange(batch.write(marks), written))
            except BaseException:
                batch.undo()  # what was stored all the same is read again: `_carry_out` has seen to it
                raise
            return result, stored

        return await self._level_first(attempt)

    def _context(
        self,
        tombstones: Mapping[bytes, datetime],
        said: Mapping[str, Sequence[Evidence]],
        session: SessionKey,
    ) -> OperationContext:
        now = self._clock.now()
        return OperationContext(self._digests, tombstones, said, self._new_id, session, now)

    def _living(self, fact_ids: Sequence[str]) -> tuple[Fact, ...]:
        found = []
        for fact_id in fact_ids:
            fact = self._known.alive(fact_id)
            if fact is None:
                raise _unknown(fact_id)
            found.append(fact)
        return tuple(found)

    def _holding(self, fact_id: str) -> Fact:
        fact = self._known.get(fact_id)
        if fact is None or not fact.is_active:
            raise _unknown(fact_id)
        return fact

    def _proposed(self, fact_id: str) -> Fact:
        fact = self._known.get(fact_id)
        if fact is None or fact.status is not FactStatus.PROPOSED:
            raise NotFound(
                f"no proposed fact has the id {fact_id}",
                cure="`agentd facts pending` lists what waits for your yes",
            )
        return fact

    def _missing(self) -> tuple[Fact, ...]:
        return tuple(fact for i in self._parked if (fact := self._known.alive(i)) is not None)

    async def _level_first(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """The result of a change that is made on what the page says now."""
        async with self._lock:
            for _ in range(_TRIES):
                try:
                    await self._level()
                    return await attempt()
                except EditConflict:
                    log.info("facts_changed_meanwhile")
            raise moved()

    async def _refresh(self) -> None:
        """Be level with the page if it can be read; what was known of it counts otherwise."""
        try:
            is_level = self._digest is not None and (await self._keeping.look())[1] == self._digest
            if is_level and not self._ended():
                return
            async with self._lock:
                for _ in range(_TRIES):
                    try:
                        await self._level()
                        break
                    except EditConflict:
                        log.info("facts_changed_meanwhile")
        except WorkspaceError as error:
            self._notices.unreadable = error

    async def _level(self) -> None:
        """Take in what was done to the page, and let end what has an end by now. Raises EditConflict,
        WorkspaceError, StorageError.
        """
        if self._digest is None:
            await self._read_again()
        text, digest = await self._keeping.look()
        self._notices.unreadable = None
        if digest != self._digest:
            await self._take_in(text or "", digest)
        if ended := self._ended():
            await self._carry_out(PageChange(FactWrite(ended), written=ended))

    async def _read_again(self) -> None:
        """Take over what is stored: at the start, and where the last change has failed half-way, which may
        have been stored nevertheless.
        """
        before = self._known
        known = await asyncio.to_thread(Known, await self._store.facts())
        self._parked = await self._store.parked()
        if lost := [fact.id for fact in before if known.get(fact.id) is None]:
            await self._index.remove(lost)
        await self._index.put(tuple(known))
        self._known = known
        if len(before):
            self._tell()

    def _ended(self) -> tuple[Fact, ...]:
        """Facts that held until a time that has come, as they are from now on."""
        over = self._known.ended(self._clock.now())
        return tuple(replace(fact, status=FactStatus.ENDED) for fact in over)

    async def _take_in(self, text: str, digest: str) -> None:
        now, trusted = self._clock.now(), bool(text.strip())
        page = await self._keeping.settled(text, digest, self._known, now)
        batch = Batch(self._known, self._context(await self._store.buried(), {}, NO_SESSION))
        parked = self._parked

        def work() -> tuple[Differences, PageChange, tuple[Trouble, ...]]:
            found = compare(page, batch.known, parked, now, objection, trusted=trusted)
            return found, *reconciled(found, batch, objection, now)

        self._digest = None  # until it is done nobody is to look at what is known
        found, change, refused = await quietly(len(text), work)
        if change.write.parked == self._parked:
            change = replace(change, write=replace(change.write, parked=None))
        self._digest = digest
        try:
            await self._carry_out(change)
        except BaseException:
            self._digest = None  # then all is read again
            raise
        if found != Differences():
            log.info("facts_page_changed", gone=len(change.buried), dead=len(found.dead))
        self._notices.troubles = page.troubles()
        self._notices.refused = (*refused, *page.passed_over())
        self._notices.dead = len(found.dead)

    async def _carry_out(self, change: PageChange) -> tuple[FactChange, ...]:
        before, self._digest = self._digest, None  # a failure anywhere: read and compare all again
        try:
            digest, stored = await self._keeping.carry_out(change, before or "", self._known)
        except EditConflict:
            self._digest = before
            raise
        self._is_erasing = self._is_erasing or bool(change.buried or change.revived)
        if gone := (*change.buried, *change.write.removed):
            await self._index.remove(gone)
        if change.write.facts:
            await self._index.put(change.write.facts)
        for fact in change.write.facts:
            if (held := self._known.get(fact.id)) is None or held.is_alive:
                self._known.put(fact)
        for fact_id in change.write.removed:
            self._known.remove(fact_id)
        if change.write.parked is not None:
            self._parked = change.write.parked
        self._digest = digest
        if change.is_of_page or change.write.facts:
            self._tell()
        return stored

    async def _take_back(self, change: PageChange) -> None:
        """Carry out what takes facts away as if they had never been there."""
        left = tuple(i for i in self._parked if i not in change.write.removed)
        await self._carry_out(replace(change, write=replace(change.write, parked=left)))

    def _tell(self) -> None:
        for changed in self._changed:
            changed()

    async def _erase(self) -> ErasureReport:
        self._is_erasing = False
        return await self._forgetting.carry_out()


def objection(text: str) -> Refusal | None:
    """Why the text must not become a fact; None if it may. What is left of something that was forgotten
    is EMPTY.
    """
    if text.strip() == MASK:
        return Refusal.EMPTY
    return Refusal.CREDENTIAL if tells_secret(text) else None


def _done(batch: Batch, operation: FactOperation) -> Learned:
    """Do one operation, unless its words cannot be a fact's."""
    if operation.op in (Op.ADD, Op.REPLACE):
        if len(operation.text) > _FAR_TOO_LONG or len(text := clean(operation.text)) > MOST_CHARS:
            return Learned(reason=Refusal.TOO_LONG)
        if why := objection(text) if text else Refusal.EMPTY:
            return Learned(reason=why)
        operation = replace(operation, text=text)
    return batch.do(replace(operation, triple=clean_triple(operation.triple)))


def _numbered(learned: Sequence[Learned], stored: Sequence[FactChange]) -> tuple[Learned, ...]:
    """The results with their changes as they are stored, which are in the same order."""
    changes_made = iter(stored)
    return tuple(
        replace(one, change=next(changes_made)) if one.change is not None else one
        for one in learned
    )


def _unknown(fact_id: str) -> NotFound:
    return NotFound(f"there is no fact {fact_id}", cure="`agentd facts list` shows all of them")
