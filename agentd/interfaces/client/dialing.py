"""Reaching the daemon's Unix socket."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentd.core.errors import DaemonUnreachable

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
