"""Reaching the daemon's Unix socket, and the errors that come from there."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentd.core.errors import AgentdError, DaemonUnreachable

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_INVALID_PARAMS = -32602
_RESOURCE_NOT_FOUND = -32002
_SUN_PATH = 107  # bytes of a socket path that the kernel takes
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_CONNECT_SECONDS = 5.0
_ANSWER_BYTES = 64 * 1024 * 1024  # of one line from the daemon, which is trusted but may be broken
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
CURE = "start the daemon with `agentd up`; `agentd logs` shows what it did last"


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


class ConnectionLost(DaemonUnreachable):
    """The daemon went away in the middle of a conversation."""

    code = "connection_lost"


class RemoteError(AgentdError):
    """The daemon answered with an error.

    `reason` is the daemon's own word for it, `rpc_code` the number of the JSON-RPC error.
    """

    code = "remote"

    def __init__(self, message: str, *, code: str, cure: str = "", rpc_code: int = 0) -> None:
        super().__init__(message, cure=cure)
        self._reason = code
        self.rpc_code = rpc_code

    @classmethod
    def from_frame(cls, error: Mapping[str, Any]) -> RemoteError:
        """The error of a response, whatever is missing in it."""
        data = error.get("data")
        data = data if isinstance(data, Mapping) else {}
        number = error.get("code")
        number = number if isinstance(number, int) else 0
        return cls(
            str(error.get("message") or "the daemon gave no reason"),
            code=str(data.get("code") or _default_reason(number)),
            cure=str(data.get("cure") or ""),
            rpc_code=number,
        )

    @property
    def reason(self) -> str:
        """The daemon's word for what went wrong."""
        return self._reason


def exit_status(error: AgentdError) -> int:
    """The exit code that stands for `error`, also when it came over the wire."""
    if not isinstance(error, RemoteError):
        return error.exit_code
    known = {kind.code: kind.exit_code for kind in _kinds(AgentdError)}
    return known.get(error.reason, 1)


def _default_reason(number: int) -> str:
    if number in (_PARSE_ERROR, _INVALID_REQUEST, _INVALID_PARAMS):
        return "invalid"
    return "not_found" if number == _RESOURCE_NOT_FOUND else "failed"


def _kinds(kind: type[AgentdError]) -> Iterator[type[AgentdError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _kinds(child)


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
