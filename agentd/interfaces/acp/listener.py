"""The daemon's Unix socket: bound with safe modes or inherited from systemd; accepts clients, and
binds the socket again if its file is removed.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import stat
import struct
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from agentd.core.errors import ConfigError
from agentd.core.paths import ensure_private_dir
from agentd.core.ports import Clock
from agentd.interfaces.acp.flow import READ_BYTES
from agentd.storage.ownership import runtime_folder

_LONGEST_PATH = 107  # bytes in sockaddr_un without the closing NUL
_FIRST_FD = 3  # where systemd's descriptors begin
_BACKLOG = 128


def inherited_socket(
    environ: MutableMapping[str, str], name: str = "agentd"
) -> socket.socket | None:
    """Return the listening socket inherited from systemd, the one called `name` if there are
    several; None without one. Its variables are removed from `environ`, so that child processes do
    not see them.

    Raises ConfigError if it is no Unix stream socket.
    """
    pid, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    names = environ.pop("LISTEN_FDNAMES", "").split(":")
    if pid != str(os.getpid()) or not count.isdigit() or int(count) == 0:
        return None
    place = names.index(name) if name in names[: int(count)] else 0
    sock = socket.socket(fileno=_FIRST_FD + place)
    if sock.family is not socket.AF_UNIX or sock.type is not socket.SOCK_STREAM:
        sock.detach()
        raise ConfigError(
            "the socket handed over by systemd is no Unix stream socket",
            cure="use ListenStream= with a path in the socket unit",
        )
    os.set_inheritable(sock.fileno(), False)
    return sock


class SocketPlace:
    """The path of the daemon's socket, and the identity of the file that the daemon has bound
    there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ours: tuple[int, int] | None = None  # device and inode

    @contextmanager
    def bound(self) -> Iterator[socket.socket]:
        """A listening socket there, mode 0600 in a directory of mode 0700 whatever the umask.

        What a dead daemon left is replaced: the caller holds the state lock, so none is alive.
        Afterwards the file is removed if it is ours. Raises ConfigError for a place that cannot be
        made private.
        """
        _make_private(self.path.parent)
        _remove_stale(self.path)
        try:
            with self._bind() as sock:
                yield sock
        finally:
            self._remove()

    def bound_again(self) -> socket.socket | None:
        """Another listening socket, like the first, if nothing is at the path any more; None if
        ours still is.

        Raises ConfigError for what somebody else put there, which is left alone, and for a
        directory that cannot be made private; OSError.
        """
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            _make_private(self.path.parent)
            return self._bind()
        if _identity(found) == self._ours:
            return None
        raise ConfigError(
            f"{str(self.path)!r} is in the socket's place and is not the daemon's",
            cure="move it away, and the daemon makes its socket again",
        )

    def _bind(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _bind(sock, self.path)
            self._ours = _identity(self.path.lstat())
            self.path.chmod(0o600)
            sock.listen(_BACKLOG)
        except BaseException:
            sock.close()
            raise
        return sock

    def _remove(self) -> None:
        with suppress(FileNotFoundError, NotADirectoryError):
            if _identity(self.path.lstat()) == self._ours:
                self.path.unlink()


def peer_uid(sock: socket.socket) -> int:
    """The user id of the process at the other end, as the kernel saw it connect."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    uid: int = struct.unpack("3i", raw)[1]
    return uid


def has_hung_up(sock: socket.socket) -> bool:
    """Return whether either end has closed the connection in both directions, not only for
    writing.
    """
    if sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock.fileno(), 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def _make_private(folder: Path) -> None:
    if not os.path.lexists(folder):
        ensure_private_dir(folder)
    runtime_folder(folder, os.getuid())


def _remove_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ConfigError(
            f"{str(path)!r} is in the socket's place and is no socket",
            cure="move it away, or choose another place with AGENTD_HOME",
        )
    path.unlink()


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _bind(sock: socket.socket, path: Path) -> None:
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        sock.bind(os.fsencode(path))
        return
    # Too long for the kernel's address: through the directory's descriptor it is short.
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sock.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


log = structlog.get_logger()

LOOK_AGAIN = 3.0  # seconds until it is looked again whether the socket is in its place


class Acceptor:
    """Accepts clients on one listening socket at a time. Connected clients stay when the socket
    changes.
    """

    def __init__(
        self, accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None], clock: Clock
    ) -> None:
        self._accept = accept
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._told = ""

    async def open(self, sock: socket.socket) -> None:
        """Accept clients on this socket from now on, and close the one before."""
        server = await asyncio.start_unix_server(
            self._accept, sock=sock, limit=READ_BYTES, start_serving=False
        )
        self.close()
        self._server = server  # set before it starts, so that `close` ends it if this is cancelled
        await server.start_serving()

    def close(self) -> None:
        """Accept no more clients."""
        if self._server:
            self._server.close()

    async def watch(self, place: SocketPlace) -> None:
        """Bind the socket again whenever its file is gone (removed by hand, or with the runtime
        folder at logout), until cancelled. A daemon that cannot be reached could not even be
        stopped.
        """
        while True:
            await self._clock.sleep(LOOK_AGAIN)
            try:
                sock = place.bound_again()
            except ConfigError as error:
                self._warn(place, error.message, error.cure)
            except OSError as error:
                self._warn(place, str(error), "")
            else:
                self._told = ""
                if sock:
                    await self.open(sock)
                    log.warning("socket_was_gone", path=str(place.path), cure="none: it is back")

    def _warn(self, place: SocketPlace, reason: str, cure: str) -> None:
        if reason != self._told:
            self._told = reason
            log.warning("socket_unreachable", path=str(place.path), reason=reason, cure=cure)
