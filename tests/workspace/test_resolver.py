"""Nothing below the root leads outside it."""

import ctypes
import os
import socket
import stat
import threading
import time
from pathlib import Path

import pytest

from agentd.errors import AgentdError, PathRefused, WorkspaceError
from agentd.workspace.folder import Folder
from agentd.workspace.resolver import Beneath

_SECRET = b"outside"


@pytest.fixture(params=[True, False], ids=["openat2", "walk"])
def native(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "f.md").write_bytes(_SECRET)
    (tmp_path / "in" / "d").mkdir(parents=True)
    (tmp_path / "in" / "d" / "f.md").write_bytes(b"inside")
    return tmp_path / "in"


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
    assert [p.name for p in (root.parent / "out").iterdir()] == ["f.md"]
    assert (root.parent / "out" / "f.md").read_bytes() == _SECRET


def test_parts_that_climb_are_stopped_by_the_kernel_too(root: Path) -> None:
    with pytest.raises((OSError, PathRefused)):
        Folder(root).read(("..", "out", "f.md"), 100)


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
        Beneath(tmp_path / "none", native=native).stat(("x",))
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


def _race(root: Path, seconds: float, attempt) -> tuple[int, int]:
    """(tries that read something, escapes)"""
    place, link = root / "spot", root / "link"
    place.mkdir()
    (place / "f.md").write_bytes(b"inside")
    link.symlink_to(root.parent / "out")
    stop = threading.Event()
    flipper = threading.Thread(target=_flip, args=(place, link, stop))
    flipper.start()
    done = escapes = 0
    end = time.monotonic() + seconds
    try:
        # A busy machine gets more time, so that the race has been run at all.
        while not escapes and (now := time.monotonic()) < end + 20 and (now < end or done <= 50):
            try:
                escapes += attempt() == _SECRET
                done += 1
            except (OSError, AgentdError):
                continue
    finally:
        stop.set()
        flipper.join()
    return done, escapes


def test_a_racing_link_never_lets_a_read_out(root: Path, native: bool) -> None:
    folder = Folder(root, native=native)
    done, escapes = _race(root, 1.5, lambda: folder.read(("spot", "f.md"), 100))
    assert done > 50
    assert escapes == 0


def test_a_racing_link_never_lets_a_write_out(root: Path, native: bool) -> None:
    folder = Folder(root, native=native)

    def attempt() -> bytes:
        folder.replace(("spot", "new.md"), b"x")
        os.close(folder.replace_open(("spot", "f.md"), b"y"))
        return b""

    assert _race(root, 1.0, attempt)[0] > 10
    assert [p.name for p in (root.parent / "out").iterdir()] == ["f.md"]
    assert (root.parent / "out" / "f.md").read_bytes() == _SECRET


def test_checking_first_and_opening_later_does_escape(root: Path) -> None:
    """The control: the race above is real."""

    def naive() -> bytes:
        path = root / "spot" / "f.md"
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
            return b""
        return path.read_bytes()

    assert _race(root, 20.0, naive)[1] == 1
