"""Where agentd keeps its things, for the daemon and for its clients."""

from __future__ import annotations

import errno
import os
import pwd
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_SOCKET = "agentd.sock"
_CONFIG = "config.toml"
_SYSTEM_RUNTIME = Path("/run/agentd")  # where the system unit puts one folder for each user
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PROMPTS = Path(__file__).resolve().with_name("prompts")
_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Places:
    """The four places of one daemon, absolute, and what is where in its state directory."""

    config_file: Path
    workspace: Path
    state_dir: Path
    socket: Path

    @property
    def database(self) -> Path:
        """The state that must not be lost."""
        return self.state_dir / "state.db"

    @property
    def index(self) -> Path:
        """The database that is made again from what the others hold."""
        return self.state_dir / "index.db"

    @property
    def mirror(self) -> Path:
        """What of it was in memory, so that a start finds it there again."""
        return self.state_dir / "index.arrays"

    @property
    def versions(self) -> Path:
        """What files of the workspace were before."""
        return self.state_dir / "versions"

    @property
    def images(self) -> Path:
        """The bytes of the images that messages refer to."""
        return self.state_dir / "blobs"

    @property
    def facts_key(self) -> Path:
        """What hashes of forgotten facts are made with."""
        return self.state_dir / "facts.key"

    @property
    def rows_key(self) -> Path:
        """What digests of the rows of transcripts are made with."""
        return self.state_dir / "rows.key"

    @property
    def acknowledged(self) -> Path:
        """What was acknowledged of the database's commits."""
        return self.state_dir / f"{self.database.name}-acknowledged"

    @property
    def life_sign(self) -> Path:
        """When the next heartbeat is due, for who watches from outside."""
        return self.state_dir / "heartbeat.json"

    @property
    def watched(self) -> Path:
        """What was told by who watches."""
        return self.state_dir / "watch.json"

    @property
    def mcp_pins(self) -> Path:
        """What servers of tools said of themselves when the owner came to know them."""
        return self.state_dir / "mcp"

    @property
    def mcp_logins(self) -> Path:
        """The owner's logins to servers of tools: secrets."""
        return self.state_dir / "logins"

    @property
    def chat_history(self) -> Path:
        """Where a chat keeps what its user has typed."""
        return self.state_dir / "chat_history"


def daemon_places(environ: Mapping[str, str], config_override: Path | None = None) -> Places:
    """Where a daemon started in this environment lives.

    `AGENTD_HOME` puts everything below one folder; else systemd's directories count where they are
    set, else the XDG ones. `config_override` moves the configuration file and nothing else.
    """
    override = config_override.expanduser().absolute() if config_override else None
    if home := _agentd_home(environ):
        return Places(
            override or home / _CONFIG, home / "workspace", home / "state", home / _SOCKET
        )
    config = _systemd(environ, "CONFIGURATION_DIRECTORY")
    config = config or _xdg(environ, "XDG_CONFIG_HOME", ".config")
    state = _systemd(environ, "STATE_DIRECTORY")
    workspace = (state or _xdg(environ, "XDG_DATA_HOME", ".local/share")) / "workspace"
    return Places(
        config_file=override or config / _CONFIG,
        workspace=workspace,
        state_dir=state or _xdg_state(environ),
        socket=_runtime(environ) / _SOCKET,
    )


def client_sockets(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where a client looks for the daemon's socket, best first. `AGENTD_HOME` names one and only
    one daemon, so nothing else is tried beside it.
    """
    if home := _agentd_home(environ):
        return (home / _SOCKET,)
    folders = [_xdg_state(environ)]
    user = environ.get("USER") or _account().pw_name
    if user and "/" not in user and user not in {".", ".."}:
        folders.insert(0, _SYSTEM_RUNTIME / user)
    if runtime := _absolute(environ.get("XDG_RUNTIME_DIR")):
        folders.insert(0, runtime / "agentd")
    return tuple(folder / _SOCKET for folder in folders)


def chat_history(environ: Mapping[str, str]) -> Path:
    """Where a chat of this environment keeps what its user has typed: with the daemon's state, unless
    that daemon is a service with places of its own.
    """
    return daemon_places(environ).chat_history


def is_system_service(socket: Path) -> bool:
    """Whether the socket belongs to a daemon that the system's service manager runs."""
    return socket.is_relative_to(_SYSTEM_RUNTIME)


def shipped(name: str) -> Path:
    """A file or folder that comes with agentd: beside the package in a checkout, else where the
    installation put its shared data.
    """
    if (_CHECKOUT / "pyproject.toml").is_file():
        return _CHECKOUT / name
    return Path(sys.prefix, "share", "agentd", name)


def prompt(name: str) -> str:
    """One of the texts with which agentd speaks to models, without blanks around it."""
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


def cure_of(error: OSError) -> str:
    """What to do about a place of agentd's that could not be made or opened."""
    if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO):
        return "something of another kind stands in its place: move it away, or set AGENTD_HOME to another folder"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room on that disk"
    return "make it writable for you, or set AGENTD_HOME to another folder"


def ensure_private_dir(path: Path) -> Path:
    """Make the folder and its missing parents, for the owner alone (0700) whatever the umask, and their
    names durable. One that exists keeps its mode. Raises OSError.
    """
    if not path.is_dir():
        if not path.parent.is_dir():
            ensure_private_dir(path.parent)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            if not path.is_dir():
                raise
        else:
            path.chmod(0o700)
            sync_directory(path.parent)
    return path


def why_unmade(folder: Path) -> str:
    """Why a folder cannot be made, and what stands in the way; "" where it is there or can be made.
    Found out by making one in the nearest folder that is there, since rights alone do not tell it of
    read-only and of unreal file systems; nothing of it is left.
    """
    if os.path.lexists(folder):
        return "" if folder.is_dir() else f"{folder} is no folder"
    there = next(place for place in folder.parents if os.path.lexists(place))
    if not there.is_dir():
        return f"{there} is no folder"
    probe = there / f".agentd-{os.getpid()}"
    try:
        probe.mkdir(mode=0o700)
        probe.rmdir()
    except OSError:
        return f"no folder can be made in {there}"
    return ""


def write_private(path: Path, content: str | bytes, part: str = "") -> None:
    """Put it into the file, whole and durable or not at all, for the owner alone. It is begun beside it, in a
    file named `part`; a failure leaves nothing of that, what a crash leaves there is replaced. Without that
    name all begin it in the same place: whoever else may write it must wait meanwhile. Raises OSError.
    """
    part = part or part_of(path).name
    data = content.encode() if isinstance(content, str) else content
    folder = os.open(path.parent, _DIRECTORY)
    try:
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)
        with replaced(folder, path.name, data, part):
            pass
    finally:
        os.close(folder)


def part_of(path: Path) -> Path:
    """Where `write_private` begins this file."""
    return path.with_name(f"{path.name}.part")


@contextmanager
def replaced(
    folder: int,
    name: str,
    data: bytes,
    part: str,
    *,
    last_look: Callable[[], None] = lambda: None,
    seen: Callable[[], None] = lambda: None,
) -> Iterator[int]:
    """A descriptor, at its end, of the file that is put in the place of this name in an open folder: written
    beside it under the name of `part`, which must be free, synced, renamed, and the folder synced. A crash
    leaves the old file or the new one. `last_look` may raise when all but the renaming is done, and then
    nothing is; `seen` is called when the new file is there, and may be lost yet. Raises OSError.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(part, flags, 0o600, dir_fd=folder)
    try:
        try:
            os.fchmod(fd, 0o600)  # the umask may have taken even the owner's bits
            write_durably(fd, data)
            last_look()
            os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise
        seen()
        os.fsync(folder)
        yield fd
    finally:
        os.close(fd)


def write_durably(fd: int, data: bytes) -> None:
    """Write all of it there and sync it. Raises OSError, when a part of it may stand there."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.fsync(fd)


def sync_directory(directory: Path) -> None:
    """Make what was created, renamed or removed in it durable. Raises OSError."""
    descriptor = os.open(directory, _DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make what was written to it durable, by whomever. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _runtime(environ: Mapping[str, str]) -> Path:
    if runtime := _systemd(environ, "RUNTIME_DIRECTORY"):
        return runtime
    if runtime := _absolute(environ.get("XDG_RUNTIME_DIR")):
        return runtime / "agentd"
    return _xdg_state(environ).resolve()


def _agentd_home(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("AGENTD_HOME")
    # A link that the user has named is his choice; what stands below it may be none.
    return Path(home).expanduser().resolve() if home else None


def _systemd(environ: Mapping[str, str], name: str) -> Path | None:
    """The first folder of a variable that may hold several, separated by colons."""
    return _absolute(environ.get(name, "").split(":", 1)[0])


def _xdg_state(environ: Mapping[str, str]) -> Path:
    return _xdg(environ, "XDG_STATE_HOME", ".local/state")


def _xdg(environ: Mapping[str, str], name: str, default: str) -> Path:
    if base := _absolute(environ.get(name)):
        return base / "agentd"
    home = _absolute(environ.get("HOME")) or Path(_account().pw_dir)
    return home / default / "agentd"


def _absolute(text: str | None) -> Path | None:
    """The XDG specification has relative paths ignored."""
    return Path(text) if text and text.startswith("/") else None


def _account() -> pwd.struct_passwd:
    return pwd.getpwuid(os.getuid())
