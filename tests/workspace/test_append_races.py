"""What is appended stays in the workspace, whatever is linked to the file's name meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentd.core.errors import AgentdError
from agentd.core.tool import FileAction
from agentd.core.workspace import OWNER
from agentd.workspace.changes import FileChanges
from agentd.workspace.folder import Folder
from agentd.workspace.logfiles import LogFiles

NOW = datetime(2026, 11, 24, tzinfo=UTC)
SECRET = b"outside"

# Links the file outside to the note's name and takes the link away, as fast as it goes.
FLIPPER = """
import os, sys
outside, note = sys.argv[1:]
print("ready", flush=True)
while True:
    try:
        os.unlink(note)
    except FileNotFoundError:
        pass
    try:
        os.link(outside, note)
    except FileExistsError:
        pass
"""


@pytest.fixture
def note(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "outside").write_bytes(SECRET)
    return tmp_path / "in" / "a.md"


@contextmanager
def flipping(note: Path) -> Iterator[None]:
    command = [sys.executable, "-S", "-c", FLIPPER, str(outside(note)), str(note)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def outside(note: Path) -> Path:
    return note.parent.parent / "outside"


def escapes(note: Path, races: int, append: Callable[[], object]) -> tuple[int, int]:
    """How many of the races wrote outside, and how many wrote at all."""
    escaped = written = 0
    with flipping(note):
        for _ in range(races):
            with suppress(OSError, AgentdError):
                append()
                written += 1
            if outside(note).stat().st_size != len(SECRET):
                escaped += 1
                outside(note).write_bytes(SECRET)
    return escaped, written


def append_as_agentd_does(note: Path) -> Callable[[], object]:
    changes = FileChanges(Folder(note.parent), None)

    def append() -> None:
        intent = changes.plan((note.name,), FileAction.APPEND, b"x")
        changes.apply((note.name,), intent, NOW, OWNER)

    return append


def append_to_a_log(note: Path) -> Callable[[], object]:
    log = LogFiles(note.parent)
    return lambda: log.append_now((note.name,), b"x")


def append_after_a_look(note: Path) -> Callable[[], object]:
    """The control: what has one link after it was opened may have lost the one in the workspace."""

    def append() -> None:
        fd = os.open(note, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        try:
            if os.fstat(fd).st_nlink == 1:
                os.write(fd, b"x")
        finally:
            os.close(fd)

    return append


WAYS = [append_as_agentd_does, append_to_a_log]


@pytest.mark.parametrize("way", WAYS)
def test_an_append_never_reaches_a_file_that_was_linked_from_elsewhere(note: Path, way) -> None:
    escaped, written = escapes(note, 2_000, way(note))
    assert escaped == 0
    assert written > 0


@pytest.mark.torture
@pytest.mark.parametrize("way", WAYS)
def test_none_of_a_hundred_thousand_appends_escapes(note: Path, way) -> None:
    escaped, written = escapes(note, 100_000, way(note))
    assert escaped == 0
    assert written > 1_000


def test_looking_at_the_links_of_what_was_opened_does_escape(note: Path) -> None:
    tries = 0
    while not escapes(note, 10_000, append_after_a_look(note))[0]:
        tries += 1
        assert tries < 30


def test_what_others_append_meanwhile_stays_before_it(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("one\n")
    others = iter(["two\n", "three\n"])

    def passing(point: str) -> None:
        if point == "file.temp_written" and (line := next(others, "")):
            with file.open("a") as other:
                other.write(line)

    changes = FileChanges(Folder(tmp_path, passing=passing), None)
    intent = changes.plan(("a.md",), FileAction.APPEND, b"mine\n")
    assert not changes.apply(("a.md",), intent, NOW, OWNER)
    assert file.read_text() == "one\ntwo\nthree\nmine\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


async def test_a_log_goes_on_in_a_copy_when_another_file_has_its_name(tmp_path: Path) -> None:
    log, other = LogFiles(tmp_path), tmp_path / "other"
    await log.append("log.txt", b"one\n")
    first = (tmp_path / "log.txt").stat().st_ino
    await log.append("log.txt", b"two\n")
    assert (tmp_path / "log.txt").stat().st_ino == first
    other.write_bytes(b"theirs\n")
    (tmp_path / "log.txt").unlink()
    other.rename(tmp_path / "log.txt")
    os.link(tmp_path / "log.txt", other)
    other.unlink()
    await log.append("log.txt", b"three\n")
    assert (tmp_path / "log.txt").read_bytes() == b"theirs\nthree\n"
