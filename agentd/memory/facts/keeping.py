"""Stores a change: first on the page, then in the rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from agentd.core.errors import EditConflict, FileMissing
from agentd.core.fact import (
    ErasureReport,
    Evidence,
    Fact,
    FactChange,
    FactWrite,
    ForgetRequest,
)
from agentd.core.failpoints import hit
from agentd.core.offloading import offload
from agentd.core.ports import FactStore, Workspace
from agentd.core.tool import FileAction
from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import FACTS_PATH, Author, Reader
from agentd.memory.facts.known import Digests, Known
from agentd.memory.facts.page import Page, parse
from agentd.memory.facts.reconcile import PageChange, settle_copies

_READER = Reader(SessionKey("facts"), SessionKind.OWNER)
_AUTHOR = Author("facts")
_LINE = 200  # approximate length of a line
_EDITED = 2  # copying an unchanged line takes as long as reading this many characters


class PendingForgetting(Protocol):
    """Erases the words of facts everywhere outside page and rows."""

    async def begin(
        self,
        facts: Sequence[Fact],
        evidence: Mapping[str, Sequence[Evidence]],
        also: Sequence[int] = (),
        asked: Sequence[ForgetRequest] = (),
    ) -> None:
        """Record durably what is to be erased, before its words are deleted. Repeating it is
        harmless. `also` are numbers of mentions in the preview, `asked` the requests to forget.
        """

    async def carry_out(self) -> ErasureReport:
        """Carry out all erasures that were begun."""

    async def preview(
        self, facts: Sequence[Fact], evidence: Mapping[str, Sequence[Evidence]]
    ) -> ErasureReport:
        """Return what would be erased, without doing it."""


class FactWriter:
    """Writes changes to the page in the workspace and to the rows in the store."""

    def __init__(
        self,
        store: FactStore,
        workspace: Workspace,
        digests: Digests,
        forgetting: PendingForgetting,
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._digests = digests
        self._forgetting = forgetting
        self._page: tuple[str, Page] = ("", Page())  # the page as last read, with its digest

    async def look(self) -> tuple[str | None, str]:
        """Return the page's text (None if there is none) and its digest. Invalid UTF-8 is decoded
        with `surrogateescape`. Raises FileUnreadable.
        """
        try:
            view = await self._workspace.read_damaged(FACTS_PATH, _READER)
        except FileMissing:
            return None, ""
        return view.text, view.digest

    async def carry_out(
        self, change: PageChange, digest: str, known: Known
    ) -> tuple[str, tuple[FactChange, ...]]:
        """Store the change; return the page's new digest and the changes as stored. `known` is the
        state before. Raises EditConflict, with nothing done, if the page has another digest.
        """
        if not change.is_of_page:
            return digest, await self._save(change, known)
        if change.revived:
            await self._begin(change.revived)
        path = self._workspace.canonical(FACTS_PATH)
        async with self._workspace.lock(path):
            text, now = await self.look()
            if now != digest:
                raise changing_error()
            page = await self.page(text or "", digest)
            size = _EDITED * len(page.lines) + _LINE * len(change.written)
            edited = await offload(size, lambda: _edit(page, change))
            after = edited.render()
            if after == (text or ""):
                return digest, await self._save(change, known)
            intent = await self._workspace.plan(path, FileAction.WRITE, _bytes(after))
            if intent.before != digest:
                raise changing_error()
            if removed := change.write.removed:
                # Until the rows are deleted, their missing lines must not be taken for forgotten.
                doubted = (*(change.write.parked or ()), *removed)
                await self._store.write(FactWrite(parked=doubted))
            await self._workspace.apply(intent, _READER, _AUTHOR)
            hit("facts.written")
            self._page = intent.after, edited
            return intent.after, await self._save(change, known)

    async def page(self, text: str, digest: str) -> Page:
        """Return the page of this text; the page read or written last is cached."""
        if self._page[0] != digest:
            self._page = digest, await parse_page(text)
        return self._page[1]

    async def settled(self, text: str, digest: str, known: Known, now: datetime) -> Page:
        """Return the page with duplicate lines resolved by what is known."""
        page = await self.page(text, digest)
        page = await offload(len(text), lambda: settle_copies(page, known, now))
        self._page = digest, page
        return page

    async def _save(self, change: PageChange, known: Known) -> tuple[FactChange, ...]:
        gone = [fact for i in change.buried if (fact := known.alive(i)) is not None]
        if gone:
            await self._begin(gone, change.also, change.asked)
        changes: tuple[FactChange, ...] = ()
        if change.write != FactWrite():
            changes = await self._store.write(change.write)
        by_time: dict[datetime, list[Fact]] = defaultdict(list)
        for fact in gone:
            by_time[change.buried[fact.id]].append(fact)
        for at, facts in by_time.items():
            hashes = [self._digests.of(fact.text) for fact in facts]
            await self._store.bury([fact.id for fact in facts], hashes, at)
        return changes

    async def _begin(
        self,
        facts: Sequence[Fact],
        also: Sequence[int] = (),
        asked: Sequence[ForgetRequest] = (),
    ) -> None:
        evidence = await self._store.evidence([fact.id for fact in facts])
        await self._forgetting.begin(facts, evidence, also, asked)


async def parse_page(text: str) -> Page:
    """Parse the page, in a thread if it is long."""
    return await offload(len(text), lambda: parse(text))


def _bytes(text: str) -> bytes:
    """Encode the text; bytes that were no UTF-8 come out unchanged."""
    return text.encode(errors="surrogateescape")


def _edit(page: Page, change: PageChange) -> Page:
    return page.edited(
        change.written,
        adopted=change.adopted,
        cut=change.cut,
        buried=change.buried,
        dropped=change.dropped,
    )


def changing_error() -> EditConflict:
    """Return the error for a page that others keep changing."""
    return EditConflict(
        f"{FACTS_PATH} keeps changing while facts are written to it",
        cure="close what writes to it, then try again",
    )
