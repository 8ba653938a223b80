"""Backups and what a restore moved aside are found and named."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile

import pytest

from agentd.core.erasure import Erasure
from agentd.storage.copies import Copies
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database

NOTHING = Erasure()


def archive(path, name):
    with tarfile.open(path, "w:gz") as file:
        entry = tarfile.TarInfo(name)
        entry.size = 3
        file.addfile(entry, io.BytesIO(b"abc"))


async def test_archives_of_agentd_and_asides_are_named_and_others_are_not(tmp_path):
    inner = tmp_path / "state" / "deep"
    inner.mkdir(parents=True)
    archive(inner / "monday.bin", "state/state.db")
    archive(tmp_path / "photos.tar.gz", "photos/one.jpg")
    (tmp_path / "cut.tar.gz").write_bytes((inner / "monday.bin").read_bytes()[:20])
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"hello"))
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to(inner / "monday.bin")
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    aside = tmp_path / "workspace.before-20261122T000000"
    aside.mkdir()
    (aside / "note.md").touch()
    for name in ("state.db", "beside.json", "facts.key", "rows.key"):  # only the first holds words
        (tmp_path / f"{name}.before-20261122T000000").write_bytes(b"x")
    (tmp_path / "state.db.before-20261122T000000-wal").touch()
    copies = Copies([tmp_path, tmp_path / "state", tmp_path / "absent"], ())
    assert await copies.list(NOTHING) == (
        str(tmp_path / "state.db.before-20261122T000000"),
        str(inner / "monday.bin"),
        str(aside),
    )


async def test_snapshots_and_exports_that_hold_the_words_are_named(tmp_path):
    kept = tmp_path / "state" / "versions"
    kept.mkdir(parents=True)
    (kept / "old").write_text("The user lives in Ulm.")
    (tmp_path / "monday.0c").write_text("x" * (1 << 18) + "\nthe user lives in Ulm\n")
    (tmp_path / "facts.json").write_text('{"text": "The user lives\\nin Ulm."}')
    (tmp_path / "other.0c").write_text("Ulm minster is high.")
    copies = Copies([tmp_path], (), erased=[kept])
    assert await copies.list(Erasure(spans=("The user lives in Ulm.",))) == (
        str(tmp_path / "facts.json"),
        str(tmp_path / "monday.0c"),
    )
    assert await copies.list(NOTHING) == ()


async def test_where_erasures_reach_only_what_may_be_a_backup_is_opened(tmp_path):
    file, inner = tmp_path / "state.db", tmp_path / "workspace"
    async with Database.open(file, STATE):
        pass
    inner.mkdir()
    with tarfile.open(inner / "monday.gz", "w:gz") as backup:
        backup.add(file, "state/state.db")  # of a home without any content
    archive(inner / "note.md", "state/state.db")
    assert await Copies([tmp_path], [file], erased=[inner]).list(NOTHING) == (
        str(inner / "monday.gz"),
    )


async def test_the_record_of_commits_is_not_taken_for_a_text(tmp_path):
    (tmp_path / "state.db-acknowledged").write_bytes(b"The user lives in Ulm.")
    copies = Copies([tmp_path], [tmp_path / "state.db"])
    assert await copies.list(Erasure(spans=("The user lives in Ulm.",))) == ()


async def test_the_journal_is_named_with_the_command_that_empties_it(tmp_path):
    copies = Copies([tmp_path], (), "journalctl --rotate --vacuum-time=1s")
    assert await copies.list(NOTHING) == ("journal (journalctl --rotate --vacuum-time=1s)",)


# SQLite's lock on byte 128 of the shared memory says that the database is in use. Without it the
# next process cuts the file, and who has it mapped is killed by the kernel.
OTHER_PROCESS = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)
    except OSError:
        print("in use")
"""


def seen_by_another_process(path):
    command = [sys.executable, "-c", OTHER_PROCESS, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("has_link", [False, True])
async def test_an_open_database_keeps_its_locks_while_copies_are_looked_for(tmp_path, has_link):
    file = tmp_path / "state" / "state.db"
    async with Database.open(file, STATE) as db:
        await db.execute("CREATE TABLE more (id INTEGER)", ())
        shared = file.with_name("state.db-shm")
        if has_link:
            (tmp_path / "snapshot").hardlink_to(shared)
        assert seen_by_another_process(shared) == "in use"
        assert await Copies([tmp_path], [file]).list(NOTHING) == ()
        assert seen_by_another_process(shared) == "in use"
