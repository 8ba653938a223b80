"""`agentd acp`: connect an editor on standard input and output to the daemon."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.app.cli.ask import sockets
from agentd.app.cli.piped import lines_of
from agentd.app.cli.report import note, reporting
from agentd.core.errors import InvalidRequest
from agentd.interfaces.acp import frames
from agentd.interfaces.client.attachments import Attachment, smaller
from agentd.interfaces.client.connection import CURE, alone, binding, dial
from agentd.interfaces.client.remote_error import ConnectionLost, RemoteError
from agentd.interfaces.client.reply import marks

_LAST_ANSWERS_SECONDS = 2.0


def acp(
    bind: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Let nothing exist but this session: for group chats."),
    ] = None,
) -> None:
    """Speak the Agent Client Protocol on standard input and output, for editors and bridges."""
    with reporting():
        asyncio.run(carry(sockets(), bind))


class Bridge:
    """Passes lines between a client on standard streams and the daemon, and tracks the client's
    open calls. Lines are passed unchanged, except that images of a prompt which are larger than the
    daemon takes are scaled down.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._open: set[str] = set()
        self._answered = asyncio.Event()
        self._largest = 0  # bytes of an image that the daemon takes; 0: not known yet

    async def run(self, descriptor: int = 0) -> None:
        """Pass lines until the input ends, and then wait up to 2 seconds for the answers to open
        calls. Raises ConnectionLost if the daemon ends first.
        """
        async with alone(), asyncio.TaskGroup() as group:
            back = group.create_task(self._back())
            async for line in lines_of(descriptor):
                if (fitting := await self._fitting(line)) is not None:
                    self._note(fitting, sent=True)
                    self._writer.write(fitting + b"\n")
                    await self._writer.drain()
            try:
                async with asyncio.timeout(_LAST_ANSWERS_SECONDS):
                    while self._open:
                        self._answered.clear()
                        await self._answered.wait()
            except TimeoutError:
                pass  # a long turn: the daemon finishes it without us
            back.cancel()

    async def _back(self) -> None:
        try:
            while line := await self._reader.readline():
                await asyncio.to_thread(_write, line)
                self._note(line, sent=False)
        except OSError as error:
            raise ConnectionLost("the connection to the daemon broke", cure=CURE) from error
        raise ConnectionLost("the daemon closed the connection", cure=CURE)

    def _note(self, line: bytes, *, sent: bool) -> None:
        try:
            frame = json.loads(line)
        except ValueError:
            return  # the daemon answers an invalid line
        if not isinstance(frame, dict) or frame.get("id") is None:
            return
        if not sent and isinstance(result := frame.get("result"), dict):
            limit = marks(result).get("agentd/maxImageBytes")
            self._largest = limit if isinstance(limit, int) else self._largest
        if ("method" in frame) == sent:
            if sent:
                self._open.add(json.dumps(frame["id"]))
            else:
                self._open.discard(json.dumps(frame["id"]))
                self._answered.set()

    async def _fitting(self, line: bytes) -> bytes | None:
        """Return the line with its images scaled down to what the daemon takes. If that fails,
        answer the call with an error here and return None: the daemon would end the connection over
        a line that is too long.
        """
        if len(line) <= self._largest or not self._largest or b'"session/prompt"' not in line:
            return line
        try:
            frame = json.loads(line)
            blocks = list(frame["params"]["prompt"])
        except (ValueError, LookupError, TypeError):
            return line  # the daemon answers an invalid prompt
        try:
            frame["params"]["prompt"] = [await self._smaller(block) for block in blocks]
        except InvalidRequest as error:
            data = {"code": error.reason, "cure": error.cure}
            refusal = frames.error(frame.get("id"), frames.INVALID_PARAMS, error.message, data)
            await asyncio.to_thread(_write, json.dumps(refusal).encode() + b"\n")
            return None
        return json.dumps(frame).encode()

    async def _smaller(self, block: Any) -> Any:
        """Return a block of a prompt; an image that is too large is scaled down. Raises
        InvalidRequest.
        """
        match block:
            case {"type": "image", "data": str(encoded)}:
                pass
            case _:
                return block
        try:
            data = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            return block
        image = Attachment("the image", "", data)
        fitting = await image.fitting(self._largest)
        if fitting is image:
            return block
        note(smaller(image.name, len(data), len(fitting.data)))
        return {**block, **fitting.block()}


async def carry(sockets: Sequence[Path], bind: str | None = None) -> None:
    """Connect this process's standard input and output to the daemon until the input ends; with
    `bind` the connection is restricted to that session. Raises DaemonUnreachable, ConnectionLost,
    and RemoteError for an invalid key.
    """
    reader, writer = await dial(sockets)
    try:
        if bind is not None:
            await _bind(reader, writer, bind)
        await Bridge(reader, writer).run()
    finally:
        writer.close()


async def _bind(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: str) -> None:
    """Restrict the connection to one session. Called before any line of the client is passed on.
    Raises RemoteError, ConnectionLost.
    """
    call = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": binding(session)}
    writer.write(json.dumps(call).encode() + b"\n")
    try:
        answer = json.loads(await reader.readline() or b"{}")
    except (OSError, ValueError) as error:
        raise ConnectionLost("the connection to the daemon broke", cure=CURE) from error
    if "error" in answer:
        raise RemoteError.from_frame(answer["error"])
    if "result" not in answer:
        raise ConnectionLost("the daemon closed the connection", cure=CURE)


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
