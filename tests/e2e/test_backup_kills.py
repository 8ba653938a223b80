"""A backup whose daemon is killed at any moment: there is no half archive under its name, the home
is as it was, nothing is left behind, and the next backup under the same name is whole.

The control cuts an archive, takes a row away, or leaves a copy behind, and the same look finds it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentd.app import backup
from agentd.core.errors import AgentdError
from tests.e2e.forked import Forked, parent
from tests.e2e.shell import PATIENCE, Shell, a_shell
from tests.finding import holding

SAID, WORD = "the heron nests at Quillfeather", b"Quillfeather"
FEW, MANY = 4, 50
_BULK = 24  # megabytes of a picture that no archive makes smaller: a backup takes a moment


@pytest.fixture
def home() -> Iterator[Shell]:
    """A home that knows one thing; its daemon has stopped."""
    with a_shell() as shell:
        shell.wake()
        shell.ok("send", f"remember that {SAID}")
        (shell.workspace / "picture.bin").write_bytes(os.urandom(_BULK << 20))
        shell.ok("stop")
        yield shell


def archive(home: Shell) -> Path:
    return home.root / "b.tar.gz"


def begun(home: Shell) -> Forked:
    """A command at work."""
    with Path(os.devnull).open("r+b") as null:
        streams = [null.fileno()] * 3
        argv = ["backup", str(archive(home))]
        return parent().start(argv, streams, environ=home.environ(), folder=home.root)


def has_ended(process: Forked, within: float) -> bool:
    try:
        process.ended(within)
    except TimeoutError:
        return False
    return True


def strays(home: Shell) -> list[str]:
    """What a backup leaves that is cut."""
    found = [*(home.root / "state").glob(".backup-*"), *home.root.glob(".agentd-*")]
    return sorted(path.name for path in found)


def whole(file: Path) -> bool:
    """Whether an archive is there, and all of it. AssertionError for a half one."""
    if not file.exists():
        return False
    try:
        backup.verify(file)
    except AgentdError as error:
        raise AssertionError(f"half an archive has the final name: {error}") from error
    return True


def look(home: Shell, before: str) -> None:
    """AssertionError unless the home says what it said before, and the next backup holds it."""
    file = archive(home)
    if whole(file):
        file.unlink()
    home.wake()
    assert home.ok("sessions", "export", "main").out == before, "the home was changed"
    assert holding(home.root, WORD), "what was said is gone"
    home.ok("backup", str(file))
    assert whole(file)
    assert not strays(home), f"left behind: {strays(home)}"
    home.ok("stop")
    with closing(sqlite3.connect(home.root / "state" / "state.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    file.unlink()


def swept(home: Shell, steps: int) -> int:
    """Kill at so many moments, from the first to behind the last, the daemon and by turns the
    command alone; how many backups were cut in the middle.
    """
    home.wake()
    before = home.ok("sessions", "export", "main").out
    started = time.monotonic()
    assert begun(home).ended(PATIENCE) == 0
    length = time.monotonic() - started
    home.ok("stop")
    look(home, before)
    in_the_middle = 0
    for step in range(steps):
        home.wake()
        command = begun(home)
        has_ended(command, 1.2 * length * step / steps)
        if step % 4 == 3:
            command.kill()
            home.ok("stop")  # which waits for the backup, but not for long
        else:
            home.daemons[-1].kill()
            assert home.daemons[-1].ended(PATIENCE) < 0
            assert has_ended(command, PATIENCE)
            in_the_middle += bool(strays(home))
        look(home, before)
    return in_the_middle


@pytest.mark.timeout(300)
def test_a_few_cut_backups_harm_nothing(home: Shell) -> None:
    assert swept(home, FEW)


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_many_cut_backups_harm_nothing(home: Shell) -> None:
    assert swept(home, MANY) > MANY / 10


def half_an_archive(home: Shell) -> None:
    archive(home).write_bytes(archive(home).read_bytes()[:-5000])


def a_row_gone(home: Shell) -> None:
    archive(home).unlink()
    with closing(sqlite3.connect(home.root / "state" / "state.db")) as db, db:
        db.execute("DELETE FROM rows WHERE id = (SELECT max(id) FROM rows)")


@pytest.mark.parametrize(
    ("harm", "told"), [(half_an_archive, "half an archive"), (a_row_gone, "was changed")]
)
def test_harm_would_be_found(home: Shell, harm: Callable[[Shell], None], told: str) -> None:
    home.wake()
    before = home.ok("sessions", "export", "main").out
    home.ok("backup", str(archive(home)))
    home.ok("stop")
    harm(home)
    with pytest.raises(AssertionError, match=told):
        look(home, before)
