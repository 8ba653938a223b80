"""The model of a disk whose power is cut, and the recorder that tells it what a process has
done.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.e2e.disk import (
    ALL,
    COMPILER,
    NOTHING,
    Call,
    Disk,
    Fate,
    Unmodelled,
    calls_in,
    followed,
    recorder,
)

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler: cc or gcc")

SCRIPT = """
import os, shutil
os.mkdir("folder")
with open("folder/one", "wb", buffering=0) as file:
    file.write(b"hello ")
    file.write(b"world")
    os.fsync(file.fileno())
top, folder = os.open(".", os.O_RDONLY), os.open("folder", os.O_RDONLY)
os.fsync(folder)
os.fsync(top)
with open("two", "wb", buffering=0) as file:
    os.pwrite(file.fileno(), b"xyz", 5000)
    os.writev(file.fileno(), [b"a", b"b"])
    os.ftruncate(file.fileno(), 5001)
    os.fsync(file.fileno())
fd = os.open("three", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600, dir_fd=folder)
os.write(fd, b"first"); os.write(fd, b", second")
os.rename("two", "folder/four")
os.link("folder/four", "five")
os.rename("three", "six", src_dir_fd=folder, dst_dir_fd=folder)
shutil.copyfile("old", "copied")
open("old", "wb").close()
os.truncate("copied", 3)
os.unlink("folder/one")
os.mkdir("gone"); os.rmdir("gone")
os.chmod("copied", 0o640)
"""


def ran(folder: Path, script: str) -> tuple[Disk, list[Call]]:
    """The disk before the script, and what the script has done in the folder."""
    disk, log = Disk(folder), folder.with_name("calls")
    environ = {**os.environ, "LD_PRELOAD": str(recorder()), **followed(folder, log)}
    subprocess.run([sys.executable, "-c", script], cwd=folder, env=environ, check=True)
    return disk, list(calls_in(log))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file that is durable."""
    place = tmp_path / "root"
    place.mkdir(mode=0o700)
    (place / "old").write_bytes(b"old content")
    return place


def after(disk: Disk, calls: list[Call], fate: Fate, target: Path) -> dict[str, bytes]:
    """The files after these calls and a cut, by their paths."""
    for call in calls:
        disk.follow(call)
    target.mkdir()
    disk.write(target, fate)
    files = (path for path in target.rglob("*") if path.is_file())
    return {str(path.relative_to(target)): path.read_bytes() for path in files}


def test_what_is_written_down_is_all_that_was_done(folder: Path, tmp_path: Path) -> None:
    disk, calls = ran(folder, SCRIPT)
    found = after(disk, calls, ALL, tmp_path / "kept")
    assert disk.differences() == []
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert found == {str(path.relative_to(folder)): path.read_bytes() for path in files}
    assert found["folder/six"] == b"first, second"
    assert found["copied"] == b"old"
    assert (tmp_path / "kept" / "copied").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "kept" / "five").stat().st_nlink == 2


def test_a_call_that_was_not_seen_is_found(folder: Path) -> None:
    disk, calls = ran(folder, SCRIPT)
    writes = [number for number, call in enumerate(calls) if call.kind == "W"]
    for number, call in enumerate(calls):
        if number != writes[-1]:
            disk.follow(call)
    assert len(disk.differences()) == 1


def test_what_nobody_synced_is_gone(folder: Path, tmp_path: Path) -> None:
    disk, calls = ran(folder, SCRIPT)
    found = after(disk, calls, NOTHING, tmp_path / "lost")
    assert found == {"old": b"old content", "folder/one": b"hello world"}


def test_bytes_are_durable_by_a_sync_of_the_file_and_names_by_one_of_the_folder(
    folder: Path, tmp_path: Path
) -> None:
    make = "import os; fd = os.open('new', os.O_CREAT | os.O_WRONLY); os.write(fd, b'data'); "
    file, names = "os.fsync(fd); ", "os.fsync(os.open('.', os.O_RDONLY)); "
    wanted = {make: None, make + file: None, make + names: b"", make + file + names: b"data"}
    for number, (script, content) in enumerate(wanted.items()):
        (folder / "new").unlink(missing_ok=True)
        found = after(*ran(folder, script), NOTHING, tmp_path / str(number))
        assert found.get("new") == content, script


def test_a_disk_that_ignores_syncs_keeps_nothing(folder: Path, tmp_path: Path) -> None:
    disk, calls = ran(folder, SCRIPT)
    for call in calls:
        disk.follow(call, syncs=lambda path: False)
    disk.write(tmp_path, NOTHING)
    assert not (tmp_path / "folder").exists()


def test_sectors_of_one_write_are_lost_each_by_itself(folder: Path, tmp_path: Path) -> None:
    script = "import os; fd = os.open('old', os.O_WRONLY); os.pwrite(fd, b'n' * 8192, 0)"
    found = after(*ran(folder, script), Fate(0.5, 1.0, 512, Random(1)), tmp_path / "torn")["old"]
    pieces = {found[start : start + 512] for start in range(512, 8192, 512)}
    assert pieces == {b"n" * 512, bytes(512)}


def test_changes_of_one_folder_are_lost_from_the_end_on(folder: Path, tmp_path: Path) -> None:
    script = "\n".join(f"open('{name}', 'w').close()" for name in "abcdefgh")
    disk, calls = ran(folder, script)
    for call in calls:
        disk.follow(call)
    seen = set()
    for seed in range(20):
        target = tmp_path / str(seed)
        target.mkdir()
        disk.write(target, Fate(1.0, 0.8, 512, Random(seed)))
        seen.add("".join(sorted(path.name for path in target.iterdir() if path.name != "old")))
    assert all("abcdefgh".startswith(names) for names in seen)
    assert len(seen) > 3


@pytest.mark.parametrize(
    "script",
    [
        "import os; os.symlink('old', 'new')",
        "import mmap; f = open('old', 'r+b'); mmap.mmap(f.fileno(), 0)",
    ],
)
def test_a_call_whose_effect_is_not_known_is_told(folder: Path, script: str) -> None:
    disk, calls = ran(folder, script)
    with pytest.raises(Unmodelled):
        disk.follow(calls[-1])
