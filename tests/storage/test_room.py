"""A file system that takes no more is told for what it lacks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from agentd.core.errors import StorageFull
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a megabyte in twelve files."""
    options = "size=1m,nr_inodes=12,mode=0700"
    argv = ("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(tmp_path))
    mounted = subprocess.run(argv, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no tmpfs may be mounted here: {mounted.stderr.strip()}")
    yield tmp_path
    subprocess.run(("umount", str(tmp_path)), check=True)


async def refusal(folder: Path) -> StorageFull:
    with pytest.raises(StorageFull) as refused:
        async with Database.open(folder / "state.db", STATE):
            pass
    return refused.value


async def test_used_up_inodes_are_told_as_such(small: Path) -> None:
    with suppress(OSError):
        for number in count():
            (small / str(number)).touch()
    told = await refusal(small)
    assert "no inodes left" in told.message
    assert "df -i" in told.cure


async def test_used_up_space_is_told_as_such(small: Path) -> None:
    (small / "filler").touch()
    with suppress(OSError), (small / "filler").open("wb", 0) as file:
        for _ in count():
            file.write(b"x" * 4096)
    told = await refusal(small)
    assert "no space left" in told.message
    assert "inode" not in told.message
