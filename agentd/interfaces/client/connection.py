"""One connection to the daemon over its Unix socket: calls out, notifications and questions in."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import agentd
from agentd.core.errors import AgentdError, Busy, DaemonUnreachable, InvalidRequest
from agentd.interfaces.client.remote_error import ConnectionLost, RemoteError

MAX_FRAME_BYTES = 1024 * 1024  # what a daemon takes in one line, unless it says another number
WITHDRAWN = -32800  # the answer to a call that was taken back
_METHOD_NOT_FOUND = -32601
_SERVER_ERROR = -32000

_SUN_PATH = 107  # bytes of a socket path that the kernel takes
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_CONNECT_SECONDS = 5.0
_ANSWER_BYTES = 64 * 1024 * 1024  # of one line from the daemon, which is trusted but may be broken
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
CURE = "start the daemon with `agentd up`; `agentd logs` shows what it did last"

Params = Mapping[str, Any]
_PROTOCOL_VERSION = 1


class Watcher(Protocol):
    """Who hears what the daemon says unasked."""

    def notified(self, method: str, params: Params) -> None:
        """Take a notification. Must not block."""

    async def requested(self, method: str, params: Params) -> Params | None:
        """Answer a question of the daemon; None says that the method is unknown here."""


class Deaf:
    """A watcher that hears nothing and answers nothing."""

    def notified(self, method: str, params: Params) -> None:
        """Drop it."""

    async def requested(self, method: str, params: Params) -> Params | None:
        """Know no method."""
        return None


class DaemonConnection:
    """A JSON-RPC peer of the daemon. `listen` must run for anything to arrive. `max_frame_bytes` may
    be set to what the daemon says.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watcher: Watcher
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._watcher = watcher
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._methods: dict[int, str] = {}  # of the calls that wait
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._last_id = 0
        self.max_frame_bytes = MAX_FRAME_BYTES
        self._closed = asyncio.Event()
        self._fault: AgentdError | None = None

    async def call(
        self, method: str, params: Params | None = None, *, within: float | None = None
    ) -> Any:
        """The result of one method.

        Raises RemoteError when the daemon says no, ConnectionLost when it goes away, Busy when it
        takes longer than `within` seconds (None: as long as it takes), InvalidRequest for a
        message that is too large or no text.
        """
        if self._closed.is_set():
            raise self._end()
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._methods[number] = method
        try:
            async with asyncio.timeout(within):
                await self._send({"id": number, "method": method, "params": params or {}})
                return await answer
        except TimeoutError as error:
            raise Busy(
                f"the daemon has not answered {method} within {within:g} s",
                cure="look at `agentd status`, then try again",
            ) from error
        finally:
            del self._waiting[number], self._methods[number]

    async def take_back(self, method: str) -> None:
        """Tell the daemon that nobody wants the open calls of a method any more; it answers them with
        the error `WITHDRAWN`. Raises ConnectionLost.
        """
        for number in [n for n, called in self._methods.items() if called == method]:
            await self.notify("$/cancel_request", {"requestId": number})

    async def notify(self, method: str, params: Params) -> None:
        """Say something that has no answer. Raises ConnectionLost."""
        await self._send({"method": method, "params": params})

    async def listen(self) -> None:
        """Hand out what arrives until the daemon closes; then every open call fails."""
        try:
            async with asyncio.TaskGroup() as group:
                while line := await self._line():
                    self._take(line, group)
                for question in self._questions.values():
                    question.cancel()
        finally:
            self._closed.set()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(self._end())

    async def wait_closed(self) -> None:
        """Return when the daemon has gone."""
        await self._closed.wait()

    def _end(self) -> AgentdError:
        return self._fault or ConnectionLost("the daemon closed the connection", cure=CURE)

    async def _line(self) -> bytes:
        """The next line, empty at the end."""
        try:
            return await self._reader.readuntil(b"\n")
        except (asyncio.IncompleteReadError, OSError):
            return b""
        except asyncio.LimitOverrunError:
            self._fault = ConnectionLost("the daemon sent an endless line", cure=CURE)
            return b""

    def _take(self, line: bytes, group: asyncio.TaskGroup) -> None:
        try:
            frame = json.loads(line)
        except ValueError:
            frame = None
        match frame:
            case {"method": str(method), "id": number}:
                self._ask(group, number, method, _params(frame))
            case {"method": "$/cancel_request", "params": {"requestId": number}}:
                if question := self._questions.get(json.dumps(number)):
                    question.cancel()
            case {"method": str(method)}:
                self._watcher.notified(method, _params(frame))
            case {"id": None, "error": dict(error)}:
                self._fault = RemoteError.from_frame(error)
                for waiting in tuple(self._waiting):  # whichever it was will have no other answer
                    self._resolve(waiting, self._fault)
            case {"id": int(number), "error": dict(error)}:
                self._resolve(number, RemoteError.from_frame(error))
            case {"id": int(number), "result": result}:
                self._resolve(number, result)
            # Anything else is no JSON-RPC and belongs to no call of ours.

    def _ask(self, group: asyncio.TaskGroup, number: Any, method: str, params: Params) -> None:
        key = json.dumps(number)
        question = group.create_task(self._answer(number, method, params))
        self._questions[key] = question
        question.add_done_callback(lambda _: self._questions.pop(key, None))

    def _resolve(self, number: int, outcome: Any) -> None:
        answer = self._waiting.get(number)
        if answer is None or answer.done():
            return
        if isinstance(outcome, AgentdError):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)

    async def _answer(self, number: Any, method: str, params: Params) -> None:
        try:
            result = await self._watcher.requested(method, params)
        except AgentdError as error:
            reply: Params = {"error": {"code": _SERVER_ERROR, "message": error.message}}
        else:
            reply = {"result": result}
            if result is None:
                reply = {"error": {"code": _METHOD_NOT_FOUND, "message": f"unknown: {method}"}}
        if self._closed.is_set():
            return
        with suppress(ConnectionLost):  # nobody is left to hear the answer
            try:
                await self._send({"id": number, **reply})
            except InvalidRequest as error:
                told = {"code": _SERVER_ERROR, "message": error.message}
                await self._send({"id": number, "error": told})

    async def _send(self, frame: Params) -> None:
        try:
            line = json.dumps({"jsonrpc": "2.0", **frame}, ensure_ascii=False, allow_nan=False)
            data = line.encode() + b"\n"
        except UnicodeEncodeError:
            msg = "the text has bytes that are not UTF-8"
            raise InvalidRequest(msg, cure="convert it to UTF-8, with iconv for example") from None
        except ValueError:
            msg = "a number in it is none that JSON has"
            raise InvalidRequest(msg, cure="leave infinities out, and what is no number") from None
        if len(data) > self.max_frame_bytes:
            raise InvalidRequest(
                f"the message has {len(data)} bytes, and the daemon takes {self.max_frame_bytes}",
                cure="put the long text into a file of the workspace and mention it",
            )
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise self._end() from error


async def dial(sockets: Sequence[Path]) -> Streams:
    """Streams to the first daemon that answers. Raises DaemonUnreachable."""
    refused = ""
    for path in sockets:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await _open(path)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            continue
        except TimeoutError:
            refused = f"nothing answers at {path}"
        except OSError as error:
            refused = f"{path}: {error.strerror}"
    tried = ", ".join(str(path) for path in sockets)
    raise DaemonUnreachable(refused or f"no daemon listens at {tried}", cure=CURE)


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """A spelling of `path` that is short enough for the kernel, good as long as the block lasts."""
    if len(os.fsencode(path)) <= _SUN_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


async def _open(path: Path) -> Streams:
    with reachable(path) as short:
        reader, writer = await asyncio.open_unix_connection(short, limit=_ANSWER_BYTES)
    sock = writer.get_extra_info("socket")
    peer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(peer)
    if os.getuid() not in {0, uid} and uid != 0:
        writer.close()
        raise DaemonUnreachable(
            f"the daemon at {path} belongs to another user (id {uid})",
            cure="remove that socket or set AGENTD_HOME to your own folder",
        )
    return reader, writer


@asynccontextmanager
async def connect(
    sockets: Sequence[Path], watcher: Watcher | None = None
) -> AsyncIterator[DaemonConnection]:
    """A listening connection to the first daemon that answers. Raises DaemonUnreachable."""
    reader, writer = await dial(sockets)
    connection = DaemonConnection(reader, writer, watcher or Deaf())
    try:
        async with alone(), asyncio.TaskGroup() as group:
            listening = group.create_task(connection.listen())
            try:
                yield connection
            finally:
                listening.cancel()
    finally:
        writer.close()


@asynccontextmanager
async def alone() -> AsyncIterator[None]:
    """Let the one failure of a task group out as itself.

    Raises that failure, or the group as it is if there are several.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        failure: BaseException = group
        while isinstance(failure, BaseExceptionGroup) and len(failure.exceptions) == 1:
            failure = failure.exceptions[0]
        raise failure from None


def _params(frame: Mapping[str, Any]) -> Params:
    params = frame.get("params")
    return params if isinstance(params, dict) else {}


def introduction(*, deny: bool, forms: bool = False) -> dict[str, Any]:
    """Params of `initialize`; `deny` says that nobody sits here, who could see alerts or allow anything,
    `forms` that forms are shown here, and filled in.
    """
    introduction: dict[str, Any] = {
        "protocolVersion": _PROTOCOL_VERSION,
        "clientCapabilities": {"_meta": {"agentd/notify": True}},
        "clientInfo": {"name": "agentd", "title": "agentd", "version": agentd.__version__},
    }
    if forms:
        introduction["clientCapabilities"]["elicitation"] = {"form": {}}
    if deny:
        introduction["_meta"] = {"agentd/permissions": "deny"}
    return introduction


def binding(session: str) -> dict[str, Any]:
    """Params of the `initialize` that gives up all but one session."""
    return {**introduction(deny=False), "_meta": {"agentd/bind": session}}
