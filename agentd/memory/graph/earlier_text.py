"""Imports, once, the text in which releases before 0.9 kept the graph: what others had said."""

from __future__ import annotations

import asyncio
import re
from collections.abc import (
    Iterator,
    Sequence,
)
from datetime import datetime
from itertools import pairwise

import structlog
from msgspec import Struct

from agentd.core.errors import FileMissing, FileUnreadable, GraphError, PathRefused
from agentd.core.evidence import FACTS, SHARED
from agentd.core.graph import EpisodeHash, KeptEpisode, Record, Share
from agentd.core.ports import Clock, GraphRecords, NoteReader
from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import GRAPH_FOLDER, SHARED_PATH, TAKEN_BACK_PATH, Reader
from agentd.memory.graph.consolidation import alone, rows
from agentd.memory.graph.text import TextFiles
from agentd.memory.graph.transfer import import_record
from agentd.zero import parse_all
from agentd.zero.decompiler import decompile

log = structlog.get_logger()

TELLER = "earlier-graph"  # teller of episodes without one
_READER = Reader(SessionKey("graph"), SessionKind.OWNER)
_BEGINS = re.compile(r"^\ufeff?Graph\b", re.MULTILINE)
_WITHDRAWN = re.compile(r"^[0-9a-f]{64}$", re.MULTILINE)
_SHARE = re.compile(
    r"^([a-z0-9-]{1,40}) (?:([0-9a-f]{1,64}) ([0-9a-f]{32})|gone) ([0-9a-f]{64}) (sent|new)$",
    re.MULTILINE,
)


class _Found(Struct, frozen=True):
    """The imported content of a file, and how many graphs in it are unreadable."""

    records: tuple[Record, ...]
    damaged: int


class EarlierText:
    """The graph text of earlier releases, until it has been imported."""

    def __init__(
        self, workspace: NoteReader, files: TextFiles, records: GraphRecords, clock: Clock
    ) -> None:
        self._workspace = workspace
        self._files = files
        self._records = records
        self._clock = clock
        self._is_done = False

    async def take(self) -> None:
        """Import what others said, what they took back, and what is shared, if that was not done
        yet. Raises WorkspaceError, StorageError.
        """
        if self._is_done:
            return
        if not await self._records.has_earlier():
            await self._take()
        self._is_done = True

    async def _take(self) -> None:
        now = self._clock.now()
        kept: list[KeptEpisode] = []
        damaged = 0
        for path in await self._paths():
            try:
                text = (await self._workspace.read_damaged(path, _READER)).text
            except (FileMissing, FileUnreadable, PathRefused):
                damaged += 1  # it will stay unreadable, and the graph waits for this import
                continue
            found = await asyncio.to_thread(_read, text)
            damaged += found.damaged
            kept += [row for record in found.records for row in _rows(record, now)]
        withdrawn = _WITHDRAWN.findall(await self._text(TAKEN_BACK_PATH))
        shares = _shares(await self._text(SHARED_PATH))
        await self._records.take_earlier(kept, withdrawn, shares, now)
        for path in (TAKEN_BACK_PATH, SHARED_PATH):
            await self._files.delete(path)
        if kept or withdrawn or shares or damaged:
            counts = {"episodes": len(kept), "withdrawn": len(withdrawn), "shares": len(shares)}
            log.info("graph_text_taken_in", **counts, damaged=damaged)

    async def _paths(self) -> Sequence[str]:
        try:
            entries = await self._workspace.tree(GRAPH_FOLDER, 1, _READER)
        except FileMissing:
            return ()
        return [one.path for one in entries if not one.is_dir and one.path.endswith(".0")]

    async def _text(self, path: str) -> str:
        try:
            return (await self._workspace.read(path, _READER)).text
        except FileMissing:
            return ""


def _read(text: str) -> _Found:
    starts = [found.start() for found in _BEGINS.finditer(text)]
    records: list[Record] = []
    damaged = 0
    for start, end in pairwise([*starts, len(text)]):
        try:
            records += [decompile(graph).record for graph in parse_all(text[start:end])]
        except GraphError:
            damaged += 1
    return _Found(tuple(records), damaged)


def _rows(record: Record, now: datetime) -> Iterator[KeptEpisode]:
    """Yield the episodes to keep: those of other agents as they are, those without a teller
    (promotions included) under TELLER.
    """
    contexts = {one.hash: one for one in record.contexts}
    for relation in record.relations:
        context, one = contexts[relation.context], alone(record, relation)
        if context.source == SHARED:
            yield from rows(one, context.agent, now)
        elif context.source != FACTS:
            yield from rows(import_record(one, TELLER, 1.0), TELLER, now)


def _shares(text: str) -> list[Share]:
    return [
        Share(space, EpisodeHash.from_hex(episode), fact, salt, sent == "sent")
        for space, fact, salt, episode, sent in _SHARE.findall(text)
    ]
