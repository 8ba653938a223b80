"""The one owner of the facts: it takes them in, keeps their page and their rows level, forgets them.

The page is changed first and the rows second. A crash between the two is made good when the page is
next compared with the rows. What somebody else did to the page meanwhile is taken in before anything
is written to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import structlog

from agentd.domain.fact import (
    ErasureReport,
    Fact,
    FactHit,
    FactSource,
    Learned,
    Refusal,
    Statement,
)
from agentd.domain.health import Problem
from agentd.domain.turn import SessionKey
from agentd.errors import EditConflict, NotFound, WorkspaceError
from agentd.facts.annotation import MOST_CHARS, clean, clean_triple
from agentd.facts.changes import Batch, Change, without_session
from agentd.facts.judge import judge
from agentd.facts.keeping import Forgetting, Keeping, moved, parsed, quietly
from agentd.facts.known import Digests, Known
from agentd.facts.levelling import levelled
from agentd.facts.nearby import Nearby
from agentd.facts.notices import Notices
from agentd.facts.screen import Screen, objection
from agentd.facts.sync import Differences, compare, page_facts
from agentd.ports import Clock, FactIndex, FactStore, Workspace
from agentd.statements.claims import triple_of

log = structlog.get_logger()

_T = TypeVar("_T")
_TRIES = 5
_FAR_TOO_LONG = 16 * MOST_CHARS  # not even looked at

Decide = Callable[[Statement, Sequence[Fact]], Awaitable[Sequence[str]]]


class FactBook:
    """The facts. Nothing is read before it is first asked.

    `screen` says why a text must not become a fact, or None. `decide` says which of some near facts a
    statement replaces, where no rule can tell. `key` makes hashes of what is forgotten useless to
    others.
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
        forgetting: Forgetting,
        screen: Screen = objection,
        decide: Decide | None = None,
    ) -> None:
        self._store = store
        self._index = index
        self._clock = clock
        self._new_id = new_id
        self._screen = screen
        self._forgetting = forgetting
        self._decide = decide
        self._changed: Callable[[], None] = lambda: None
        self._digests = Digests(key)
        self._keeping = Keeping(store, workspace, self._digests, forgetting)
        self._lock = asyncio.Lock()
        self._known = Known()
        self._digest: str | None = None  # of the page that the rows are level with
        self._parked: tuple[str, ...] = ()
        self._is_erasing = False
        self._notices = Notices()
        self._nearby = Nearby(index, clock)

    def listen(self, changed: Callable[[], None]) -> None:
        """Call this after each change, once it is durable. It must not block."""
        self._changed = changed

    async def learn(
        self,
        statements: Sequence[Statement],
        *,
        marks: Mapping[SessionKey, int] | None = None,
        force: bool = False,
    ) -> tuple[Learned, ...]:
        """See Facts. With `force` the user's own words may look suspicious. Raises WorkspaceError,
        StorageError; then nothing was learnt.
        """

        async def attempt() -> tuple[Learned, ...]:
            graves = await self._store.buried()
            batch = Batch(self._known, self._digests, graves, self._new_id)
            try:
                learned = [await self._take(batch, said, force=force) for said in statements]
                change = Change(
                    batch.facts,
                    batch.facts,
                    sightings=tuple(batch.sightings),
                    marks=marks or {},
                    unburied=tuple(batch.unburied),
                )
                await self._carry_out(change)
            except BaseException:
                await self._take_back(batch)
                raise
            return tuple(learned)

        return await self._level_first(attempt)

    async def all(self) -> tuple[Fact, ...]:
        """See Facts."""
        await self._refresh()
        return tuple(self._known)

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """See Facts."""
        await self._refresh()
        return await self._index.find(query, limit)

    async def history(self, fact_id: str) -> tuple[Fact, ...]:
        """See Facts."""
        await self._refresh()
        if self._known.get(fact_id) is None:
            raise _unknown(fact_id)
        return self._known.chain(fact_id)

    async def forget(self, fact_ids: Sequence[str]) -> ErasureReport:
        """See Facts. Raises WorkspaceError, StorageError; what was begun is then finished by `sync`."""

        async def attempt() -> None:
            for fact_id in fact_ids:
                if self._known.alive(fact_id) is None:
                    raise _unknown(fact_id)
            now = self._clock.now()
            left = tuple(i for i in self._parked if i not in fact_ids)
            await self._carry_out(Change(buried=dict.fromkeys(fact_ids, now), parked=left))

        await self._level_first(attempt)
        return await self._erase()

    async def put_aside(self, successors: Mapping[str, str]) -> tuple[Fact, ...]:
        """Let active facts hold no longer, each for the fact named beside it or for none where that is
        ""; gives them as they are now. What has a successor that no longer holds itself stays.
        """

        async def attempt() -> tuple[Fact, ...]:
            batch = Batch(self._known, self._digests, frozenset(), self._new_id)
            batch.retire(successors, self._clock.now())
            return await self._put(batch)

        return await self._level_first(attempt)

    async def unlink(self, session: SessionKey) -> int:
        """Forget that facts were said in this session; they stay. Gives how many there were."""

        async def attempt() -> int:
            batch = Batch(self._known, self._digests, frozenset(), self._new_id)
            for fact in without_session(tuple(self._known), session):
                batch.put(fact)
            return len(await self._put(batch))

        return await self._level_first(attempt)

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
            await self._carry_out(Change(written=missing, parked=()))
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
            page = await parsed(text or "")
            parked = set(await self._store.parked())
            keeps_all = text is None or bool(page.troubles())
            now = self._clock.now()
            facts = page_facts(page, self._known, now, lambda f: keeps_all or f.id in parked)
            await self._store.rebuild(facts)
            self._changed()
            self._digest = None
            await self._level()
            return len(self._known)

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the page, and that facts are not compared."""
        return (*self._nearby.problems(), *self._notices.problems(len(self._parked)))

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
            if self._digest is not None and (await self._keeping.look())[1] == self._digest:
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
        """Take in what was done to the page. Raises EditConflict, WorkspaceError, StorageError."""
        if self._digest is None:
            self._known = await asyncio.to_thread(Known, await self._store.facts())
            self._parked = await self._store.parked()
            await self._index.put(tuple(self._known))
        text, digest = await self._keeping.look()
        self._notices.unreadable = None
        if digest == self._digest:
            return
        page = await parsed(text or "")
        now, trusted = self._clock.now(), bool((text or "").strip())
        compared = partial(
            compare, page, self._known, self._parked, now, self._screen, trusted=trusted
        )
        found = await quietly(text or "", compared)
        graves = await self._store.buried()
        batch = Batch(self._known, self._digests, graves, self._new_id)
        change, refused = levelled(found, batch, self._screen, now)
        if change.parked == self._parked:
            change = replace(change, parked=None)
        self._digest = digest
        try:
            await self._carry_out(change)
        except BaseException:
            self._digest = None  # then all is read again
            raise
        if found != Differences():
            log.info("facts_page_changed", gone=len(change.buried), dead=len(found.dead))
        self._notices.troubles, self._notices.refused = page.troubles(), refused
        self._notices.dead = len(found.dead)

    async def _take(self, batch: Batch, said: Statement, *, force: bool) -> Learned:
        """Judge one statement and do what was judged, in memory and for those who look for facts."""
        if len(said.text) > _FAR_TOO_LONG or len(text := clean(said.text)) > MOST_CHARS:
            return Learned(None, reason=Refusal.TOO_LONG)
        if not text:
            return Learned(None, reason=Refusal.EMPTY)
        said = replace(said, text=text, triple=clean_triple(said.triple) or triple_of(text))
        insists = force and said.source is not FactSource.EXTRACTED
        why = self._screen(text)
        if why and not (why is Refusal.SUSPICIOUS and insists):
            return Learned(None, reason=why)
        near, limits = await self._nearby.find(text, self._known.get)
        judged = judge(said, batch.related(said), near, batch.is_buried, limits)
        if judged.unsure and self._decide is not None:
            rivals = [fact for i in judged.unsure if (fact := self._known.alive(i)) is not None]
            more = await self._decide(said, rivals)
            judged = replace(judged, supersedes=(*judged.supersedes, *more))
        learned = batch.take(said, judged, self._clock.now())
        if learned.is_new and learned.fact is not None:
            await self._index.put((learned.fact, *learned.superseded))
        return learned

    async def _put(self, batch: Batch) -> tuple[Fact, ...]:
        """Carry a batch out as it is; gives its facts."""
        facts = batch.facts
        try:
            await self._carry_out(Change(facts, facts))
        except BaseException:
            await self._take_back(batch)
            raise
        return facts

    async def _carry_out(self, change: Change) -> None:
        before, self._digest = self._digest, None  # a failure half-way: compare all again
        try:
            self._digest = await self._keeping.carry_out(change, before or "", self._known)
        except EditConflict:
            self._digest = before
            raise
        self._changed()
        self._is_erasing = self._is_erasing or bool(change.buried or change.revived)
        if change.buried:
            await self._index.remove(tuple(change.buried))
        if change.parked is not None:
            self._parked = change.parked
        if change.saved:
            await self._index.put(change.saved)

    async def _take_back(self, batch: Batch) -> None:
        """Nothing was learnt."""
        before = batch.originals()
        await self._index.remove(batch.undo())
        await self._index.put(before)

    async def _erase(self) -> ErasureReport:
        self._is_erasing = False
        return await self._forgetting.carry_out()


def _unknown(fact_id: str) -> NotFound:
    return NotFound(f"there is no fact {fact_id}", cure="`agentd facts list` shows all of them")
