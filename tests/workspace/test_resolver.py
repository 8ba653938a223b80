"""Nothing below the root leads outside it."""

import ctypes
import os
import socket
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest

from agentd.core.errors import AgentdError, PathRefused, WorkspaceError
from agentd.workspace.folder import Folder
from agentd.workspace.resolver import ConfinedFolder

_SECRET = b"outside"


@pytest.fixture(params=[True, False], ids=["openat2", "walk"])
def native(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return _made(tmp_path)


def _made(home: Path) -> Path:
    (home / "out").mkdir(parents=True)
    (home / "out" / "f.md").write_bytes(_SECRET)
    (home / "out" / "only_outside.md").write_bytes(_SECRET)
    (home / "in" / "d").mkdir(parents=True)
    (home / "in" / "d" / "f.md").write_bytes(b"inside")
    return home / "in"


def test_a_plain_file_is_read(root: Path, native: bool) -> None:
    assert Folder(root, native=native).read(("d", "f.md"), 100) == b"inside"


def test_links_are_never_followed(root: Path, native: bool) -> None:
    (root / "to_file.md").symlink_to(root.parent / "out" / "f.md")
    (root / "to_folder").symlink_to(root.parent / "out")
    (root / "inner.md").symlink_to("d/f.md")
    (root / "inner").symlink_to("d")
    (root / "proc").symlink_to("/proc/self/root")
    folder = Folder(root, native=native)
    for parts in (
        ("to_file.md",),
        ("to_folder", "f.md"),
        ("inner.md",),
        ("inner", "f.md"),
        ("proc", "etc", "hostname"),
    ):
        with pytest.raises((OSError, PathRefused)):
            folder.read(parts, 100)
        with pytest.raises((OSError, PathRefused)):
            folder.stamp(parts)
        with pytest.raises((OSError, PathRefused)):
            folder.read_for_change(parts, 100)
    with pytest.raises((OSError, PathRefused)):
        folder.replace(("to_folder", "new.md"), b"x")
    with pytest.raises((OSError, PathRefused)):
        folder.entries(("to_folder",))
    listed = {e.name: e.is_odd for e in folder.entries(())}
    links = ("inner", "inner.md", "proc", "to_file.md", "to_folder")
    assert listed == {"d": False, **dict.fromkeys(links, True)}
    assert _state(root.parent / "out") == {"f.md": _SECRET, "only_outside.md": _SECRET}


def test_parts_that_climb_are_stopped_by_the_kernel_too(root: Path) -> None:
    with pytest.raises((OSError, PathRefused)):
        Folder(root).read(("..", "out", "f.md"), 100)
    with Folder(root).held() as folder:
        assert folder.read(("d", "f.md"), 100) == b"inside"
        for climbing in (("d", ".."), ("d", "..", "..", "out", "f.md"), ("..", "out", "f.md")):
            with pytest.raises((OSError, PathRefused)):
                folder.read(climbing, 100)
            with pytest.raises((OSError, PathRefused)):
                folder.stamp(climbing)


def test_files_in_a_row_come_from_the_folder_that_was_opened(root: Path, native: bool) -> None:
    (root / "d" / "only_outside.md").symlink_to(root.parent / "out" / "f.md")
    (root / "e").mkdir()
    (root / "e" / "f.md").write_bytes(b"also inside")
    with Folder(root, native=native).held() as folder:
        assert folder.read(("d", "f.md"), 100) == b"inside"
        assert folder.read(("e", "f.md"), 100) == b"also inside"
        assert folder.read(("d", "f.md"), 100) == b"inside"
        (root / "d").rename(root / "was")
        (root / "d").symlink_to(root.parent / "out")
        assert folder.read(("d", "f.md"), 100) == b"inside", "what was opened, not the link"
        with pytest.raises((OSError, PathRefused)):
            folder.read(("d", "only_outside.md"), 100)
        assert folder.read(("e", "f.md"), 100) == b"also inside"
        with pytest.raises((OSError, PathRefused)):
            folder.read(("d", "f.md"), 100)


def test_many_files_in_a_row_cost_no_descriptor_each(root: Path, native: bool) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with Folder(root, native=native).held() as folder:
        for name in ("f.md", "none.md", "f.md"):
            with suppress(FileNotFoundError):
                folder.read(("d", name), 100)
            with suppress(FileNotFoundError):
                folder.read(("none", name), 100)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_only_regular_files_are_opened_and_nothing_blocks(root: Path, native: bool) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        here = Path.cwd()
        os.chdir(root)
        try:
            sock.bind("sock")
        finally:
            os.chdir(here)
        folder = Folder(root, native=native)
        for name in ("pipe", "sock", "d"):
            with pytest.raises((OSError, PathRefused)):
                folder.read((name,), 100)
            with pytest.raises((OSError, PathRefused)):
                folder.read_for_change((name,), 100)


def test_what_has_two_names_is_read_and_never_written_to(root: Path, native: bool) -> None:
    os.link(root.parent / "out" / "f.md", root / "hard.md")
    folder = Folder(root, native=native)
    assert folder.read(("hard.md",), 100) == _SECRET
    with pytest.raises(PathRefused, match="hard link"):
        folder.read_for_change(("hard.md",), 100)
    folder.replace(("hard.md",), b"x")
    assert (root.parent / "out" / "f.md").read_bytes() == _SECRET


def test_a_missing_root_is_told_apart_from_a_missing_file(tmp_path: Path, native: bool) -> None:
    with pytest.raises(WorkspaceError, match="is not there") as error:
        ConfinedFolder(tmp_path / "none", native=native).stat(("x",))
    assert "init" in error.value.cure


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
def test_modes_are_private_whatever_the_umask(root: Path, native: bool, mask: int) -> None:
    folder = Folder(root, native=native)
    before = os.umask(mask)
    try:
        folder.replace(("new", "deep", "a.md"), b"a")
        os.close(folder.replace_open(("new", "deep", "b.md"), b"b"))
    finally:
        os.umask(before)
    for path in (root / "new").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert stat.S_IMODE((root / "new").stat().st_mode) == 0o700


def _flip(place: Path, link: Path, stop: threading.Event) -> None:
    """Swap a folder and a link to the outside, as fast as it goes."""
    libc = ctypes.CDLL(None)
    while not stop.is_set():
        assert libc.renameat2(-100, bytes(place), -100, bytes(link), 2) == 0  # RENAME_EXCHANGE


_FEWEST = 50  # tries that must have done something
_MORE = 20  # times as many tries, at most, until they have


def _race(root: Path, tries: int, attempt: Callable[[], bool]) -> tuple[int, int]:
    """(tries that did something, escapes) of an attempt that says whether it got out. Where the
    link stood nearly all the time, since the machine left the other thread none, it is tried more
    often.
    """
    place, link = root / "spot", root / "link"
    place.mkdir()
    (place / "f.md").write_bytes(b"inside")
    link.symlink_to(root.parent / "out")
    stop = threading.Event()
    flipper = threading.Thread(target=_flip, args=(place, link, stop))
    flipper.start()
    done = escapes = 0
    try:
        for number in range(_MORE * tries):
            if number >= tries and done > _FEWEST:
                break
            with suppress(OSError, AgentdError):
                escapes += attempt()
                done += 1
    finally:
        stop.set()
        flipper.join()
    return done, escapes


def _reading(folder: Folder) -> Callable[[], bool]:
    return lambda: folder.read(("spot", "f.md"), 100) == _SECRET


def _reading_in_a_row(folder: Folder) -> Callable[[], bool]:
    def attempt() -> bool:
        with folder.held() as held:
            first = held.read(("spot", "f.md"), 100)
            return _SECRET in {first, held.read(("spot", "f.md"), 100)}

    return attempt


def _listing(folder: Folder) -> Callable[[], bool]:
    return lambda: any(entry.name == "only_outside.md" for entry in folder.entries(("spot",)))


def _writing(folder: Folder) -> Callable[[], bool]:
    out = folder.root.parent / "out"
    kept = _state(out)
    turns = cycle(
        (
            lambda: folder.replace(("spot", "new.md"), b"x"),
            lambda: os.close(folder.replace_open(("spot", "f.md"), b"y")),
            lambda: folder.delete(("spot", "only_outside.md")),
            lambda: folder.delete(("spot", "new.md")),
        )
    )

    def attempt() -> bool:
        with suppress(OSError, AgentdError):
            next(turns)()
        return _state(out) != kept

    return attempt


def _state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


_WAYS = [
    pytest.param(_reading, 10_000, 150_000, id="read"),
    pytest.param(_listing, 2_000, 50_000, id="list"),
    pytest.param(_writing, 2_000, 100_000, id="write-and-delete"),
]


_IN_A_ROW = pytest.param(_reading_in_a_row, 2_000, 50_000, id="read-in-a-row")


@pytest.mark.parametrize(("way", "tries", "_"), [*_WAYS, _IN_A_ROW])
def test_a_racing_link_lets_nothing_out(root: Path, native: bool, way, tries: int, _) -> None:
    done, escapes = _race(root, tries, way(Folder(root, native=native)))
    assert done > _FEWEST
    assert escapes == 0


@pytest.mark.torture
@pytest.mark.parametrize(("way", "_", "tries"), [*_WAYS, _IN_A_ROW])
def test_it_lets_nothing_out_of_600_000_races(root: Path, native: bool, way, tries: int, _) -> None:
    done, escapes = _race(root, tries, way(Folder(root, native=native)))
    assert done > tries / 100
    assert escapes == 0


class _LooksFirst:
    """The control: a folder that looks where a path leads, and opens it afterwards."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, parts: Sequence[str], limit: int) -> bytes:
        return self._checked(parts).read_bytes()[:limit]

    def entries(self, parts: Sequence[str]) -> list[Path]:
        return list(self._checked(parts).iterdir())

    def replace(self, parts: Sequence[str], data: bytes) -> None:
        self._checked(parts).write_bytes(data)

    def replace_open(self, parts: Sequence[str], data: bytes) -> int:
        self.replace(parts, data)
        return os.open(os.devnull, os.O_RDONLY)

    def delete(self, parts: Sequence[str]) -> None:
        self._checked(parts).unlink()

    def _checked(self, parts: Sequence[str]) -> Path:
        path = self.root.joinpath(*parts)
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root)):
            raise PathRefused("outside", cure="stay inside")
        return path


@pytest.mark.parametrize(("way", "tries", "_"), _WAYS)
def test_looking_first_and_opening_later_does_let_out(tmp_path: Path, way, tries: int, _) -> None:
    """The control: the races above are real."""
    homes = (_made(tmp_path / str(n)) for n in range(50))
    assert any(_race(root, tries, way(_LooksFirst(root)))[1] for root in homes)
