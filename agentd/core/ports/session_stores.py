"""What sessions leave on the disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from agentd.core.message import Image
from agentd.core.tool import Intent, OpenCall, ToolOutput
from agentd.core.transcript import (
    Choices,
    Coverage,
    History,
    NewRow,
    Row,
    SessionInfo,
    SummaryTrouble,
)
from agentd.core.turn import PendingTurn, Receipt, SessionKey, Turn, TurnRequest


class Inbox(Protocol):
    """What was received, and the turns that answer it.

    Turns whose origin is not USER are silent: `append` keeps their rows apart from the transcript,
    and `finish` erases them.
    """

    async def receive(self, request: TurnRequest) -> Receipt:
        """Store the request, and the session if it is new. A known message id of the same session
        changes nothing: the old receipt comes back with `is_new=False`.
        """

    async def begin(self, turn_id: int) -> tuple[Row, ...]:
        """Count an attempt and return the turn's rows so far; the first time, that is its user row,
        stored byte for byte.
        """

    async def append(self, turn_id: int, row: NewRow) -> Row:
        """Add a row to the turn."""

    async def finish(
        self, turn_id: int, turn: Turn, rows: Sequence[NewRow] = ()
    ) -> tuple[Row, ...]:
        """Add the last rows and mark the turn ended, in one transaction. Returns the added rows."""

    async def park(self, turn_id: int, *, waits: bool = False) -> None:
        """Take back the attempt that `begin` counted: the turn was put aside on purpose, not by a crash.
        With `waits` it is WAITING from now on, until it begins again.
        """

    async def pending(self) -> tuple[PendingTurn, ...]:
        """Turns that are not ended, oldest first."""


class Transcripts(Protocol):
    """What was said, by session."""

    async def exists(self, session: SessionKey) -> bool:
        """Whether the session exists."""

    async def sessions(self) -> tuple[SessionInfo, ...]:
        """All sessions, the last used first; `main` is always among them."""

    async def rows(
        self, session: SessionKey, first: int = 1, limit: int | None = None
    ) -> tuple[Row, ...]:
        """Rows from number `first` on, as exported. Raises NotFound for an unknown session."""

    async def recent(self, session: SessionKey, turns: int) -> tuple[Row, ...]:
        """The rows of the last `turns` turns and the notices between them, oldest first."""

    async def said(self, session: SessionKey, after: int, limit: int) -> tuple[Row, ...]:
        """The first `limit` rows behind number `after` in which the user speaks; none for an unknown
        session.
        """

    async def notice(self, session: SessionKey, text: str, tag: str) -> Row:
        """Add a notice row outside any turn."""

    async def add_rows(self, session: SessionKey, rows: Sequence[tuple[NewRow, datetime]]) -> int:
        """Import rows into a new session, dated. Raises Busy if the session has rows already."""

    async def last_heard(self) -> tuple[datetime, str] | None:
        """When the owner's newest message came, and from which client; None if there is none."""

    async def images(self) -> frozenset[str]:
        """The digests of all images that rows and waiting messages refer to."""


class Contexts(Protocol):
    """What the next prompt of a session is made from, and how far what leaves it is saved."""

    async def load(self, session: SessionKey, most: int | None = None) -> History:
        """What the next prompt is made from; empty for an unknown session. Of a context of very many rows
        only the newest are read that have about `most` characters together.
        """

    async def swap(
        self,
        session: SessionKey,
        generation: int,
        keep_from: int,
        summary: str,
        outside: str = "",
    ) -> bool:
        """Let the context begin at row `keep_from` behind `summary` (stored as a summary row unless
        empty). `outside` sums up what came from outside: it is stored as a tainted summary row, and no
        context carries it. False, with nothing changed, if the session's generation is another one by
        now. A context that was too long for its turns is so no longer.
        """

    async def set_trouble(self, session: SessionKey, trouble: SummaryTrouble) -> None:
        """Remember how summaries of the session have failed, or that they do so no longer."""

    async def excerpted(self, session: SessionKey) -> None:
        """Remember, until the next swap, that the context is too long for the session's turns: they run
        on a part of it, and what they use says nothing about the whole.
        """

    async def cover(self, session: SessionKey, coverage: Coverage) -> None:
        """Record the end of a flush; `flush_failures` and `flush_due` go back to none."""

    async def flush_failed(self, session: SessionKey, reason: str) -> int:
        """Count one failed try for what is uncovered; returns how many there are now."""

    async def last_asked(self, session: SessionKey, start: str) -> str:
        """The message id of the session's newest flush turn whose id begins with `start`, ended or
        not; "" if there is none.
        """

    async def coverages(self, session: SessionKey) -> tuple[Coverage, ...]:
        """All flushes of the session, oldest first."""

    async def set_flush_due(self, sessions: Sequence[SessionKey]) -> None:
        """Remember that these sessions need a flush before their next compaction."""


class SessionRegistry(Protocol):
    """Which sessions there are, and what was chosen for each."""

    async def create(self, session: SessionKey, cwd: str = "") -> bool:
        """Make an empty session; False if it exists."""

    async def fork(self, session: SessionKey, copy: SessionKey, cwd: str = "") -> None:
        """Make a session `copy` with the transcript, context and choices of another, up to its first
        turn that has not ended. Raises NotFound, Busy if `copy` exists.
        """

    async def choices(self, session: SessionKey) -> Choices:
        """What the user has chosen for the session; nothing for an unknown one."""

    async def choose(self, session: SessionKey, choices: Choices) -> None:
        """Keep what the user has chosen. Raises NotFound."""

    async def delete(self, session: SessionKey) -> None:
        """Erase the session and all that was said in it; `main` is emptied and stays. When this
        returns, no file of the store holds a byte of it. What it cost stays in the ledger, under
        the name `DELETED`. That its words may stand elsewhere is remembered with it, see `unerased`.
        Raises NotFound, Busy while one of its turns has not ended.
        """

    async def unerased(self) -> Mapping[int, SessionKey]:
        """The sessions whose words may stand elsewhere though they were deleted, by the number of each
        deletion, in their order. One that has begun again since then may be among them.
        """

    async def erased(self, deletion: int) -> None:
        """Nothing stands elsewhere: the record of the deletion goes, down to the bytes."""


class SessionStore(Inbox, Transcripts, Contexts, SessionRegistry, Protocol):
    """All of it, as one database has it, for who needs several of them in step."""


class Blobs(Protocol):
    """The bytes of images, each once, under their digest."""

    def keep(self, pictures: Sequence[bytes]) -> AbstractAsyncContextManager[tuple[Image, ...]]:
        """Store pictures; durable when the block begins, safe from `sweep` until it ends: by then
        something must refer to them. Raises InvalidRequest for bytes that are no image.
        """

    async def read(self, image: Image) -> bytes:
        """The bytes, as they were stored. Raises NotFound, StorageCorrupt."""

    async def sweep(self) -> int:
        """Delete what no row and no waiting message refers to; returns how many there were."""


class Journal(Protocol):
    """Intents and results of tool calls, of silent turns too."""

    async def intend(self, turn_id: int, intent: Intent) -> None:
        """Store what a call is about to do. A second intent of the same call replaces the first."""

    async def settle(self, turn_id: int, call_id: str, output: ToolOutput) -> None:
        """Store what a call answered."""

    async def outputs(self, turn_id: int) -> Mapping[str, ToolOutput]:
        """The stored answers of a turn, by call id."""

    async def open_calls(self) -> tuple[OpenCall, ...]:
        """Calls of unended turns that have an intent and no answer, oldest first."""
