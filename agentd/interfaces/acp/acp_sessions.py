"""The methods of the Agent Client Protocol that agentd implements."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from agentd import __version__
from agentd.core.errors import AgentdError, InvalidRequest, NotFound
from agentd.core.message import Image
from agentd.core.ports import SessionStore
from agentd.core.transcript import Row, RowRole, SessionInfo
from agentd.core.turn import MAIN, SessionKey
from agentd.interfaces.acp import acp_schema
from agentd.interfaces.acp.acp_schema import SessionCall
from agentd.interfaces.acp.connection import Routes
from agentd.interfaces.acp.hub import Hub, update_params
from agentd.interfaces.acp.options import SessionOptions
from agentd.interfaces.acp.peer import ClientRole, Clients, Peer, PeerReply, Profile, read_bind
from agentd.interfaces.acp.pictures import Pictures
from agentd.interfaces.acp.prompts import Prompts, SessionTurns
from agentd.interfaces.acp.updates import Update, notice_updates, replay_updates, usage_update
from agentd.interfaces.commands.sessions import (
    existing_key,
    is_unused,
    new_key,
    parse_key,
    require_no_secret,
)

log = structlog.get_logger()

_PROTOCOL_VERSION = 1
_PAGE = 100
_CURSOR = re.compile(r"[1-9][0-9]{0,8}")
_NO_MCP = "The MCP servers that this client offers are not used."
Params = dict[str, Any]


class SessionView(Struct, frozen=True):
    """What clients are shown of a session besides its events."""

    replay_turns: int
    zone: str  # the owner's time zone
    max_frame_bytes: int
    pictures: Pictures


class ServerOffers(Protocol):
    """Port: uses the MCP servers that a client offers for a session, if the owner allows it."""

    def __call__(
        self, session: SessionKey, offers: Sequence[Any], tell: Callable[[str], None]
    ) -> Awaitable[None]:
        """Ask the owner and use the servers; `tell` sends the client the outcome."""


class SessionHooks(Struct, frozen=True):
    """What the other parts of agentd do when a client opens, forks, leaves or deletes a session.

    `erase` deletes a session for good. `on_session` is called whenever a client opens a session or
    sends a message in it, `closed` when clients have left a session, `forked` with a session and
    its new copy. `kinds` has the tools' kinds by name, for calls that are replayed; `welcome` takes
    the MCP servers that clients offer.
    """

    erase: Callable[[SessionKey], Awaitable[None]]
    on_session: Callable[[], None] = lambda: None
    closed: Callable[[SessionKey], None] = lambda _: None
    forked: Callable[[SessionKey, SessionKey], Awaitable[None]] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    welcome: ServerOffers | None = None


class AcpSessions:
    """The methods `initialize`, `authenticate` and `session/*`."""

    def __init__(
        self,
        *,
        turns: SessionTurns,
        store: SessionStore,
        hub: Hub,
        clients: Clients,
        prompts: Prompts,
        options: SessionOptions,
        hooks: SessionHooks,
        view: SessionView,
        group: asyncio.TaskGroup,
    ) -> None:
        self._group = group
        self._turns = turns
        self._store = store
        self._hub = hub
        self._clients = clients
        self._prompts = prompts
        self._options = options
        self._hooks = hooks
        self._view = view

    def routes(self) -> Routes:
        """Return the methods by name."""
        calls = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
            "session/list": self._list,
            "session/prompt": self._prompt,
        }
        return Routes(calls, {"session/cancel": self._cancel})

    async def _initialize(self, params: Params, peer: Peer) -> Params:
        peer.profile = read_profile(params)
        if peer.role.is_notified and not peer.profile.denies:
            self._clients.listen(peer)
        of_owner: Params = {"fork": {}, "delete": {}} if peer.role.is_owner else {}
        return {
            "protocolVersion": _PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {
                    "image": self._view.pictures.largest > 0,
                    "audio": False,
                    "embeddedContext": True,
                },
                "mcpCapabilities": {"http": False, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, **of_owner},
            },
            "authMethods": [],
            "agentInfo": {"name": "agentd", "title": "agentd", "version": __version__},
            "_meta": {
                "agentd/zone": self._view.zone,
                "agentd/maxFrameBytes": self._view.max_frame_bytes,
                "agentd/maxImageBytes": self._view.pictures.largest,
            },
        }

    async def _authenticate(self, params: Params, peer: Peer) -> Params:
        return {}

    async def _new(self, params: Params, peer: Peer) -> PeerReply:
        call = acp_schema.parse_new(params)
        wanted = call.meta.get("agentd/key")
        if wanted is not None and not isinstance(wanted, str):
            raise InvalidRequest("_meta.agentd/key: is no text")
        self._hub.require_room(peer)
        key = new_key() if wanted is None else parse_key(wanted)
        require_no_secret(call.cwd, "cwd")
        await self._store.create(key, call.cwd)
        await self._hub.attach(key, peer)
        return await self._opened(key, call, peer, {"sessionId": key})

    async def _resume(self, params: Params, peer: Peer) -> PeerReply:
        call = acp_schema.parse_again(params)
        key = await existing_key(self._store, call.session_id)
        await self._hub.attach(key, peer)
        return await self._opened(key, call, peer, {})

    async def _load(self, params: Params, peer: Peer) -> PeerReply:
        call = acp_schema.parse_load(params)
        key = await existing_key(self._store, call.session_id)
        rows = await self._shown_rows(key)
        held = self._hub.hold_back(key, peer)
        try:
            for seq, update in replay_updates(rows, self._hooks.kinds):
                await self._replay(key, update, {"agentd/row": seq}, peer)
            while held:
                await peer.wait_room()
                peer.send(held.popleft())
        finally:
            self._hub.stop_holding_back(key, peer)
        return await self._opened(key, call, peer, {})

    async def _replay(
        self, key: SessionKey, update: Update | Image, meta: Params, peer: Peer
    ) -> None:
        if isinstance(update, Image):
            shown = await self._view.pictures.shown(update)
            await peer.push("session/update", update_params(key, shown, meta))
        else:
            await peer.wait_room()
            peer.notify("session/update", update_params(key, update, meta))

    async def _fork(self, params: Params, peer: Peer) -> PeerReply:
        """Copy a session. The copy is of the same kind: words of a group stay in a group."""
        call = acp_schema.parse_again(params)
        source = await existing_key(self._store, call.session_id)
        self._hub.require_room(peer)
        key = new_key(source)
        require_no_secret(call.cwd, "cwd")
        await self._store.fork(source, key, call.cwd)
        if self._hooks.forked is not None:
            await self._hooks.forked(source, key)
        await self._hub.attach(key, peer)
        return await self._opened(key, call, peer, {"sessionId": key})

    async def _close(self, params: Params, peer: Peer) -> Params:
        """Detach the client from the session. If nobody else watches it, its turns are cancelled
        unless the client says that they go on.
        """
        call = acp_schema.parse_close(params)
        key = await existing_key(self._store, call.session_id)
        self._hub.detach(key, peer)
        if not self._hub.watchers(key):
            if call.cancels:
                self._turns.cancel(key)
            self._hooks.closed(key)
        return {}

    async def _delete(self, params: Params, peer: Peer) -> Params:
        """Delete a session; one that does not exist counts as deleted. Raises InvalidRequest for
        `main`.
        """
        key = SessionKey(acp_schema.parse_delete(params))
        if key == MAIN:
            raise InvalidRequest(
                "main always exists", cure="`agentd sessions delete main` empties it"
            )
        with suppress(NotFound):
            await self._hooks.erase(key)
            self._hub.detach(key, peer)
        return {}

    async def _set_mode(self, params: Params, peer: Peer) -> Params:
        call = acp_schema.parse_mode(params)
        key = await existing_key(self._store, call.session_id)
        await self._options.set_option(key, call.option, call.value)
        return {}

    async def _set_option(self, params: Params, peer: Peer) -> Params:
        call = acp_schema.parse_option(params)
        key = await existing_key(self._store, call.session_id)
        return {"configOptions": await self._options.set_option(key, call.option, call.value)}

    async def _shown_rows(self, key: SessionKey) -> tuple[Row, ...]:
        """Return the rows to replay: without the running turn, whose events the hub still holds,
        and without a gap before it.
        """
        turns = self._view.replay_turns
        while True:
            running = self._hub.running(key)
            rows = await self._store.recent(key, turns) if turns else ()
            if self._hub.running(key) == running:
                break
        text = self._hub.running_text(key)
        last = next((row.turn_id for row in reversed(rows) if row.turn_id is not None), None)
        if text is None or last is None:
            return rows
        words = next(
            (row.text for row in rows if row.turn_id == last and row.role is RowRole.USER), None
        )
        return tuple(row for row in rows if row.turn_id != last) if words == text else rows

    async def _list(self, params: Params, peer: Peer) -> Params:
        call = acp_schema.parse_list(params)
        start = _start(call.cursor)
        infos = [
            info
            for info in await self._store.sessions()
            if peer.role.sees(info.key) and not is_unused(info)
        ]
        if not peer.role.is_owner:  # the folder is not shown to others
            infos = [replace(info, cwd="") for info in infos]
        # A session without a folder belongs to every folder.
        infos = [info for info in infos if not call.cwd or info.cwd in ("", call.cwd)]
        page: Params = {"sessions": [_info(i, call.cwd) for i in infos[start : start + _PAGE]]}
        if start + _PAGE < len(infos):
            page["nextCursor"] = str(start + _PAGE)
        return page

    async def _prompt(self, params: Params, peer: Peer) -> Params:
        call = acp_schema.parse_prompt(params)
        key = await existing_key(self._store, call.session_id)
        self._hooks.on_session()
        return await self._prompts.prompt(key, call, peer)

    def _cancel(self, params: Params, peer: Peer) -> None:
        session = params.get("sessionId")
        if isinstance(session, str) and not self._turns.cancel(SessionKey(session)):
            self._prompts.cancel(SessionKey(session))

    async def _opened(
        self, key: SessionKey, call: SessionCall, peer: Peer, result: Params
    ) -> PeerReply:
        self._hooks.on_session()
        role = peer.role
        history = await self._store.load(key)
        if role.is_owner:
            result.update(self._options.opened(history.choices))
        result["_meta"] = {"agentd/seq": self._hub.seq(key), "agentd/key": key}
        used = history.used_tokens if self._hub.context_window else 0
        greetings = tuple(self._greetings(key, role, used))
        if (
            call.mcp_servers
        ):  # asked after the answer: before it the client does not know the session
            self._group.create_task(self._welcome(key, call.mcp_servers, peer))
        return PeerReply(result, greetings)

    async def _welcome(self, key: SessionKey, offers: Sequence[Any], peer: Peer) -> None:
        def tell(text: str) -> None:
            for update in notice_updates(text, "mcp_servers"):
                peer.notify("session/update", update_params(key, update))

        if self._hooks.welcome is None or not peer.role.is_owner or peer.profile.denies:
            tell(_NO_MCP)
            return
        try:
            await self._hooks.welcome(key, offers, tell)
        except AgentdError as error:
            tell(f"{_NO_MCP} {error.message}")
        except Exception:  # one client's offer must not end the others
            log.exception("servers_not_taken", session=key)
            tell(_NO_MCP)

    def _greetings(
        self, key: SessionKey, role: ClientRole, used: int
    ) -> Iterator[tuple[str, Params]]:
        if used:
            yield "session/update", update_params(key, usage_update(used, self._hub.context_window))
        yield "session/update", update_params(key, self._prompts.commands.available(role))


def read_profile(params: dict[str, Any]) -> Profile:
    """Read what a client says about itself in the params of `initialize`. Raises InvalidRequest.
    The connection's role is read elsewhere, before this.

    Some clients send a date as the protocol version. They are accepted like those with any other
    version, since the answer names the version that agentd speaks.

    The params are checked without the SDK's types, so that an early client need not wait until
    those are imported.
    """
    version = params.get("protocolVersion")
    if isinstance(version, bool) or not isinstance(version, int | str):
        raise InvalidRequest("protocolVersion: is missing, or neither a number nor text")
    meta = params.get("_meta")
    if not isinstance(meta, dict | None):
        raise InvalidRequest("_meta: is no object")
    read_bind(meta or {})
    info = params.get("clientInfo")
    name = info.get("name") if isinstance(info, dict) else None
    denies = (meta or {}).get("agentd/permissions") == "deny"
    can = params.get("clientCapabilities")
    forms = can.get("elicitation") if isinstance(can, dict) else None
    shows_forms = isinstance(forms, dict) and isinstance(forms.get("form"), dict)
    known = name[:100] if isinstance(name, str) else ""
    return Profile(known, denies, has_greeted=True, shows_forms=shows_forms)


def _start(cursor: str) -> int:
    """Return the offset at which a page of sessions begins. Raises InvalidRequest for a cursor that
    was never returned.
    """
    if cursor and not _CURSOR.fullmatch(cursor):
        raise InvalidRequest("cursor: is none that this method has returned")
    return int(cursor or 0)


def _info(info: SessionInfo, cwd: str) -> Params:
    return {
        "sessionId": info.key,
        "cwd": info.cwd or cwd or "/",
        "title": info.title or ("main" if info.key == MAIN else info.key),
        "updatedAt": info.updated_at.isoformat(),
        "_meta": {"agentd/rows": info.rows, "agentd/turns": info.turns},
    }
