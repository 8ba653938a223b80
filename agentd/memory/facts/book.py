"""The book of facts: learns, undoes and forgets. Each change is computed from the known state
(`changes`) and becomes the state when it is stored (`fact_state`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from agentd.core.fact import (
    NO_SESSION,
    ErasureReport,
    Fact,
    FactChange,
    FactHit,
    FactOperation,
    ForgetRequest,
    OperationResult,
)
from agentd.core.health import Problem
from agentd.core.offloading import offload
from agentd.core.ports import Clock, FactIndex, FactStore, Workspace
from agentd.core.turn import SessionKey
from agentd.memory.facts import changes
from agentd.memory.facts.fact_state import FactState
from agentd.memory.facts.keeping import PendingForgetting
from agentd.memory.facts.known import Digests, Known
from agentd.memory.facts.reconcile import PageChange

_OPERATION = 200  # applying one operation takes as long as reading this many characters


class FactBook:
    """The facts. Nothing is read before the first request. `key` is the key of the hashes of
    forgotten facts, which makes them useless to others.
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
        self._forgetting = forgetting
        self._digests = Digests(key)
        self._state = FactState(
            store,
            index,
            workspace,
            clock,
            new_id=new_id,
            digests=self._digests,
            forgetting=forgetting,
        )
        self._not_kept: Counter[str] = Counter()

    def listen(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each change, once it is durable. It must not block."""
        self._state.listen(changed)

    async def learn(
        self,
        operations: Sequence[FactOperation],
        *,
        session: SessionKey = NO_SESSION,
        marks: Mapping[SessionKey, int] | None = None,
    ) -> tuple[OperationResult, ...]:
        """See Facts."""
        ids = [i for operation in operations for i in operation.ids]
        texts = [operation.text for operation in operations if operation.text]

        async def make(known: Known) -> tuple[tuple[OperationResult, ...], PageChange]:
            context = await self._state.context(known, session=session, ids=ids, texts=texts)
            size = _OPERATION * len(operations)
            return await offload(size, lambda: changes.learned(known, operations, context, marks))

        learned = _with_stored_changes(*await self._state.change(make))
        self._not_kept.update(str(one.reason) for one in learned if one.reason is not None)
        return learned

    async def all(self) -> tuple[Fact, ...]:
        """See Facts."""
        return (await self._state.known()).all

    async def active(self) -> tuple[Fact, ...]:
        """See Facts."""
        return (await self._state.known()).active

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """See Facts."""
        await self._state.known()
        return await self._index.find(query, limit)

    async def nearest(self, text: str, limit: int) -> Sequence[Fact]:
        """See Facts."""
        await self._state.known()
        return await self._index.nearest(text, limit)

    async def history(self, fact_id: str) -> tuple[Fact, ...]:
        """See Facts. Raises NotFound if there is no such fact."""
        known = await self._state.known()
        if known.get(fact_id) is None:
            raise changes.unknown(fact_id)
        return known.chain(fact_id)

    async def changes(self, limit: int) -> tuple[FactChange, ...]:
        """Return the newest `limit` changes, newest first. Raises StorageError."""
        return await self._store.changes(limit)

    async def undo(
        self, change: int | None = None, session: SessionKey | None = None
    ) -> FactChange:
        """Undo a change: the one of this number, else the newest that can be undone, of a session
        if given. Raises NotFound if there is none, InvalidRequest if it cannot be undone.
        """

        async def make(known: Known) -> tuple[FactChange, PageChange]:
            listed = await self._store.changes(changes.LISTED)
            found = changes.choose_change(listed, known, change, session)
            undone = changes.undone(found, known, self._digests, self._clock.now())
            return replace(found, undone=True), undone

        return (await self._state.change(make))[0]

    async def merge(
        self, keep: str, others: Sequence[str], session: SessionKey = NO_SESSION
    ) -> FactChange:
        """Let the fact `keep` replace others that say the same; the change is listed under
        `session`. Raises NotFound, InvalidRequest.
        """

        async def make(known: Known) -> tuple[None, PageChange]:
            context = await self._state.context(known, session=session, ids=[keep, *others])
            return changes.merged(known, keep, others, context)

        _, (change,) = await self._state.change(make)
        return change

    async def accept(self, fact_ids: Sequence[str]) -> tuple[OperationResult, ...]:
        """Make proposed facts active. Raises NotFound."""

        async def make(known: Known) -> tuple[tuple[OperationResult, ...], PageChange]:
            return changes.accepted(known, fact_ids, await self._state.context(known))

        return _with_stored_changes(*await self._state.change(make))

    async def reject(self, fact_ids: Sequence[str]) -> tuple[Fact, ...]:
        """Delete proposed facts. Raises NotFound."""

        async def make(known: Known) -> tuple[tuple[Fact, ...], PageChange]:
            return changes.rejected(known, fact_ids, self._digests, self._clock.now())

        return (await self._state.change(make))[0]

    async def forget(
        self,
        fact_ids: Sequence[str],
        also: Sequence[int] = (),
        asked: Sequence[ForgetRequest] = (),
    ) -> ErasureReport:
        """See Facts. Raises WorkspaceError, StorageError; an erasure that was begun is then
        finished by `sync`.
        """

        async def make(known: Known) -> tuple[None, PageChange]:
            context = await self._state.context(known)
            return changes.forgotten(known, fact_ids, also, asked, context)

        await self._state.change(make)
        return await self._state.erase()

    async def preview(self, fact_ids: Sequence[str]) -> ErasureReport:
        """See Facts."""
        facts = changes.living(await self._state.known(), fact_ids)
        return await self._forgetting.preview(facts, await self._store.evidence(fact_ids))

    async def end_facts(self, successors: Mapping[str, str]) -> tuple[Fact, ...]:
        """End active facts: each is superseded by the fact named beside it, or ended if that is "".
        Return them in their new state. A fact whose successor is not active stays.
        """

        async def make(known: Known) -> tuple[tuple[Fact, ...], PageChange]:
            return changes.facts_ended(known, successors, await self._state.context(known))

        return (await self._state.change(make))[0]

    async def unlink(self, session: SessionKey) -> int:
        """Remove from facts that they were said in this session; the facts stay. Return how many
        there were.
        """

        async def make(known: Known) -> tuple[int, PageChange]:
            return changes.unlinked(known, session)

        return (await self._state.change(make))[0]

    async def sync(self) -> None:
        """Take over the user's changes of the page, and erase what they forget."""
        await self._state.known()
        if self._state.is_erasing:
            await self._state.erase()

    async def parked(self) -> tuple[Fact, ...]:
        """Return the facts whose lines are gone from the page, too many at once to be taken for
        forgotten.
        """
        return (await self._state.known()).parked_facts()

    async def restore_parked(self) -> tuple[Fact, ...]:
        """Write the lines of parked facts again."""

        async def make(known: Known) -> tuple[tuple[Fact, ...], PageChange]:
            return changes.restored(known)

        return (await self._state.change(make))[0]

    async def accept_parked(self) -> ErasureReport:
        """Forget the parked facts, everywhere."""
        return await self.forget([fact.id for fact in await self.parked()])

    async def rebuild(self) -> int:
        """Rebuild the rows from the page; return how many there are. Parked facts stay, and all
        missing ones while some lines are unreadable.
        """
        return await self._state.rebuild()

    @property
    def not_kept(self) -> Mapping[str, int]:
        """How many operations were refused since the start, by reason."""
        return dict(self._not_kept)

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with the page."""
        return self._state.problems()


def _with_stored_changes(
    learned: Sequence[OperationResult], stored: Sequence[FactChange]
) -> tuple[OperationResult, ...]:
    """Return the results with their changes as stored; both are in the same order."""
    changes_made = iter(stored)
    return tuple(
        replace(one, change=next(changes_made)) if one.change is not None else one
        for one in learned
    )
