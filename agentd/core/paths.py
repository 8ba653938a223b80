"""The files and folders of agentd, for the daemon and its clients; writing files durably."""

from __future__ import annotations

import errno
import os
import pwd
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from agentd.core.errors import InvalidRequest

_SOCKET = "agentd.sock"
_CONFIG = "config.toml"
_SYSTEM_RUNTIME = Path("/run/agentd")  # where the system unit puts one folder for each user
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PROMPTS = Path(__file__).resolve().with_name("prompts")
_IRREGULAR = "it is no regular file"
_CHECKOUT = Path(__file__).resolve().parents[2]


class DaemonPaths(Struct, frozen=True):
    """The four places of a daemon (absolute paths), and the files in its state directory."""

    config_file: Path
    workspace: Path
    state_dir: Path
    socket: Path

    @property
    def database(self) -> Path:
        """The database that must not be lost."""
        return self.state_dir / "state.db"

    @property
    def index(self) -> Path:
        """The derived database, which can be rebuilt from the others."""
        return self.state_dir / "index.db"

    @property
    def mirror(self) -> Path:
        """A copy of the in-memory search index, so that a start need not rebuild it."""
        return self.state_dir / "index.arrays"

    @property
    def versions(self) -> Path:
        """Former versions of workspace files."""
        return self.state_dir / "versions"

    @property
    def images(self) -> Path:
        """The bytes of images that messages refer to."""
        return self.state_dir / "blobs"

    @property
    def facts_key(self) -> Path:
        """The key for hashes of forgotten facts."""
        return self.state_dir / "facts.key"

    @property
    def rows_key(self) -> Path:
        """The key for digests of transcript rows."""
        return self.state_dir / "rows.key"

    @property
    def acknowledged(self) -> Path:
        """The record of which commits of the database have been acknowledged."""
        return self.state_dir / f"{self.database.name}-acknowledged"

    @property
    def life_sign(self) -> Path:
        """A file with the next due time of the heartbeat, for external watchers."""
        return self.state_dir / "heartbeat.json"

    @property
    def watched(self) -> Path:
        """What the external watcher has reported."""
        return self.state_dir / "watch.json"

    @property
    def mcp_pins(self) -> Path:
        """The descriptions of tool servers as they were when the owner accepted them."""
        return self.state_dir / "mcp"

    @property
    def mcp_logins(self) -> Path:
        """The owner's logins to tool servers: secrets."""
        return self.state_dir / "logins"

    @property
    def chat_history(self) -> Path:
        """The input history of the chat."""
        return self.state_dir / "chat_history"


def daemon_places(environ: Mapping[str, str], config_override: Path | None = None) -> DaemonPaths:
    """Return the places of a daemon started in this environment.

    `AGENTD_HOME` puts everything below one folder; else systemd's directories are used where set,
    else the XDG ones. `config_override` moves only the configuration file.
    """
    override = expanded(config_override).absolute() if config_override else None
    if home := _agentd_home(environ):
        return DaemonPaths(
            override or home / _CONFIG, home / "workspace", home / "state", home / _SOCKET
        )
    config = _systemd(environ, "CONFIGURATION_DIRECTORY")
    config = config or _xdg(environ, "XDG_CONFIG_HOME", ".config")
    state = _systemd(environ, "STATE_DIRECTORY")
    workspace = (state or _xdg(environ, "XDG_DATA_HOME", ".local/share")) / "workspace"
    return DaemonPaths(
        config_file=override or config / _CONFIG,
        workspace=workspace,
        state_dir=state or _xdg_state(environ),
        socket=_runtime(environ) / _SOCKET,
    )


def client_sockets(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the paths at which a client looks for the daemon's socket, best first. `AGENTD_HOME`
    names exactly one daemon, so then only that path is returned.
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
    """Return the input history file of a chat in this environment: in the daemon's state directory,
    unless that daemon is a service with places of its own.
    """
    return daemon_places(environ).chat_history


def is_system_service(socket: Path) -> bool:
    """Whether the socket belongs to a daemon that the system's service manager runs."""
    return socket.is_relative_to(_SYSTEM_RUNTIME)


def shipped_path(name: str) -> Path:
    """Return the path of a file or folder that comes with agentd: beside the package in a checkout,
    else in the installation's shared data.
    """
    if (_CHECKOUT / "pyproject.toml").is_file():
        return _CHECKOUT / name
    return Path(sys.prefix, "share", "agentd", name)


def prompt(name: str) -> str:
    """Return one of the prompt texts in `prompts/`, stripped."""
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


def expanded(path: str | Path) -> Path:
    """Return the path with the home folder in place of `~` or `~NAME`. Raises InvalidRequest if
    nobody has that name, or if no file can be called so.
    """
    try:
        found = Path(path).expanduser()
    except RuntimeError:
        why = "has no home folder: nobody here is called so"
    else:
        if "\0" not in str(path):
            return found
        why = "has a NUL character, which no name of a file can have"
    raise InvalidRequest(f"{str(path)!r} {why}", cure="write the whole path")


def cure_of(error: OSError) -> str:
    """Return what to do about a file or folder of agentd that could not be created or opened."""
    if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO):
        return (
            "something of another kind stands in its place: move it away, or set "
            "AGENTD_HOME to another folder"
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room on that disk"
    return "make it writable for you, or set AGENTD_HOME to another folder"


def ensure_private_dir(path: Path) -> Path:
    """Create the folder and its missing parents durably, with mode 0700 whatever the umask. An
    existing folder keeps its mode. Raises OSError.
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
    """Return why a folder cannot be created, naming the obstacle; "" if it exists or can be
    created.

    Tested by creating (and removing) one in the nearest existing parent, because permissions do not
    reveal read-only and virtual file systems.
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
    """Write the content into the file, durably and all or nothing, with mode 0600. Raises OSError.

    The content is first written to a file named `part` beside it. A failure leaves no such file,
    and one left by a crash is replaced. Without `part` every call uses the same name: then only one
    writer at a time may write this file.
    """
    part = part or part_of(path).name
    data = content.encode() if isinstance(content, str) else content
    folder = os.open(path.parent, _DIRECTORY)
    try:
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)
        with replacing_file(folder, path.name, data, part):
            pass
    finally:
        os.close(folder)


def part_of(path: Path) -> Path:
    """Return the temporary file that `write_private` uses by default."""
    return path.with_name(f"{path.name}.part")


@contextmanager
def replacing_file(
    folder: int,
    name: str,
    data: bytes,
    part: str,
    *,
    last_look: Callable[[], None] = lambda: None,
    seen: Callable[[], None] = lambda: None,
) -> Iterator[int]:
    """Replace a file in an open folder; yield a descriptor of the new file, positioned at its end.

    The data are written to `part` (a name that must be free) in the same folder and synced, the
    file is renamed, and the folder is synced: a crash leaves the old file or the new one.
    `last_look` is called just before the rename; if it raises, nothing is replaced. `seen` is
    called after the rename and before the folder's sync, when the new file is visible but may still
    be lost. Raises OSError.
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
    """Write all data to the descriptor and sync it. Raises OSError, after which a part may be
    written.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.fsync(fd)


def sync_directory(directory: Path) -> None:
    """Make entries that were created, renamed or removed in the directory durable. Raises
    OSError.
    """
    descriptor = os.open(directory, _DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of the regular file at `path`, a new one with mode 0600. Raises OSError,
    also for anything of another kind: to open a pipe waits for its other end, and a device may
    never come to an end.
    """
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
            raise OSError(errno.ENXIO, _IRREGULAR, str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, _IRREGULAR, str(path))
    return descriptor


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file. Raises OSError as `open_regular` does."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read()


def require_regular(path: Path) -> None:
    """Raise OSError if something of another kind than a regular file stands at `path`."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(errno.ENXIO, _IRREGULAR, str(path))


def sync_file(path: Path) -> None:
    """Make everything written to the file durable, whoever wrote it. Raises OSError."""
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
    # Resolve the home itself: the user chose that link. Links below it are not resolved.
    return expanded(home).resolve() if home else None


def _systemd(environ: Mapping[str, str], name: str) -> Path | None:
    """Return the first folder of a variable that may hold several, separated by colons."""
    return _absolute(environ.get(name, "").split(":", 1)[0])


def _xdg_state(environ: Mapping[str, str]) -> Path:
    return _xdg(environ, "XDG_STATE_HOME", ".local/state")


def _xdg(environ: Mapping[str, str], name: str, default: str) -> Path:
    if base := _absolute(environ.get(name)):
        return base / "agentd"
    home = _absolute(environ.get("HOME")) or Path(_account().pw_dir)
    return home / default / "agentd"


def _absolute(text: str | None) -> Path | None:
    """Return the path, or None if it is not absolute: the XDG specification has those ignored."""
    return Path(text) if text and text.startswith("/") else None


def _account() -> pwd.struct_passwd:
    return pwd.getpwuid(os.getuid())
