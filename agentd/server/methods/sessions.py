"""`_agentd/sessions/*`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from weakref import WeakKeyDictionary

import structlog
from pydantic import Field

from agentd.domain.message import Block, Image, Text
from agentd.domain.transcript import NewRow, SessionInfo, export_row
from agentd.domain.turn import MAIN, Kind, SessionKey, kind_of
from agentd.errors import AgentdError, InvalidRequest
from agentd.memory.transcript import path_of
from agentd.ports import Blobs, Clock, Ledger, SessionStore, Workspace
from agentd.server.keys import existing_key, is_unused, parse_key
from agentd.server.methods.imports import read_lines
from agentd.server.methods.pairing import paired
from agentd.server.methods.params import NoParams, Params, handler, peer_handler
from agentd.server.peer import Handler, Peer
from agentd.server.turns import Turns

log = structlog.get_logger()

Erase = Callable[[SessionKey], Awaitable[None]]

_EVER = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE_BYTES = 512 * 1024
_ROWS_AT_ONCE = 200
_MOST_STAGED = 200_000  # lines of one import


class KeyParams(Params):
    """One session."""

    key: str


class ExportParams(KeyParams):
    """A page of rows from number `first` on."""

    first: int = Field(1, ge=1)
    limit: int | None = Field(None, ge=1)


class ImportParams(KeyParams):
    """Lines of a transcript. `more` says that further lines follow in another call; `chosen` that the owner
    has chosen the key, which is else the name of a file that others may have made.
    """

    lines: list[dict[str, Any]]
    more: bool = False
    chosen: bool = False


class CompactParams(KeyParams):
    """What the summary should keep; "" leaves it to the model."""

    instructions: str = ""


class FlushParams(KeyParams):
    """A flush, or with `explain` what it would be decided on."""

    explain: bool = False


class SessionMethods:
    """Sessions as the commands see them."""

    def __init__(
        self,
        store: SessionStore,
        turns: Turns,
        erase: Erase,
        ledger: Ledger,
        clock: Clock,
        blobs: Blobs | None = None,
        *,
        on_import: Callable[[SessionKey], object] | None = None,
        workspace: Workspace | None = None,
    ) -> None:
        """Without `blobs`, images of imported transcripts become words. `on_import` hears of a session
        that has got rows without a turn. `workspace` remembers which names are from outside.
        """
        self._workspace = workspace
        self._blobs = blobs
        self._on_import = on_import
        self._store = store
        self._turns = turns
        self._erase = erase
        self._ledger = ledger
        self._clock = clock
        self._staged: WeakKeyDictionary[Peer, dict[str, list[dict[str, Any]]]] = WeakKeyDictionary()

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/sessions/list": handler(NoParams, self._list),
            "_agentd/sessions/show": handler(KeyParams, self._show),
            "_agentd/sessions/export": handler(ExportParams, self._export),
            "_agentd/sessions/import": peer_handler(ImportParams, self._import),
            "_agentd/sessions/compact": handler(CompactParams, self._compact),
            "_agentd/sessions/flush": handler(FlushParams, self._flush),
            "_agentd/sessions/reset": handler(KeyParams, self._reset),
            "_agentd/sessions/delete": handler(KeyParams, self._delete),
        }

    async def _list(self, params: NoParams) -> dict[str, Any]:
        infos = await self._store.sessions()
        listed = (info for info in infos if not is_unused(info) or self._turns.queued(info.key))
        return {"sessions": [session_json(info, self._turns) for info in listed]}

    async def _show(self, params: KeyParams) -> dict[str, Any]:
        key = await existing_key(self._store, params.key)
        info = next((i for i in await self._store.sessions() if i.key == key), None)
        shown = session_json(info, self._turns) if info else {"key": key}
        history = await self._store.load(key)
        return {
            **shown,
            "summary": history.summary,
            "context_from": history.context_from,
            "covered_to": history.covered_to,
            "flush_due": history.flush_due,
            "flush_failures": history.flush_failures,
            "cost": await self._cost(key),
        }

    async def _cost(self, key: SessionKey) -> dict[str, Any]:
        """What the session's model calls used in all, its silent ones included."""
        spent = [row for row in await self._ledger.breakdown(_EVER) if row[0] == key]
        return {"tokens": sum(row[2] for row in spent), "usd": sum(row[3] for row in spent)}

    async def _export(self, params: ExportParams) -> dict[str, Any]:
        """`next` is the first row of the next page, None at the end."""
        key = await existing_key(self._store, params.key)
        lines: list[dict[str, Any]] = []
        size, first, left = 0, params.first, params.limit
        while left is None or left > 0:
            count = _ROWS_AT_ONCE if left is None else min(left, _ROWS_AT_ONCE)
            rows = await self._store.rows(key, first, count)
            if not rows:
                return {"lines": lines, "next": None}
            for row in rows:
                line = export_row(row)
                size += len(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace"))
                if lines and size > _PAGE_BYTES:
                    return {"lines": lines, "next": row.seq}
                lines.append(line)
            first = rows[-1].seq + 1
            left = None if left is None else left - len(rows)
        more = await self._store.rows(key, first, 1)
        return {"lines": lines, "next": first if more else None}

    async def _import(self, params: ImportParams, peer: Peer) -> dict[str, Any]:
        key = parse_key(params.key)
        staged = self._staged.setdefault(peer, {})
        lines = staged.setdefault(key, [])
        lines.extend(params.lines)
        if params.more and len(lines) <= _MOST_STAGED:
            return {"key": key, "rows": 0, "staged": len(lines)}
        del staged[key]
        if len(lines) > _MOST_STAGED:
            raise InvalidRequest(
                f"a transcript of more than {_MOST_STAGED} lines", cure="split the file"
            )
        has_owner = kind_of(key) is Kind.MAIN
        read = await asyncio.to_thread(
            read_lines, lines, self._clock.now(), self._clock.zone, has_owner=has_owner
        )
        kept = self._blobs.keep(read.pictures) if self._blobs is not None else nullcontext()
        async with kept:
            for place, (row, at) in enumerate(read.dated):
                if any(isinstance(block, Image) for block in row.blocks):
                    read.dated[place] = (await self._pictured(row), at)
            dated = await asyncio.to_thread(_paired, read.dated)
            if not params.chosen:
                await self._name_outside(key)
            count = await self._store.add_rows(key, dated)
        if self._on_import is not None:
            self._on_import(key)
        return {"key": key, "rows": count}

    async def _name_outside(self, key: SessionKey) -> None:
        """A transcript is about to be called after a file; a session that is there has its name already."""
        if self._workspace is not None and not await self._store.exists(key):
            await self._workspace.name_outside([path_of(key)])

    async def _pictured(self, row: NewRow) -> NewRow:
        """The row with words for images whose bytes did not come along."""
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

    async def _compact(self, params: CompactParams) -> dict[str, Any]:
        key = await self._key(params)
        return (await self._turns.compact(key, params.instructions.strip())).as_json()

    async def _flush(self, params: FlushParams) -> dict[str, Any]:
        key = await self._key(params)
        if params.explain:
            return await self._turns.explain(key)
        return (await self._turns.flush(key)).as_json()

    async def _reset(self, params: KeyParams) -> dict[str, Any]:
        key = await self._key(params)
        return (await self._turns.start_over(key)).as_json()

    async def _delete(self, params: KeyParams) -> dict[str, Any]:
        key = await self._key(params)
        await self._erase(key)
        return {"key": key, "deleted": True, "kept": key == MAIN}

    async def _key(self, params: KeyParams) -> SessionKey:
        return await existing_key(self._store, params.key)


def _paired(dated: Sequence[tuple[NewRow, datetime]]) -> list[tuple[NewRow, datetime]]:
    rows = paired([row for row, _ in dated])
    return [(row, at) for row, (_, at) in zip(rows, dated, strict=True)]


def _state(key: SessionKey, turns: Turns) -> str:
    if turns.is_waiting(key):
        return "waiting"
    return "running" if turns.is_busy(key) else "idle"


def session_json(info: SessionInfo, turns: Turns) -> dict[str, Any]:
    """A session in `status` and `sessions list`."""
    return {
        "key": info.key,
        "kind": str(kind_of(info.key)),
        "title": info.title,
        "created_at": info.created_at.isoformat(),
        "updated_at": info.updated_at.isoformat(),
        "rows": info.rows,
        "turns": info.turns,
        "context_tokens": info.context_tokens,
        "generation": info.generation,
        "cwd": info.cwd,
        "busy": turns.is_busy(info.key),
        "state": _state(info.key, turns),
        "queued": turns.queued(info.key),
    }
