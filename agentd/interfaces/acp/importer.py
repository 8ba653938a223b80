"""Imports transcripts, of other programs and of agentd, into sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

import structlog
from msgspec.structs import replace

from agentd.core.errors import AgentdError, InvalidRequest
from agentd.core.message import (
    Block,
    Image,
    Text,
)
from agentd.core.ports import Blobs, Clock, NoteReader, Transcripts
from agentd.core.transcript import NewRow
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.interfaces.acp.transcript_lines import paired, read_lines
from agentd.interfaces.commands.sessions import parse_key
from agentd.memory.index.transcripts import path_of

log = structlog.get_logger()

_MOST_STAGED = 200_000  # lines of one import


class Importer:
    """Imports lines of transcripts into sessions, as rows without turns."""

    def __init__(
        self,
        store: Transcripts,
        clock: Clock,
        blobs: Blobs | None = None,
        *,
        on_import: Callable[[SessionKey], object] | None = None,
        workspace: NoteReader | None = None,
    ) -> None:
        """Without `blobs`, images of imported transcripts are replaced by text. `on_import` is
        called with each session that got rows. `workspace` records the session names that come from
        outside.
        """
        self._store = store
        self._clock = clock
        self._blobs = blobs
        self._on_import = on_import
        self._workspace = workspace
        self._staged: WeakKeyDictionary[object, dict[str, list[dict[str, Any]]]] = (
            WeakKeyDictionary()
        )

    async def take(
        self,
        caller: object,
        name: str,
        given: Sequence[dict[str, Any]],
        *,
        more: bool,
        chosen: bool,
    ) -> dict[str, Any]:
        """Add lines to the session with that name; return its key and the number of rows added.

        With `more` the lines are only staged, by caller and session, until the caller's call
        without it. `chosen` means that the owner chose the name; otherwise it is the name of a
        file, which others may have made, and is recorded as from outside. Raises InvalidRequest,
        StorageError, and WorkspaceError if that record fails.
        """
        key = parse_key(name)
        staged = self._staged.setdefault(caller, {})
        lines = staged.setdefault(key, [])
        lines.extend(given)
        if more and len(lines) <= _MOST_STAGED:
            return {"key": key, "rows": 0, "staged": len(lines)}
        del staged[key]
        if len(lines) > _MOST_STAGED:
            raise InvalidRequest(
                f"a transcript of more than {_MOST_STAGED} lines", cure="split the file"
            )
        has_owner = kind_of(key) is SessionKind.OWNER
        read = await asyncio.to_thread(
            read_lines, lines, self._clock.now(), self._clock.zone, has_owner=has_owner
        )
        kept = self._blobs.keep(read.pictures) if self._blobs is not None else nullcontext()
        async with kept:
            for place, (row, at) in enumerate(read.dated):
                if any(isinstance(block, Image) for block in row.blocks):
                    read.dated[place] = (await self._pictured(row), at)
            dated = await asyncio.to_thread(_paired, read.dated)
            if not chosen:
                await self._record_outside_name(key)
            count = await self._store.add_rows(key, dated)
        if self._on_import is not None:
            self._on_import(key)
        return {"key": key, "rows": count}

    async def _record_outside_name(self, key: SessionKey) -> None:
        """Record the transcript's name as from outside, unless the session already exists."""
        if self._workspace is not None and not await self._store.exists(key):
            await self._workspace.record_outside_names([path_of(key)])

    async def _pictured(self, row: NewRow) -> NewRow:
        """Return the row with text in place of images whose bytes are not stored here."""
        return replace(row, blocks=tuple([await self._at_hand(block) for block in row.blocks]))

    async def _at_hand(self, block: Block) -> Block:
        if not isinstance(block, Image):
            return block
        try:
            if self._blobs is not None and await self._blobs.read(block):
                return block
        except AgentdError as error:
            log.info("image_not_imported", reason=error.reason)
        return Text(block.left_out("its bytes did not come along"))


def _paired(dated: Sequence[tuple[NewRow, datetime]]) -> list[tuple[NewRow, datetime]]:
    rows = paired([row for row, _ in dated])
    return [(row, at) for row, (_, at) in zip(rows, dated, strict=True)]
