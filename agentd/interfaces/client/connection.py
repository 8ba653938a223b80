"""A client's connection to the daemon over its Unix socket: calls, notifications, and requests from
the daemon.
"""

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

# Bytes of a line that a daemon takes, unless it reports another limit.
MAX_FRAME_BYTES = 1024 * 1024
WITHDRAWN = -32800  # error code of a call that was cancelled by `take_back`
_METHOD_NOT_FOUND = -32601
_SERVER_ERROR = -32000

_SUN_PATH = 107  # longest socket path that the kernel takes, in bytes
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_CONNECT_SECONDS = 5.0
_SILENCE = 2.0
# Bound on one line from the daemon, which is trusted but may have a fault.
_ANSWER_BYTES = 64 * 1024 * 1024
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
CURE = "start the daemon with `agentd up`; `agentd logs` shows what it did last"

Params = Mapping[str, Any]
_PROTOCOL_VERSION = 1


class Watcher(Protocol):
    """Receives what the daemon sends by itself."""

    def notified(self, method: str, params: Params) -> None:
        """Handle a notification. Must not block."""

    async def requested(self, method: str, params: Params) -> Params | None:
        """Answer a request of the daemon; None if the method is unknown."""


class IgnoringWatcher:
    """A watcher that ignores notifications and knows no method."""

    def notified(self, method: str, params: Params) -> None:
        """Ignore the notification."""

    async def requested(self, method: str, params: Params) -> Params | None:
        """Return None: every method is unknown."""
        return None


class DaemonConnection:
    """A JSON-RPC connection to the daemon. Nothing is received unless `listen` runs. Set
    `max_frame_bytes` to the limit that the daemon reports.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        watcher: Watcher,
        *,
        silence: float = _SILENCE,
    ) -> None:
        """After `silence` seconds without an answer the daemon's process is looked at."""
        self._reader = reader
        self._writer = writer
        self._watcher = watcher
        self._silence = silence
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._methods: dict[int, str] = {}  # of the open calls, by id
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._last_id = 0
        self.max_frame_bytes = MAX_FRAME_BYTES
        self._pid, _ = _peer(writer)
        self._closed = asyncio.Event()
        self._fault: AgentdError | None = None

    async def call(
        self, method: str, params: Params | None = None, *, within: float | None = None
    ) -> Any:
        """Call a method and return its result.

        Raises RemoteError if the daemon answers with an error, ConnectionLost if it goes away, Busy
        after `within` seconds (None: no limit) and, with a limit, earlier if the daemon's process
        is stopped, InvalidRequest for a message that is too large or not valid UTF-8.
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
                if within is not None:
                    await asyncio.wait([answer], timeout=self._silence)
                    if not answer.done() and _is_stopped(self._pid):
                        raise _stopped(self._pid)
                return await answer
        except TimeoutError as error:
            process = f", process {self._pid}," if self._pid else ""
            raise Busy(
                f"the daemon{process} has not answered {method} within {within:g} s",
                cure="try again; if that stays, see `agentd logs`, then `agentd restart`",
            ) from error
        finally:
            del self._waiting[number], self._methods[number]

    async def take_back(self, method: str) -> None:
        """Cancel the open calls of a method; the daemon answers them with the error `WITHDRAWN`.
        Raises ConnectionLost.
        """
        for number in [n for n, called in self._methods.items() if called == method]:
            await self.notify("$/cancel_request", {"requestId": number})

    async def notify(self, method: str, params: Params) -> None:
        """Send a notification. Raises ConnectionLost."""
        await self._send({"method": method, "params": params})

    async def listen(self) -> None:
        """Receive and dispatch frames until the daemon closes the connection; then every open call
        fails.
        """
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
        """Return when the connection is closed."""
        await self._closed.wait()

    def _end(self) -> AgentdError:
        return self._fault or ConnectionLost("the daemon closed the connection", cure=CURE)

    async def _line(self) -> bytes:
        """Read the next line; empty at the end."""
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
                for waiting in tuple(
                    self._waiting
                ):  # the call that it belongs to gets no other answer
                    self._resolve(waiting, self._fault)
            case {"id": int(number), "error": dict(error)}:
                self._resolve(number, RemoteError.from_frame(error))
            case {"id": int(number), "result": result}:
                self._resolve(number, result)
            # Anything else is no JSON-RPC or answers no open call.

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
        with suppress(ConnectionLost):  # the daemon is gone, so nobody reads the answer
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
    """Connect to the first socket on which a daemon answers. Raises DaemonUnreachable."""
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
    """Yield a spelling of `path` that is short enough for the kernel, valid within the block."""
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
    _, uid = _peer(writer)
    if os.getuid() not in {0, uid} and uid != 0:
        writer.close()
        raise DaemonUnreachable(
            f"the daemon at {path} belongs to another user (id {uid})",
            cure="remove that socket or set AGENTD_HOME to your own folder",
        )
    return reader, writer


def _peer(writer: asyncio.StreamWriter) -> tuple[int, int]:
    """Return the ids of the daemon's process, 0 if it is out of sight, and of its user."""
    sock = writer.get_extra_info("socket")
    peer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(peer)
    return pid, uid


def _is_stopped(pid: int) -> bool:
    """Whether the process is held by a signal, or by a debugger."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] in "Tt"
    except (OSError, ValueError):
        return False


def _stopped(pid: int) -> Busy:
    return Busy(
        f"the daemon does not answer: its process {pid} is stopped",
        cure=(
            f"let it go on with `kill -CONT {pid}`; or end it with `kill -KILL "
            f"{pid}`, then `agentd up`"
        ),
    )


@asynccontextmanager
async def connect(
    sockets: Sequence[Path], watcher: Watcher | None = None
) -> AsyncIterator[DaemonConnection]:
    """Open a connection to the first daemon that answers, with `listen` running in the background.
    Raises DaemonUnreachable.
    """
    reader, writer = await dial(sockets)
    connection = DaemonConnection(reader, writer, watcher or IgnoringWatcher())
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
    """Unwrap exception groups: raise a single failure as itself, several ones as their group."""
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
    """Return the params of `initialize`. `deny`: no user is present who could see alerts or allow
    anything; `forms`: this client can show forms.
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
    """Return the params of the `initialize` that restricts the connection to one session."""
    return {**introduction(deny=False), "_meta": {"agentd/bind": session}}
