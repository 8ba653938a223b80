"""`export`: the contents of the databases other than transcripts, page by page."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from agentd.core.errors import AgentdError
from agentd.core.message import Image
from agentd.interfaces.commands.declaration import Group, Param
from agentd.interfaces.commands.plain import fields

if TYPE_CHECKING:
    from agentd.core.ports import BeatStore, Blobs, JobBook, Ledger, Outbox, SessionStore

_ALL = 2**31
_PAGE_BYTES = 512 * 1024


EXPORT = Group("")


class ExportCommands:
    """The command that returns rows in the export's format, the oldest first."""

    def __init__(
        self,
        outbox: Outbox,
        beats: BeatStore,
        book: JobBook,
        ledger: Ledger,
        pictures: tuple[SessionStore, Blobs] | None = None,
    ) -> None:
        """`pictures` tell which images there are, and hold them; without them there are none."""
        self._pictures = pictures
        self._outbox = outbox
        self._beats = beats
        self._book = book
        self._ledger = ledger

    @EXPORT.command(fields, line=False)
    async def export(
        self,
        what: Literal["alerts", "beats", "jobs", "costs", "images"],
        *,
        after: Annotated[int, Param(least=0)] = 0,
    ) -> dict[str, Any]:
        """Rows of one kind, those left out that the client has already: `next` is what to pass as
        `after` for the next page, None at the end.
        """
        if what == "images":
            return await self._image(after)
        rows: dict[str, Callable[[], Awaitable[list[dict[str, Any]]]]] = {
            "alerts": self._alerts,
            "beats": self._past_beats,
            "jobs": self._jobs,
            "costs": self._costs,
        }
        found = (await rows[what]())[after:]
        page: list[dict[str, Any]] = []
        size = 0
        for row in found:
            size += len(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"))
            if page and size > _PAGE_BYTES:
                return {"rows": page, "next": after + len(page)}
            page.append(row)
        return {"rows": page, "next": None}

    async def _image(self, after: int) -> dict[str, Any]:
        """Return one image a page: its digest, and its bytes as base64 unless it is damaged."""
        if self._pictures is None:
            return {"rows": [], "next": None}
        sessions, blobs = self._pictures
        digests = sorted(await sessions.images())
        if after >= len(digests):
            return {"rows": [], "next": None}
        try:
            data = await blobs.read(Image("", digests[after], 0))
        except AgentdError as error:
            row: dict[str, Any] = {"sha256": digests[after], "error": error.message}
        else:
            encoded = await asyncio.to_thread(base64.b64encode, data)
            row = {"sha256": digests[after], "data": encoded.decode()}
        return {"rows": [row], "next": after + 1 if after + 1 < len(digests) else None}

    async def _alerts(self) -> list[dict[str, Any]]:
        return [alert.as_json() for alert in reversed(await self._outbox.alerts(_ALL))]

    async def _past_beats(self) -> list[dict[str, Any]]:
        return [beat.as_json() for beat in reversed(await self._beats.beats(_ALL))]

    async def _jobs(self) -> list[dict[str, Any]]:
        return [job.as_json() for job in await self._book.jobs(past=True)]

    async def _costs(self) -> list[dict[str, Any]]:
        return [charge.as_json() for charge in await self._ledger.entries()]
