"""`sessions`: the conversations that the daemon keeps, and the keys by which clients name them."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from agentd.core.compaction import CompactionReport
from agentd.core.errors import InvalidRequest, NotFound
from agentd.core.message import Text
from agentd.core.redaction import Redactor
from agentd.core.transcript import export_row
from agentd.core.turn import MAIN, SessionKey, kind_of
from agentd.interfaces.commands.declaration import MODEL_SECONDS, Caller, Group, Param
from agentd.interfaces.commands.plain import fields, table, visible

if TYPE_CHECKING:
    from agentd.core.ports import Ledger, SessionStore, Transcripts
    from agentd.core.prompt import Prompt
    from agentd.core.transcript import SessionInfo

SESSIONS = Group("sessions")

_EVER = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE_BYTES = 512 * 1024
_ROWS_AT_ONCE = 200
_COLUMNS = ("key", "updated_at", "rows", "turns", "context_tokens", "title")
_UNSAVED = {  # by the reason of a report in which nothing was flushed
    "flush": "nothing could be saved; `agentd logs` says why",
    "below_threshold": "all that was said is saved already",
}

_Key = Annotated[str, Param("The session's key.", metavar="KEY")]
_MainKey = Annotated[str, Param("The session's key.", metavar="KEY", usual="main")]


class WorkingSessions(Protocol):
    """Port: the sessions' turns."""

    def is_busy(self, session: SessionKey) -> bool:
        """Return whether a turn of the session runs."""

    def is_waiting(self, session: SessionKey) -> bool:
        """Return whether messages wait for the model's service."""

    def queued(self, session: SessionKey) -> int:
        """Return how many turns of the session wait."""

    def cancel(self, session: SessionKey) -> bool:
        """Cancel the user's oldest message; return whether there was one."""


class WorkingContexts(Protocol):
    """Port: what the owner asks of the sessions' contexts."""

    async def compact(self, session: SessionKey, wish: str = "") -> CompactionReport:
        """Compact the context now; `wish` is what the user wants the summary to contain."""

    async def flush(self, session: SessionKey) -> CompactionReport:
        """Flush the rows that no flush has saved yet."""

    async def explain(self, session: SessionKey) -> dict[str, Any]:
        """Return the inputs of the next decision about flush and compaction."""

    async def preview(self, session: SessionKey) -> Prompt:
        """Return the prompt of the session's next message."""

    async def start_over(self, session: SessionKey) -> CompactionReport:
        """Flush, then begin an empty context."""


class Importing(Protocol):
    """Port: imports transcripts."""

    async def take(
        self,
        caller: object,
        name: str,
        given: Sequence[dict[str, Any]],
        *,
        more: bool,
        chosen: bool,
    ) -> dict[str, Any]:
        """Append lines to the session with that name. With `more` the lines are held back until the
        caller's last piece; `chosen` says that the owner has chosen the name. Raises
        InvalidRequest, StorageError.
        """


def _sessions_text(result: dict[str, Any]) -> str:
    return table(result["sessions"], _COLUMNS, "no sessions")


def _cancelled_text(result: dict[str, Any]) -> str:
    return "cancelled" if result["cancelled"] else "no message is being answered there"


def _flushed_text(result: dict[str, Any]) -> str:
    """Return the figures of a flush, and why nothing was saved."""
    told = fields(result)
    if result.get("flushed") is False:
        told += f"\n{_UNSAVED.get(str(result.get('reason')), '')}".rstrip()
    if "unsaved" in result:  # which an explanation has not
        told += f"\n{CompactionReport(**result).unsaved_in_words()}".rstrip()
    return told


def _prompt_text(result: dict[str, Any]) -> str:
    """Return the parts of a prompt under headings, in the order in which they are sent."""
    parts = [
        *((f"system prompt, part {n}", text) for n, text in enumerate(result["system"], start=1)),
        ("tools", ", ".join(result["tools"]) or "none"),
        ("messages before", f"{result['messages_before']:,}"),
        ("message", result["message"]),
    ]
    return "\n\n".join(f"=== {name} ===\n{visible(text)}" for name, text in parts)


def _is_as_large(result: dict[str, Any]) -> bool:
    """Return whether the context could have been compacted and was not."""
    return result.get("compacted") is False and result["reason"] != "nothing_to_compact"


def _is_unsaved(result: dict[str, Any]) -> bool:
    """Return whether there were rows to save and the flush failed to save them."""
    return result.get("flushed") is False and result["reason"] != "below_threshold"


def _deleted_text(result: dict[str, Any]) -> str:
    done = "is empty now" if result["kept"] else "is erased"
    return (
        f"{result['key']} {done}; notes made from it stay in your workspace, "
        "and old backups hold it"
    )


class SessionCommands:
    """The owner's commands for sessions."""

    def __init__(
        self,
        store: SessionStore,
        turns: WorkingSessions,
        contexts: WorkingContexts,
        erase: Callable[[SessionKey], Awaitable[None]],
        ledger: Ledger,
        importer: Importing,
    ) -> None:
        """`erase` deletes a session in every place."""
        self._store = store
        self._turns = turns
        self._contexts = contexts
        self._erase = erase
        self._ledger = ledger
        self._importer = importer

    @SESSIONS.command(_sessions_text, name="list")
    async def all(self) -> dict[str, Any]:
        """List the sessions, the last used first."""
        infos = await self._store.sessions()
        listed = (info for info in infos if not is_unused(info) or self._turns.queued(info.key))
        return {"sessions": [session_json(info, self._turns) for info in listed]}

    async def used(self, limit: int) -> list[dict[str, Any]]:
        """Return the sessions that were used last, without unused ones."""
        infos = [info for info in await self._store.sessions() if not is_unused(info)]
        return [session_json(info, self._turns) for info in infos[:limit]]

    @SESSIONS.command(fields)
    async def show(self, key: _MainKey) -> dict[str, Any]:
        """Show one session: what it cost, how its context stands, and what was said last."""
        session = await self._existing(key)
        info = next((i for i in await self._store.sessions() if i.key == session), None)
        shown = session_json(info, self._turns) if info else {"key": session}
        history = await self._store.load(session)
        return {
            **shown,
            "summary": history.summary,
            "context_from": history.context_from,
            "covered_to": history.covered_to,
            "flush_due": history.flush_due,
            "flush_failures": history.flush_failures,
            "cost": await self._cost(session),
        }

    async def _cost(self, session: SessionKey) -> dict[str, Any]:
        """Return what all model calls of the session used, including silent turns."""
        spent = [row for row in await self._ledger.breakdown(_EVER) if row[0] == session]
        return {"tokens": sum(row[2] for row in spent), "usd": sum(row[3] for row in spent)}

    @SESSIONS.command(fields)
    async def export(
        self,
        key: _MainKey,
        *,
        first: Annotated[int, Param(least=1)] = 1,
        limit: Annotated[int | None, Param(least=1)] = None,
    ) -> dict[str, Any]:
        """Print a session's transcript, one JSON object a line."""
        # A page of rows: `next` is the first row of the page that follows, None at the end.
        session = await self._existing(key)
        lines: list[dict[str, Any]] = []
        size, left = 0, limit
        while left is None or left > 0:
            count = _ROWS_AT_ONCE if left is None else min(left, _ROWS_AT_ONCE)
            rows = await self._store.rows(session, first, count)
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
        more = await self._store.rows(session, first, 1)
        return {"lines": lines, "next": first if more else None}

    @SESSIONS.command(fields, name="import")
    async def take_in(
        self,
        caller: Caller,
        key: str,
        lines: list[dict[str, Any]],
        *,
        more: bool = False,
        chosen: bool = False,
    ) -> dict[str, Any]:
        """Bring in transcripts, ours, OpenClaw's or RustyClaw's; each becomes the session that its
        file is named for, as `agentd export` names them, or else `chat:<file name>`.
        """
        return await self._importer.take(caller, key, lines, more=more, chosen=chosen)

    @SESSIONS.command(_cancelled_text)
    async def cancel(self, key: _MainKey) -> dict[str, Any]:
        """Cancel the message that is being answered in a session, whoever sent it."""
        return {"cancelled": self._turns.cancel(await self._existing(key))}

    @SESSIONS.command(fields, seconds=MODEL_SECONDS, has_failed=_is_as_large)
    async def compact(
        self,
        key: _MainKey,
        *,
        instructions: Annotated[str, Param("What the summary should keep.", metavar="TEXT")] = "",
    ) -> dict[str, Any]:
        """Summarise the older part of a session, memories saved first."""
        session = await self._existing(key)
        return (await self._contexts.compact(session, instructions.strip())).as_json()

    @SESSIONS.command(_flushed_text, seconds=MODEL_SECONDS, has_failed=_is_unsaved)
    async def flush(
        self,
        key: _MainKey,
        *,
        explain: Annotated[
            bool, Param("Only say what was decided, and from which figures.")
        ] = False,
    ) -> dict[str, Any]:
        """Let the agent save what it should remember of a session."""
        session = await self._existing(key)
        if explain:
            return await self._contexts.explain(session)
        return (await self._contexts.flush(session)).as_json()

    @SESSIONS.command(_prompt_text)
    async def prompt(self, key: _MainKey) -> dict[str, Any]:
        """Show what the next message would be sent with: system prompt, tools, and what stands
        before it.
        """
        session = await self._existing(key)
        prompt = await self._contexts.preview(session)
        *before, message = prompt.messages
        return {
            "system": list(prompt.system),
            "tools": [tool.name for tool in prompt.tools],
            "messages_before": len(before),
            "message": "\n\n".join(b.text for b in message.blocks if isinstance(b, Text)),
        }

    @SESSIONS.command(fields, seconds=MODEL_SECONDS, has_failed=_is_as_large)
    async def reset(self, key: _Key) -> dict[str, Any]:
        """Save what should be remembered, then begin the session anew under its key."""
        session = await self._existing(key)
        return (await self._contexts.start_over(session)).as_json()

    @SESSIONS.command(_deleted_text, seconds=MODEL_SECONDS)
    async def delete(self, key: _Key) -> dict[str, Any]:
        """Erase a session for good; `main` is emptied. Notes made from it stay."""
        session = await self._existing(key)
        await self._erase(session)
        return {"key": session, "deleted": True, "kept": session == MAIN}

    async def _existing(self, key: str) -> SessionKey:
        """Return the key of an existing session. Raises NotFound."""
        return await existing_key(self._store, key)


def _state(key: SessionKey, turns: WorkingSessions) -> str:
    if turns.is_waiting(key):
        return "waiting"
    return "running" if turns.is_busy(key) else "idle"


def session_json(info: SessionInfo, turns: WorkingSessions) -> dict[str, Any]:
    """Return a session in the shape of `status` and `sessions list`."""
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


_MADE = re.compile(r"chat:[0-9a-f]{12}")  # for a client that named none


def is_unused(info: SessionInfo) -> bool:
    """Return whether a client made the session without naming it and nothing was ever said
    in it.
    """
    return not info.rows and not info.turns and bool(_MADE.fullmatch(info.key))


async def existing_key(store: Transcripts, text: str) -> SessionKey:
    """Return the key of an existing session; `main` always exists. Raises NotFound."""
    key = SessionKey(text)
    if text == MAIN or await store.exists(key):
        return key
    raise absent(text)


def absent(text: str) -> NotFound:
    """Return the error for a session that does not exist; also used for one that the client must
    not know of.
    """
    return NotFound(
        f"there is no session {text[:100]!r}", cure="`agentd sessions list` shows which there are"
    )


_KEY = re.compile(r"(?:chat|group|isolated):[^/\x00-\x1f\x7f]{1,200}")

_SECRETS = Redactor()


def parse_key(text: str) -> SessionKey:
    """Return the key of a session that may be created. Raises InvalidRequest."""
    require_no_secret(text, "a session's key")
    if text == MAIN or (_KEY.fullmatch(text) and text.isprintable()):
        return SessionKey(text)
    raise InvalidRequest(
        f"{text[:100]!r} is no session key", cure="use main, chat:NAME, group:NAME or isolated:NAME"
    )


def require_no_secret(name: str, what: str) -> None:
    """Raise InvalidRequest if a name contains a service's key: names are stored unredacted and
    appear in lists and logs.
    """
    if _SECRETS.holds(name):
        raise InvalidRequest(f"{what} holds a key of a service", cure="name it something else")


def new_key(like: SessionKey = MAIN) -> SessionKey:
    """Return an unused key for a session of the same kind as `like`; `chat:` for `main`.
    `is_unused` recognizes keys of this form.
    """
    prefix = "chat" if like == MAIN else like.partition(":")[0]
    return SessionKey(f"{prefix}:{secrets.token_hex(6)}")
