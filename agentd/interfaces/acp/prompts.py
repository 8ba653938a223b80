"""`session/prompt`: submits a message to the engine. Its sender only watches the turn."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import AgentdError, InvalidRequest
from agentd.core.ports import SubmittedTurn, TurnRunner
from agentd.core.turn import SessionKey, StopReason, Turn, TurnRequest
from agentd.interfaces.acp.acp_schema import PromptCall
from agentd.interfaces.acp.faults import TurnFailed
from agentd.interfaces.acp.hub import Hub, update_params
from agentd.interfaces.acp.peer import Peer
from agentd.interfaces.acp.pictures import Pictures
from agentd.interfaces.acp.slash_commands import Commands
from agentd.interfaces.acp.updates import notice_updates, text_updates, usage_json
from agentd.interfaces.commands.sessions import WorkingSessions, require_no_secret

log = structlog.get_logger()

_MOST_PATIENT = 7 * 86_400  # seconds
_LONGEST_TEXT = 256 * 1024  # characters that are repeated in the answer's `_meta`


Tell = Callable[[str], None]


class SessionTurns(WorkingSessions, TurnRunner, Protocol):
    """Port: the engine's turns, and what their sessions do besides."""

    def cancel(self, session: SessionKey) -> bool:
        """Cancel the turn of the user's oldest message in the session; False if there is none."""


class AddMentioned(Protocol):
    """Port: adds to a message the resources that its words mention."""

    def __call__(
        self, request: TurnRequest, tell: Tell, *, may_ask: bool
    ) -> Awaitable[TurnRequest]:
        """Return the message to submit; `tell` reports to its sender what was added."""


class _MessageBeingStored(Struct):
    """A message that is being stored: the future for its sender, and whether the sender has
    cancelled it.
    """

    ticket: asyncio.Future[SubmittedTurn]
    is_withdrawn: bool = False


class Prompts:
    """Submits messages and waits for their ends.

    A submission belongs to `group`, not to the client's call: a client that leaves while its
    message is being stored must not leave it stored but never run. `patience` is how long a message
    waits for a service that is away, unless it says so itself.
    """

    def __init__(
        self,
        turns: SessionTurns,
        hub: Hub,
        commands: Commands,
        pictures: Pictures,
        group: asyncio.TaskGroup,
        patience: timedelta,
        add_mentioned: AddMentioned | None = None,
    ) -> None:
        self._add_mentioned = add_mentioned
        self._adding: dict[SessionKey, list[asyncio.Timeout]] = {}
        self._patience = patience
        self._turns = turns
        self._hub = hub
        self._pictures = pictures
        self.commands = commands
        self._group = group

    async def prompt(self, session: SessionKey, call: PromptCall, peer: Peer) -> dict[str, Any]:
        """Return the answer to `session/prompt`. Raises TurnFailed, InvalidRequest for a slash
        command that the client may not use or that has an attachment, and what
        `TurnRunner.submit` raises.

        If the client cancels the call, its turn is cancelled: at once, or as soon as the message is
        stored.
        """
        await self._hub.attach(session, peer)
        if (found := self.commands.find(call, peer.role)) is not None:
            command, argument = found
            text = await command.act(session, argument)
            await self._show(session, text, peer, {"agentd/command": command.name})
            return {"stopReason": str(StopReason.END_TURN), "_meta": {"agentd/text": text}}
        message_id = _message_id(call.meta)
        request = TurnRequest(
            session,
            call.text,
            message_id,
            client=peer.profile.name,
            quoted=call.quoted,
            patience=_patience(call.meta, self._patience),
        )
        completed = await self._with_mentioned(request, peer)
        if completed is None:
            return {"stopReason": str(StopReason.CANCELLED)}
        try:
            ticket = await self._submit(completed, call.images, peer)
            turn = ticket.receipt.ended
            if turn is None:
                turn = await ticket.wait()
            elif turn.failure is None:
                await self._show(session, turn.text, peer, {"agentd/repeated": True})
            return _answer(turn)
        except asyncio.CancelledError:
            if peer.is_withdrawn():
                self._turns.cancel_message(session, message_id)
            raise

    def cancel(self, session: SessionKey) -> None:
        """Cancel the messages of the session to which resources are still being added."""
        for limit in self._adding.pop(session, []):
            limit.reschedule(0)

    async def _with_mentioned(self, request: TurnRequest, peer: Peer) -> TurnRequest | None:
        """Return the message with the resources that its words mention, if its sender may mention
        resources; None if it was cancelled meanwhile.
        """
        if self._add_mentioned is None or not peer.role.is_owner:
            return request

        def tell(text: str) -> None:
            for update in notice_updates(text, "attached"):
                peer.notify("session/update", update_params(request.session, update))

        limit = asyncio.timeout(None)
        self._adding.setdefault(request.session, []).append(limit)
        try:
            async with limit:
                return await self._add_mentioned(request, tell, may_ask=not peer.profile.denies)
        except TimeoutError:
            if limit.expired():
                return None
            raise
        finally:
            left = [one for one in self._adding.pop(request.session, []) if one is not limit]
            if left:
                self._adding[request.session] = left

    async def _submit(
        self, request: TurnRequest, pictures: Sequence[bytes], peer: Peer
    ) -> SubmittedTurn:
        """Return the turn when its message is stored. The storing goes on if the caller leaves."""
        storing = _MessageBeingStored(asyncio.get_running_loop().create_future())
        self._group.create_task(self._store_and_accept(request, pictures, peer, storing))
        try:
            return await storing.ticket
        except asyncio.CancelledError:
            storing.is_withdrawn = peer.is_withdrawn()
            raise

    async def _store_and_accept(
        self,
        request: TurnRequest,
        pictures: Sequence[bytes],
        peer: Peer,
        storing: _MessageBeingStored,
    ) -> None:
        session, message_id = request.session, request.message_id
        self._hub.remember_author(session, message_id, peer)
        try:
            async with self._pictures.keep(pictures) as images:
                ticket = await self._turns.submit(replace(request, images=images))
                # From here, with no pause in between, so that it precedes the first words.
                _tell_accepted(ticket, request, peer)
        except Exception as error:  # the waiting call answers it; the group must live on
            self._hub.withdraw(session, message_id, peer)
            if not storing.ticket.done():
                storing.ticket.set_exception(error)
            elif not isinstance(error, AgentdError):
                log.exception("message_not_stored", session=session)  # its sender has left
            return
        if ticket.receipt.ended is not None:
            self._hub.withdraw(session, message_id, peer)
        if storing.is_withdrawn:
            self._turns.cancel_message(session, message_id)
        if not storing.ticket.done():
            storing.ticket.set_result(ticket)

    async def _show(self, session: SessionKey, text: str, peer: Peer, meta: dict[str, Any]) -> None:
        for update in text_updates("agent_message_chunk", text):
            await peer.wait_room()
            peer.notify("session/update", update_params(session, update, meta))


def _tell_accepted(ticket: SubmittedTurn, request: TurnRequest, peer: Peer) -> None:
    accepted: dict[str, Any] = {
        "sessionId": request.session,
        "messageId": request.message_id,
        "seq": ticket.receipt.turn_id,
    }
    if ticket.receipt.redacted:
        accepted["redacted"] = ticket.receipt.redacted
    if peer.role.is_notified:
        peer.notify("_agentd/accepted", accepted)


def _message_id(meta: dict[str, Any]) -> str:
    given = meta.get("agentd/messageId")
    if given is None:
        return uuid.uuid4().hex
    if not isinstance(given, str) or not 1 <= len(given) <= 200 or not given.isprintable():
        raise InvalidRequest(
            "_meta.agentd/messageId: is no printable text of 1 to 200 characters",
            cure="give the message another name, or none",
        )
    require_no_secret(given, "_meta.agentd/messageId")
    return given


def _patience(meta: dict[str, Any], otherwise: timedelta) -> timedelta:
    given = meta.get("agentd/patience")
    if given is None:
        return otherwise
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= _MOST_PATIENT:
        raise InvalidRequest(
            f"_meta.agentd/patience: is no whole number of seconds from 0 to {_MOST_PATIENT}",
            cure=(
                "give the seconds that the message may wait for the model's "
                "service, or leave it out"
            ),
        )
    return timedelta(seconds=given)


def _answer(turn: Turn) -> dict[str, Any]:
    if turn.failure is not None:
        raise TurnFailed(turn.failure)
    meta: dict[str, Any] = {
        "agentd/messageId": turn.message_id,
        "agentd/toolCalls": _told_calls(turn),
        "agentd/usage": turn.usage.as_json(),
    }
    if len(turn.text) <= _LONGEST_TEXT:
        meta["agentd/text"] = turn.text
    return {
        "stopReason": str(turn.stop_reason or StopReason.END_TURN),
        "usage": usage_json(turn.usage),
        "_meta": meta,
    }


def _told_calls(turn: Turn) -> list[dict[str, Any]]:
    """Return the turn's tool calls; without their inputs if those do not fit into an answer."""
    calls = [call.as_json() for call in turn.tool_calls]
    if len(json.dumps(calls, default=str)) <= _LONGEST_TEXT:
        return calls
    return [{key: value for key, value in call.items() if key != "input"} for call in calls]
