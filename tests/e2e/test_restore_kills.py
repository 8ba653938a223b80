"""A restore that is killed, or whose power is cut, at any moment: nothing that was there is lost,
and the next one does all of it. One that has said that it is done is done, also when the power goes
then.

The control takes away what a cut restore has moved aside, and the same look finds that something is
missing.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from copy import deepcopy
from pathlib import Path
from random import Random

import pytest

from tests.e2e.disk import COMPILER, Disk, Fate, calls_in, followed, recorder
from tests.e2e.forked import Forked, parent
from tests.e2e.shell import Shell, a_shell
from tests.finding import holding

OLD, NEW = "the heron nests at Quillfeather", "the otter lives at Brackenmoor"
WORD_OLD, WORD_NEW = b"Quillfeather", b"Brackenmoor"
FEW, MANY = 12, 200
KEPT = (0.0, 0.5, 1.0)  # how much of what was not synced is there


@pytest.fixture(scope="module")
def archive() -> Iterator[Path]:
    """A backup of a home that knows one thing."""
    with a_shell() as shell:
        shell.wake()
        shell.ok("send", f"remember that {OLD}")
        shell.ok("backup", str(shell.root / "b.tar.gz"))
        yield shell.root / "b.tar.gz"


@pytest.fixture(scope="module")
def used() -> Iterator[Path]:
    """A home that knows another, its daemon stopped."""
    with a_shell() as shell:
        shell.wake()
        shell.ok("send", f"remember that {NEW}")
        shell.ok("stop")
        yield shell.root


@contextmanager
def copied(home: Path) -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="ar-"))
    try:
        shutil.copytree(home, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.sock"))
        yield root
    finally:
        shutil.rmtree(root)


def begun(
    root: Path,
    archive: Path,
    preloaded: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Forked:
    """A restore at work."""
    argv = ["restore", str(archive), "--force", "--trust"]
    environ = {**os.environ, "AGENTD_HOME": str(root), **(variables or {})}
    with Path(os.devnull).open("r+b") as null:
        return parent(preloaded).start(argv, [null.fileno()] * 3, environ=environ, folder=root)


async def cut(root: Path, archive: Path, after: float) -> None:
    """A restore that is killed after so many seconds."""
    process = begun(root, archive)
    await asyncio.sleep(after)
    process.kill()
    await process.wait()


def kept(root: Path) -> set[str]:
    """In which of its two places what the home knew still stands, moved aside or not."""
    found = holding(root, WORD_NEW)
    state = {"state" for name in found if Path(name).name.startswith("state.db")}
    return state | {
        "notes" for name in found if name.startswith("workspace") and name.endswith("facts.md")
    }


def is_half(root: Path) -> bool:
    """Whether the places are neither the old ones nor the archive's."""
    places = (root / "config.toml", root / "workspace", root / "state" / "state.db")
    return any(root.glob("*.before-*")) and not all(place.exists() for place in places)


def look(root: Path, archive: Path) -> None:
    """AssertionError unless all is still there, and a second restore does the whole of it."""
    assert kept(root) == {"state", "notes"}, f"something is lost: {kept(root)} is left"
    shell = Shell(root)
    if is_half(root):
        refused = shell("run")
        assert refused.code == 78, refused
        assert "a restore was cut" in refused.err
        assert kept(root) == {"state", "notes"}, "the start has lost something"
    shell.ok("restore", str(archive), "--force", "--trust")
    assert kept(root) == {"state", "notes"}, "the second restore has lost something"
    litter = [path.name for path in (root / "state").glob(".restore-*")]
    assert not litter, f"what the cut one unpacked is still there: {litter}"
    look_at_places(root)


def look_at_places(root: Path) -> None:
    """AssertionError unless they are the archive's."""
    assert not is_half(root), "the restore is not complete"
    with closing(sqlite3.connect(root / "state" / "state.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (said,) = db.execute("SELECT group_concat(blocks) FROM rows").fetchone()
    assert OLD in said
    assert NEW not in said
    page = (root / "workspace" / "memory" / "facts.md").read_text("utf-8")
    assert "Quillfeather" in page
    assert "Brackenmoor" not in page


async def swept(used: Path, archive: Path, steps: int) -> int:
    """Kill restores at so many moments, from the first to behind the last; how many were cut in the
    middle.
    """
    with copied(used) as root:
        clock = asyncio.get_running_loop().time
        started = clock()
        assert await begun(root, archive).wait() == 0
        whole = clock() - started
        look(root, archive)
    in_the_middle = 0
    for step in range(steps):
        with copied(used) as root:
            await cut(root, archive, 1.2 * whole * step / steps)
            names = [path.name for path in (root, root / "state") for path in path.iterdir()]
            in_the_middle += any(".before-" in name or ".restore-" in name for name in names)
            look(root, archive)
    return in_the_middle


async def cut_off(used: Path, archive: Path, moments: int) -> None:
    """Cut the power at so many moments of a restore, each time with another fate, and as often when
    it is done.
    """
    with copied(used) as root:
        log = root.with_suffix(".calls")
        disk, variables = Disk(root), followed(root, log)
        assert await begun(root, archive, recorder(), variables).wait() == 0
        calls = tuple(calls_in(log))
        log.unlink()
    chance = Random(moments)
    for step in range(2 * moments):
        end = chance.randrange(len(calls)) if step < moments else len(calls)
        after = deepcopy(disk)
        for call in calls[:end]:
            after.follow(call)
        fate = Fate(chance.choice(KEPT), chance.choice(KEPT), 512, chance)
        with tempfile.TemporaryDirectory(prefix="ar-") as folder:
            after.write(Path(folder), fate)
            try:
                if end == len(calls):
                    look_at_places(Path(folder))
                    assert not list(Path(folder).rglob("moving")), "it is said to be cut"
                look(Path(folder), archive)
            except AssertionError as found:
                raise AssertionError(f"cut {end} of {len(calls)}, {fate}: {found}") from found


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler: cc or gcc")
@pytest.mark.timeout(300)
async def test_a_few_power_cuts_of_a_restore_lose_nothing(used: Path, archive: Path) -> None:
    await cut_off(used, archive, FEW // 2)


@pytest.mark.torture
@pytest.mark.timeout(3600)
async def test_many_power_cuts_of_a_restore_lose_nothing(used: Path, archive: Path) -> None:
    await cut_off(used, archive, MANY // 2)


@pytest.mark.timeout(300)
async def test_a_few_cut_restores_lose_nothing(used: Path, archive: Path) -> None:
    assert await swept(used, archive, FEW)


@pytest.mark.torture
@pytest.mark.timeout(3600)
async def test_many_cut_restores_lose_nothing(used: Path, archive: Path) -> None:
    assert await swept(used, archive, MANY) > MANY / 10


async def test_what_is_taken_away_would_be_found(used: Path, archive: Path) -> None:
    with copied(used) as root:
        assert await begun(root, archive).wait() == 0
        for aside in root.glob("workspace.before-*"):
            shutil.rmtree(aside)
        with pytest.raises(AssertionError, match="something is lost"):
            look(root, archive)
