"""Ports of what sessions store: received messages, transcripts, contexts, images, tool calls."""

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
    """Stores the received requests and the turns that answer them.

    Turns whose origin is not USER are silent: `append` keeps their rows apart from the transcript,
    and `finish` erases them.
    """

    async def receive(self, request: TurnRequest) -> Receipt:
        """Store the request, and the session if it is new. A message id known in the same session
        changes nothing: the old turn's receipt is returned.
        """

    async def begin(self, turn_id: int) -> tuple[Row, ...]:
        """Count an attempt and return the turn's rows so far. The first attempt stores the user
        row, byte for byte.
        """

    async def append(self, turn_id: int, row: NewRow) -> Row:
        """Add a row to the turn and return it as stored."""

    async def finish(
        self, turn_id: int, turn: Turn, rows: Sequence[NewRow] = ()
    ) -> tuple[Row, ...]:
        """Add the last rows and mark the turn ended, in one transaction. Returns the added rows."""

    async def park(self, turn_id: int, *, waits: bool = False) -> None:
        """Take back the attempt that `begin` counted, because the turn was put aside on purpose and
        not by a crash. With `waits` the turn is WAITING until it begins again.
        """

    async def pending(self) -> tuple[PendingTurn, ...]:
        """Return the turns that have not ended, oldest first."""


class Transcripts(Protocol):
    """The transcript of each session."""

    async def exists(self, session: SessionKey) -> bool:
        """Whether the session exists."""

    async def sessions(self) -> tuple[SessionInfo, ...]:
        """Return all sessions, the last used first; `main` is always among them."""

    async def row_counts(self) -> Mapping[SessionKey, int]:
        """Return the number of rows of each stored session of `sessions`, in the same order; much
        faster for thousands of them.
        """

    async def rows(
        self, session: SessionKey, first: int = 1, limit: int | None = None
    ) -> tuple[Row, ...]:
        """Return rows from number `first` on, as exported. Raises NotFound for an unknown
        session.
        """

    async def recent(self, session: SessionKey, turns: int) -> tuple[Row, ...]:
        """Return the rows of the last `turns` turns and the notices between them, oldest first."""

    async def notice(self, session: SessionKey, text: str, tag: str) -> Row:
        """Add a notice row outside any turn."""

    async def add_rows(self, session: SessionKey, rows: Sequence[tuple[NewRow, datetime]]) -> int:
        """Import rows with their times into a new session; return how many. Raises Busy if the
        session already has rows.
        """

    async def last_heard(self) -> tuple[datetime, str] | None:
        """Return the time of the owner's newest message and the client it came from; None if there
        is none.
        """

    async def images(self) -> frozenset[str]:
        """Return the digests of all images that rows and waiting messages refer to."""


class Contexts(Protocol):
    """The context of each session, and how much of what leaves it was saved by flushes."""

    async def load(self, session: SessionKey, most: int | None = None) -> History:
        """Return the rows and the summary that the next prompt is built from; empty for an unknown
        session. With `most`, a very long context is read only from its newest rows, about `most`
        characters.
        """

    async def swap(
        self,
        session: SessionKey,
        generation: int,
        keep_from: int,
        summary: str,
        outside: str = "",
    ) -> bool:
        """Let the context begin at row `keep_from`, after `summary` (stored as a summary row unless
        empty).

        `outside` summarises the text from outside that leaves; it is stored as a tainted summary
        row that no context includes. Returns False and changes nothing if the session's generation
        is no longer `generation`. The mark of `mark_excerpted` is cleared.
        """

    async def set_trouble(self, session: SessionKey, trouble: SummaryTrouble) -> None:
        """Record how summaries of the session have failed, or that they no longer do."""

    async def mark_excerpted(self, session: SessionKey) -> None:
        """Record, until the next swap, that the context is too long for the session's turns: they
        run on a part of it, so the tokens they use do not measure the whole.
        """

    async def cover(self, session: SessionKey, coverage: Coverage) -> None:
        """Record the end of a flush; `flush_failures` and `flush_due` are reset."""

    async def flush_failed(self, session: SessionKey, reason: str) -> int:
        """Count one failed try to flush the uncovered rows; return how many there have been."""

    async def last_asked(self, session: SessionKey, start: str) -> str:
        """Return the message id of the session's newest flush turn whose id begins with `start`,
        ended or not; "" if there is none.
        """

    async def coverages(self, session: SessionKey) -> tuple[Coverage, ...]:
        """Return all flushes of the session, oldest first."""

    async def set_flush_due(self, sessions: Sequence[SessionKey]) -> None:
        """Record that these sessions need a flush before their next compaction."""


class SessionRegistry(Protocol):
    """The sessions that exist, and the user's choices (model, mode) for each."""

    async def create(self, session: SessionKey, cwd: str = "") -> bool:
        """Create an empty session; return False if it exists."""

    async def fork(self, session: SessionKey, copy: SessionKey, cwd: str = "") -> None:
        """Create the session `copy` with the transcript, context and choices of `session`, up to
        its first turn that has not ended. Raises NotFound, or Busy if `copy` exists.
        """

    async def choices(self, session: SessionKey) -> Choices:
        """Return the user's choices for the session; empty for an unknown session."""

    async def choose(self, session: SessionKey, choices: Choices) -> None:
        """Store the user's choices for the session. Raises NotFound."""

    async def delete(self, session: SessionKey) -> None:
        """Erase the session and its transcript; `main` is emptied and stays. When this returns, no
        file of the store holds a byte of it. Its costs stay in the ledger under the name `DELETED`.

        The same commit records that other places may still hold its words, see `unerased`. Raises
        NotFound, or Busy while one of its turns has not ended.
        """

    async def unerased(self) -> Mapping[int, SessionKey]:
        """Return the deleted sessions whose words other places may still hold, by deletion number,
        in order. A session that has begun again since may be among them.
        """

    async def mark_erased(self, deletion: int) -> None:
        """Delete the record of a deletion, down to the bytes: no other place holds the session's
        words now.
        """


class SessionStore(Inbox, Transcripts, Contexts, SessionRegistry, Protocol):
    """All session ports together, for callers that need several of them in step; one database holds
    them.
    """


class Blobs(Protocol):
    """The bytes of images, stored once per digest."""

    def keep(self, pictures: Sequence[bytes]) -> AbstractAsyncContextManager[tuple[Image, ...]]:
        """Store pictures and return their images. They are durable when the block begins and safe
        from `sweep` until it ends: by then a stored row or message must refer to them. Raises
        InvalidRequest for bytes that are no image.
        """

    async def read(self, image: Image) -> bytes:
        """Return the bytes as they were stored. Raises NotFound, StorageCorrupt."""

    async def sweep(self) -> int:
        """Delete the images that no row and no waiting message refers to; return how many."""


class Journal(Protocol):
    """Intents and results of tool calls, including those of silent turns."""

    async def intend(self, turn_id: int, intent: Intent) -> None:
        """Store what a call is about to do. A second intent of the same call replaces the first."""

    async def settle(self, turn_id: int, call_id: str, output: ToolOutput) -> None:
        """Store the output of a call."""

    async def outputs(self, turn_id: int) -> Mapping[str, ToolOutput]:
        """Return the stored outputs of a turn, by call id."""

    async def open_calls(self) -> tuple[OpenCall, ...]:
        """Return the calls of unended turns that have an intent and no output, oldest first."""
