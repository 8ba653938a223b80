"""The inbox: turns from receipt to end, each function a step of a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from agentd.core.errors import InvalidRequest, NotFound
from agentd.core.message import decode_spans
from agentd.core.spans import unite_spans
from agentd.core.transcript import NewRow, Row, RowRole
from agentd.core.turn import (
    Origin,
    PendingTurn,
    PromptScope,
    Receipt,
    SessionKey,
    SessionKind,
    Turn,
    TurnRequest,
    TurnState,
)
from agentd.storage.codec import (
    dump_blocks,
    dump_turn,
    dump_usage,
    dumps,
    load_images,
    load_row,
    load_turn,
    moment,
    stamp,
)
from agentd.storage.transcript import add_row, make_session, turn_rows

_KNOWN = """
SELECT t.id, t.outcome, t.redacted, t.received_at, s.id AS session_id FROM sessions s
LEFT JOIN turns t ON t.session_id = s.id AND t.message_id = ? WHERE s.key = ?
"""
_INSERT_TURN = """
INSERT INTO turns (session_id, message_id, origin, context, model, tools, client, from_owner, text,
    quoted, images, redacted, patience, state, received_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'received', ?) RETURNING id
"""
_TURN = """
SELECT t.*, s.key AS session FROM turns t JOIN sessions s ON s.id = t.session_id WHERE t.id = ?
"""
_PENDING = """
SELECT t.*, s.key AS session FROM turns t JOIN sessions s ON s.id = t.session_id
WHERE t.ended_at IS NULL ORDER BY t.id
"""
_END = """
UPDATE turns SET state = ?, ended_at = ?, outcome = ?, text = '', quoted = '[]', images = '[]'
WHERE id = ?
"""
_NEXT_SILENT = "SELECT coalesce(max(seq), 0) + 1 FROM silent_rows WHERE turn_id = ?"
_SILENT = "SELECT *, 1 AS proven FROM silent_rows WHERE turn_id = ? ORDER BY seq"
_INSERT_SILENT = """
INSERT INTO silent_rows (turn_id, seq, role, at, provider, usage, tag, source, blocks)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_LAST_ASKED = """
SELECT t.message_id FROM turns t JOIN sessions s ON s.id = t.session_id
WHERE s.key = :session AND t.origin = 'flush' AND t.message_id >= :start
    AND t.message_id < :start || char(1114111)
ORDER BY t.id DESC LIMIT 1
"""
_LAST_HEARD = """
SELECT client, received_at FROM turns WHERE from_owner = 1 ORDER BY id DESC LIMIT 1
"""


def check_storable(request: TurnRequest) -> None:
    """Raise InvalidRequest if a text of the request contains an unpaired surrogate."""
    fields = (request.text, request.message_id, request.session, request.client, request.model)
    try:
        for text in (*fields, *(request.tools or ())):
            (text or "").encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            "the message holds half of a surrogate pair, which is no character",
            cure="send well-formed Unicode",
        ) from error


def receive(
    conn: sqlite3.Connection, request: TurnRequest, at: datetime, redacted: int = 0
) -> Receipt:
    """Put a request into the inbox, or find it there by its message id; return its receipt.
    `redacted` is the number of secrets that were removed from it.
    """
    known = conn.execute(_KNOWN, (request.message_id, request.session)).fetchone()
    if known is None:
        make_session(conn, request.session, at)
        known = conn.execute(_KNOWN, (request.message_id, request.session)).fetchone()
    if known["id"] is None:
        turn_id = _insert(conn, known["session_id"], request, at, redacted)
        return Receipt(turn_id, request.session, request.message_id, redacted=redacted, at=at)
    turn_id, outcome = known["id"], known["outcome"]
    ended = load_turn(request.session, request.message_id, outcome) if outcome else None
    return Receipt(
        turn_id,
        request.session,
        request.message_id,
        ended=ended,
        redacted=known["redacted"],
        at=None if outcome else moment(known["received_at"]),
    )


def begin(conn: sqlite3.Connection, turn_id: int, at: datetime) -> tuple[Row, ...]:
    """Count an attempt and return the turn's rows; the first time, its user row is created. Raises
    NotFound, and InvalidRequest for a turn that has ended.
    """
    turn = _open_turn(conn, turn_id)
    conn.execute(
        "UPDATE turns SET attempts = attempts + 1, state = 'running' WHERE id = ?", (turn_id,)
    )
    if turn["state"] == TurnState.RECEIVED:
        return (_add(conn, turn, _user_row(turn), at),)
    if _is_silent(turn):
        found = conn.execute(_SILENT, (turn_id,))
        return tuple(load_row(r) for r in found)
    return turn_rows(conn, turn_id)


def append(conn: sqlite3.Connection, turn_id: int, new: NewRow, at: datetime) -> Row:
    """Add a row to an open turn. Raises as `begin` does."""
    return _add(conn, _open_turn(conn, turn_id), new, at)


def finish(
    conn: sqlite3.Connection, turn_id: int, outcome: Turn, rows: Sequence[NewRow], at: datetime
) -> tuple[Row, ...]:
    """Add the last rows, end the turn and erase what only an open turn needs; return the added
    rows. Raises as `begin` does.
    """
    turn = _open_turn(conn, turn_id)
    if turn["state"] == TurnState.RECEIVED and not _is_silent(turn):
        _add(conn, turn, _user_row(turn), at)  # what the user said is kept, answered or not
    added = tuple(_add(conn, turn, new, at) for new in rows)
    state = TurnState.DONE if outcome.failure is None else TurnState.FAILED
    conn.execute(_END, (state, stamp(at), dump_turn(outcome), turn_id))
    conn.execute("DELETE FROM silent_rows WHERE turn_id = ?", (turn_id,))
    conn.execute("DELETE FROM calls WHERE turn_id = ?", (turn_id,))
    return added


def pending(conn: sqlite3.Connection) -> tuple[PendingTurn, ...]:
    """Return the turns that have not ended, in the order of the inbox."""
    return tuple(
        PendingTurn(
            turn_id=t["id"],
            request=_load_request(t),
            state=TurnState(t["state"]),
            attempts=t["attempts"],
            redacted=t["redacted"],
            at=moment(t["received_at"]),
        )
        for t in conn.execute(_PENDING)
    )


def last_asked(conn: sqlite3.Connection, session: SessionKey, start: str) -> str:
    """Return the message id of the session's newest flush turn whose id begins with `start`; "" if
    none.
    """
    found = conn.execute(_LAST_ASKED, {"session": session, "start": start}).fetchone()
    return str(found["message_id"]) if found else ""


def last_heard(conn: sqlite3.Connection) -> tuple[datetime, str] | None:
    """Return when the owner's newest message came, and its client; None before the first."""
    found = conn.execute(_LAST_HEARD).fetchone()
    return (moment(found["received_at"]), str(found["client"])) if found else None


def _insert(
    conn: sqlite3.Connection, session_id: int, request: TurnRequest, at: datetime, redacted: int
) -> int:
    tools = None if request.tools is None else dumps(sorted(request.tools))
    from_owner = request.origin is Origin.USER and request.kind is SessionKind.OWNER
    values = (
        session_id,
        request.message_id,
        request.origin,
        request.context,
        request.model,
        tools,
        request.client,
        from_owner,
        request.text,
        dumps(request.quoted),
        dump_blocks(request.images),
        redacted,
        int(request.patience.total_seconds()),
        stamp(at),
    )
    ((turn_id,),) = conn.execute(_INSERT_TURN, values).fetchall()
    return int(turn_id)


def _open_turn(conn: sqlite3.Connection, turn_id: int) -> sqlite3.Row:
    turn: sqlite3.Row | None = conn.execute(_TURN, (turn_id,)).fetchone()
    if turn is None:
        raise NotFound(f"there is no turn {turn_id}")
    if turn["ended_at"] is not None:
        raise InvalidRequest(f"turn {turn_id} has ended already")
    return turn


def _is_silent(turn: sqlite3.Row) -> bool:
    return bool(turn["origin"] != Origin.USER)


def _user_row(turn: sqlite3.Row) -> NewRow:
    request = _load_request(turn)
    return NewRow(RowRole.USER, request.blocks, source=request.source)


def _add(conn: sqlite3.Connection, turn: sqlite3.Row, new: NewRow, at: datetime) -> Row:
    turn_id: int = turn["id"]
    if not _is_silent(turn):
        return add_row(conn, turn["session_id"], new, at, turn_id)
    (seq,) = conn.execute(_NEXT_SILENT, (turn_id,)).fetchone()
    row = new.stored(seq, at, turn_id)
    columns = (row.role, stamp(at), row.provider, dump_usage(row.usage), row.tag, str(row.source))
    conn.execute(_INSERT_SILENT, (turn_id, seq, *columns, dump_blocks(row.blocks)))
    return row


def _load_request(turn: sqlite3.Row) -> TurnRequest:
    tools = turn["tools"]
    return TurnRequest(
        session=SessionKey(turn["session"]),
        text=turn["text"],
        message_id=turn["message_id"],
        origin=Origin(turn["origin"]),
        context=PromptScope(turn["context"]),
        model=turn["model"],
        tools=None if tools is None else frozenset(json.loads(tools)),
        client=turn["client"],
        images=load_images(turn["images"]),
        quoted=unite_spans(decode_spans(json.loads(turn["quoted"])), len(turn["text"])),
        patience=timedelta(seconds=turn["patience"]),
    )
