"""Messages from programs: one at a time, nobody there to be asked."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentd.cli.lines import lines_of
from agentd.cli.report import fail, note
from agentd.client.conversation import Conversation, joined
from agentd.errors import AgentdError, DaemonUnreachable, InvalidRequest

_NO_ANSWER = {"outcome": {"outcome": "cancelled"}}


class Bystander:
    """Tells on stderr what is not a reply, and allows nothing."""

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass on alerts."""
        if method == "_agentd/alert":
            note(f"alert: {params.get('text', '')}")

    async def requested(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Leave every question unanswered."""
        return _NO_ANSWER if method == "session/request_permission" else None

    def lost(self) -> None:
        """Say why it takes longer."""
        note("the daemon has gone; waiting for it to come back")

    def regained(self) -> None:
        """Say that it goes on."""
        note("the daemon is back; sending the message again (it runs once)")


async def send(
    sockets: Sequence[Path], session: str, text: str, message_id: str | None = None
) -> dict[str, Any]:
    """The finished turn of one message, in the shape of `agentd send --json`.

    Raises RemoteError for a failed turn, DaemonUnreachable.
    """
    async with joined(sockets, session, Bystander(), deny=True) as conversation:
        return await _turn(conversation, text, message_id)


async def answer_lines(sockets: Sequence[Path], session: str, descriptor: int) -> int:
    """Answer one message a line on stdout. 0 when every turn went well, else 1.

    Raises DaemonUnreachable when the daemon goes away for good.
    """
    status = 0
    async with joined(sockets, session, Bystander(), deny=True) as conversation:
        async for line in lines_of(descriptor):
            if not line.strip():
                continue
            try:
                turn = await _turn(conversation, _decoded(line), None)
            except DaemonUnreachable:
                raise
            except AgentdError as error:
                fail(error)
                status = 1
            else:
                print(turn["text"], flush=True)
    return status


async def _turn(conversation: Conversation, text: str, message_id: str | None) -> dict[str, Any]:
    result = await conversation.say(text, message_id or uuid.uuid4().hex)
    turn: dict[str, Any] = result["_meta"]["agentd/turn"]
    return turn


def _decoded(line: bytes) -> str:
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"the message is not UTF-8 (byte {error.start + 1} of the line)",
            cure="convert the input, for example with iconv",
        ) from error
