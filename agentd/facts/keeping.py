"""Carries a change out: on the page, then in the rows, then in what finds facts."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from agentd.domain.fact import ErasureReport, Fact
from agentd.domain.tool import FileAction
from agentd.domain.turn import Kind, SessionKey
from agentd.domain.workspace import FACTS_PATH, Author, Reader
from agentd.errors import EditConflict, FileMissing
from agentd.facts.changes import Change
from agentd.facts.known import Digests, Known
from agentd.facts.page import Page, parse
from agentd.failpoints import hit
from agentd.ports import FactStore, Workspace

_T = TypeVar("_T")

_READER = Reader(SessionKey("facts"), Kind.MAIN)
_AUTHOR = Author("facts")
_SHORT = 20_000  # letters that are read at once; more would keep others waiting


class Forgetting(Protocol):
    """Erases what facts said, everywhere else."""

    async def begin(self, facts: Sequence[Fact]) -> None:
        """Remember durably what is to be erased: their words are about to go. Repeating it is
        harmless.
        """

    async def carry_out(self) -> ErasureReport:
        """Erase all that was begun."""


class Keeping:
    """The page in the workspace and the rows in the store."""

    def __init__(
        self, store: FactStore, workspace: Workspace, digests: Digests, forgetting: Forgetting
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._digests = digests
        self._forgetting = forgetting

    async def look(self) -> tuple[str | None, str]:
        """The page's text, None if there is none, and its digest. Bytes that are no text stand there as
        `surrogateescape` puts them. Raises FileUnreadable.
        """
        try:
            view = await self._workspace.read_damaged(FACTS_PATH, _READER)
        except FileMissing:
            return None, ""
        return view.text, view.digest

    async def carry_out(self, change: Change, digest: str, known: Known) -> str:
        """Do it, and give the page's new digest. `known` has the facts as they will be, but for those
        that are buried. Raises EditConflict, with nothing done, if the page has another digest.
        """
        if not change.is_of_page:
            await self._save(change, known)
            return digest
        if change.revived:
            await self._forgetting.begin(change.revived)
        path = self._workspace.canonical(FACTS_PATH)
        async with self._workspace.lock(path):
            text, now = await self.look()
            if now != digest:
                raise moved()
            after = await quietly(text or "", lambda: _rendered(text or "", change))
            if after != (text or ""):
                intent = await self._workspace.plan(path, FileAction.WRITE, _bytes(after))
                if intent.before != digest:
                    raise moved()
                await self._workspace.apply(intent, _READER, _AUTHOR)
                digest = intent.after
                hit("facts.written")
            await self._save(change, known)
        return digest

    async def _save(self, change: Change, known: Known) -> None:
        gone = [fact for i in change.buried if (fact := known.alive(i)) is not None]
        if gone:
            await self._forgetting.begin(gone)
        if change.saved or change.marks or change.sightings:
            await self._store.save(change.saved, marks=change.marks, sightings=change.sightings)
        if change.unburied:
            await self._store.unbury(change.unburied)
        by_time: dict[datetime, list[Fact]] = defaultdict(list)
        for fact in gone:
            by_time[change.buried[fact.id]].append(fact)
        for at, facts in by_time.items():
            hashes = [d for fact in facts for d in self._digests.of(fact.text, fact.triple)]
            await self._store.bury([fact.id for fact in facts], hashes, at)
        for fact in gone:
            known.put(Fact.grave(fact.id, change.buried[fact.id]))
        if change.parked is not None:
            await self._store.park(change.parked)


async def parsed(text: str) -> Page:
    """The page, read without keeping others waiting."""
    return await quietly(text, lambda: parse(text))


def _bytes(text: str) -> bytes:
    """What was no text stays byte for byte."""
    return text.encode(errors="surrogateescape")


def _rendered(text: str, change: Change) -> str:
    page = parse(text).edited(
        change.written,
        adopted=change.adopted,
        cut=change.cut,
        buried=change.buried,
        dropped=change.dropped,
    )
    return page.render()


async def quietly(text: str, work: Callable[[], _T]) -> _T:
    """The result of work on a text; a long one is worked on in a thread."""
    return work() if len(text) <= _SHORT else await asyncio.to_thread(work)


def moved() -> EditConflict:
    """The error for a page that others keep changing."""
    return EditConflict(
        f"{FACTS_PATH} keeps changing while facts are written to it",
        cure="close what writes to it, then try again",
    )
