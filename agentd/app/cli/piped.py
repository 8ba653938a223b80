"""Messages from programs: `agentd send`, and a chat that reads one message a line from a pipe. No
user is present, so nothing is permitted that needs a yes.
"""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentd.app.cli.report import fail, note, say
from agentd.core.errors import AgentdError, DaemonUnreachable, InvalidRequest
from agentd.interfaces.client.attachments import Attachment, smaller
from agentd.interfaces.client.conversation import Conversation, join_session
from agentd.interfaces.client.reply import ENDINGS, Reply, marks, words

_BLOCK = 65536
_AHEAD = 16  # blocks read before the consumer takes one


async def lines_of(descriptor: int) -> AsyncIterator[bytes]:
    """Yield the lines of a pipe, file or terminal, without line ends. A thread reads them, since an
    event loop cannot wait for a regular file. It calls `os.read`, because a blocked read of
    `sys.stdin` holds a lock that the interpreter needs at exit.
    """
    loop = asyncio.get_running_loop()
    blocks: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(_AHEAD)

    def pump() -> None:
        block = b"x"
        while block:
            room.acquire()
            block = os.read(descriptor, _BLOCK)
            try:
                loop.call_soon_threadsafe(blocks.put_nowait, block)
            except RuntimeError:
                return  # the event loop has ended, and with it the consumer

    threading.Thread(target=pump, daemon=True, name="agentd-stdin").start()
    rest = b""
    while block := await blocks.get():
        room.release()
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest


_NO_ANSWER = {"outcome": {"outcome": "cancelled"}}


class PipedOutput:
    """A companion of a conversation without a user: collects the reply, prints alerts and delays on
    stderr, and permits nothing.
    """

    def __init__(self, session: str) -> None:
        self.session = session
        self.reply = Reply()

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Add the session's updates to the reply; print alerts and delays on stderr."""
        if method == "_agentd/alert":
            note(f"alert: {params.get('text', '')}")
        elif method == "session/update" and params.get("sessionId") == self.session:
            self.reply.hear(params)
            if marks(params).get("agentd/notice") == "waiting":
                note(words(params.get("update") or {}))

    async def requested(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Answer a request for permission with `cancelled`; other methods are unknown."""
        return _NO_ANSWER if method == "session/request_permission" else None

    def lost(self) -> None:
        """Print on stderr that the daemon is gone and waited for."""
        note("the daemon has gone; waiting for it to come back")

    def regained(self) -> None:
        """Drop the reply so far, which is sent again, and print on stderr that the daemon is
        back.
        """
        self.reply.clear()
        note("the daemon is back")

    def made_smaller(self, name: str, size: int, made: int) -> None:
        """Print on stderr that an image is sent scaled down."""
        note(smaller(name, size, made))


async def send(
    sockets: Sequence[Path],
    session: str,
    text: str,
    message_id: str | None = None,
    images: Sequence[Attachment] = (),
    wait: int = 0,
) -> dict[str, Any]:
    """Send one message and return the finished turn in the shape of `agentd send --json`. The
    daemon waits at most `wait` seconds for a model service that is away.

    Raises RemoteError for a failed turn, DaemonUnreachable, InvalidRequest for an image that cannot
    be sent.
    """
    bystander = PipedOutput(session)
    async with join_session(sockets, session, bystander, deny=True) as conversation:
        return await _turn(conversation, bystander, text, message_id, images, wait=wait)


async def answer_lines(
    sockets: Sequence[Path], session: str, descriptor: int, wait: int = 0
) -> int:
    """Send each line read from `descriptor` as a message, and print the replies on stdout. Return
    the exit status: 0 if every turn went well, else 1. The daemon waits at most `wait` seconds a
    message for a model service that is away.

    Raises DaemonUnreachable if the daemon is gone and does not come back.
    """
    status = 0
    bystander = PipedOutput(session)
    async with join_session(sockets, session, bystander, deny=True) as conversation:
        async for line in lines_of(descriptor):
            if not line.strip():
                continue
            try:
                turn = await _turn(conversation, bystander, _decoded(line), wait=wait)
            except DaemonUnreachable:
                raise
            except AgentdError as error:
                fail(error)
                status = 1
            else:
                say(turn["text"])
                tell_ending(turn)
    return status


def tell_ending(turn: Mapping[str, Any]) -> None:
    """Print on stderr why the turn ended, unless the model was done."""
    if ending := ENDINGS.get(turn["stop_reason"]):
        note(ending)


async def _turn(
    conversation: Conversation,
    bystander: PipedOutput,
    text: str,
    message_id: str | None = None,
    images: Sequence[Attachment] = (),
    *,
    wait: int,
) -> dict[str, Any]:
    message_id = uuid.uuid4().hex if message_id is None else message_id
    bystander.session = conversation.session
    bystander.reply.clear()
    result = await conversation.say(text, message_id, images, wait=wait)
    return bystander.reply.turn(result, conversation.session, message_id)


def _decoded(line: bytes) -> str:
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"the message is not UTF-8 (byte {error.start + 1} of the line)",
            cure="convert the input, for example with iconv",
        ) from error
