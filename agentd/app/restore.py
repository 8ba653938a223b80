"""Restores a backup into the places of a daemon; existing files are moved aside, never deleted.

A folder `.restore-…` beside the database holds the unpacked files. It contains a mark from the
moment the first file is moved aside until the last one is in place. If a step fails, the steps
before it are undone. If a kill leaves the mark, the home is a mixture of old and restored files: a
daemon that ran there would take missing notes for deleted ones, so it refuses to start.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agentd.app import backup
from agentd.app.config import OutwardSetting, load, reaching, with_workspace
from agentd.core.errors import AgentdError, ConfigError, InvalidRequest, StateMissing
from agentd.core.paths import (
    DaemonPaths,
    daemon_places,
    ensure_private_dir,
    sync_directory,
    sync_file,
)
from agentd.memory.facts.known import Digests
from agentd.storage.companion_files import note_of
from agentd.storage.fact_store import bury_again, tombstones_in
from agentd.storage.lock import state_lock
from agentd.storage.rescue import forget_count

_SUFFIXES = ("", "-wal", "-shm", "-journal")
_STAGE = ".restore-"
_MOVING = "moving"
_STAMP = "%Y%m%dT%H%M%S"
# Errors of renaming to a mount point or a symbolic link, which is filled by copying instead.
_NO_PLACE = (errno.EXDEV, errno.EBUSY, errno.ENOTDIR)


Agree = Callable[[Sequence[OutwardSetting]], None]
_Steps = list[Callable[[], object]]  # each undoes one step; the last is called first


def restore(
    file: Path,
    places: DaemonPaths,
    environ: Mapping[str, str],
    now: datetime,
    *,
    force: bool,
    agree: Agree,
    with_config: bool = True,
) -> dict[str, Any]:
    """Restore an archive and return `{restored, aside, forgotten, config}`: the number of restored
    files, the new paths of the old ones, and how many facts of the archive had been forgotten since
    and have been forgotten again, None if that cannot be determined. Without `with_config` the
    present configuration stays in force, and `config` is the path to which the archive's
    configuration was written for reading, else None. Blocks.

    The contents of an archive are data: its settings that run programs, or that send or read
    elsewhere, are passed to `agree` unless they are in force here already. `agree` raises to refuse
    them.

    Raises AlreadyRunning while a daemon uses the place; InvalidRequest if the place is not empty
    and not `force`; AgentdError if the archive is not whole, and for errors of the file system;
    ConfigError if the archive's configuration is not valid here. Then nothing was changed.
    """
    ensure_private_dir(places.state_dir)
    with state_lock(places.state_dir):
        _clear(places.state_dir)
        stage = _new_stage(places.state_dir, now)
        staged = daemon_places({"AGENTD_HOME": str(stage)})  # an archive has the layout of a home
        try:
            manifest = backup.unpack(file, stage)
            alone = manifest.get("holds") == backup.STATE_ALONE
            backup.check_database(staged.database, foreign=True)
            if with_config and not alone:
                places = _as_wanted(file, staged, places, environ, agree)
            else:
                places = _as_here(places, environ, now)
            old = [path for path in _targets(places, alone=alone) if _is_there(path)]
            if old and not force:
                raise InvalidRequest(
                    f"{old[0]} exists",
                    cure="restore into an empty AGENTD_HOME, or with --force, which moves it aside",
                )
            forgotten = _forgotten_since(places, staged, now)
            forget_count(staged.database)
            aside = _exchange(stage, staged, places, old, now)
        except OSError as error:
            raise AgentdError(
                f"{error.filename or file} cannot be restored: {error.strerror}", cure=_cure(error)
            ) from error
        finally:
            _clear(places.state_dir)
    apart = None if with_config or not places.config_file.exists() else str(places.config_file)
    count_ = len(manifest["files"])
    return {"restored": count_, "aside": aside, "forgotten": forgotten, "config": apart}


def refuse_half(state_dir: Path) -> None:
    """Raise StateMissing if a restore was interrupted while it moved files."""
    for stage in _stages(state_dir):
        if (stage / _MOVING).exists():
            raise StateMissing(
                (
                    "a restore was cut before it was complete: part of what it brings is "
                    "in place, part is not"
                ),
                cure=(
                    "run `agentd restore FILE --force` again; what was there before stands "
                    "beside it with .before-… behind its name (if you put that back by hand, "
                    f"remove {stage})"
                ),
            )


def _as_wanted(
    file: Path, staged: DaemonPaths, places: DaemonPaths, environ: Mapping[str, str], agree: Agree
) -> DaemonPaths:
    """Return the places that the archive's configuration names, after `agree` has accepted its
    settings. Raises ConfigError, and what `agree` raises.
    """
    own = staged.config_file
    try:
        wanted = reaching(load(own, {}))
        there = with_workspace(load(own, environ), places)
    except ConfigError as error:
        raise ConfigError(
            error.message.replace(str(own), f"{own.name} in {file}"),
            cure=(
                "--without-config restores all else, and leaves the configuration "
                "that is here in force"
            ),
        ) from None
    try:
        known = reaching(load(places.config_file, {}))
    except ConfigError:
        known = ()
    if strange := tuple(one for one in wanted if one not in known):
        agree(strange)
    return there


def _as_here(places: DaemonPaths, environ: Mapping[str, str], now: datetime) -> DaemonPaths:
    """Return the places that the present configuration names, with a new path for the archive's
    configuration, which is not to be in force. Raises ConfigError.
    """
    name = f"{places.config_file.name}.restored-{now:{_STAMP}}"
    apart = next(
        path
        for number in count(1)
        if not os.path.lexists(path := places.state_dir / f"{name}{_numbered(number)}")
    )
    return replace(with_workspace(load(places.config_file, environ), places), config_file=apart)


def _forgotten_since(places: DaemonPaths, staged: DaemonPaths, now: datetime) -> int | None:
    """Forget in the archive's facts those that the present state has forgotten, and return their
    number. Return None if the present tombstones cannot be read, a key is missing or the keys
    differ, since tombstones are hashes under the key. At the next start the FactBook removes the
    lines from the page and erases their words.
    """
    tombstones = tombstones_in(places.database)
    keys = [places.facts_key, staged.facts_key]
    if tombstones is None or not all(key.is_file() for key in keys):
        return None
    key, archived = (key.read_bytes() for key in keys)
    if key != archived:
        return None
    return bury_again(staged.database, tombstones, Digests(key).of, now)


def _targets(places: DaemonPaths, *, alone: bool) -> list[Path]:
    """Return the paths that are moved aside: only those of the state if `alone`, because the
    archive contains nothing else.
    """
    databases = [
        database.with_name(database.name + suffix)
        for database in (places.database, places.index)
        for suffix in _SUFFIXES
    ]
    keys = [places.facts_key, places.rows_key]
    state = [*databases, *keys, places.acknowledged, note_of(places.state_dir)]
    if alone:
        return state
    return [
        places.config_file,
        places.workspace,
        *state,
        places.versions,
        places.images,
        places.mcp_pins,
    ]


def _is_there(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def _free_name(old: Sequence[Path], now: datetime) -> str:
    """Return a suffix for the names of the files that are moved aside. No file has it yet, not even
    one left by a restore that was interrupted in the same second.
    """
    for number in count(1):
        wanted = f"before-{now:{_STAMP}}{_numbered(number)}"
        if not any(os.path.lexists(path.with_name(f"{path.name}.{wanted}")) for path in old):
            return wanted
    raise AssertionError("numbers end")


def _exchange(
    stage: Path, staged: DaemonPaths, places: DaemonPaths, old: Sequence[Path], now: datetime
) -> list[str]:
    """Move the old files aside and the unpacked ones into place; return the new paths of the old
    files. If a step fails, the steps before it are undone. Raises OSError; AgentdError if undoing
    fails, too.
    """
    name = _free_name(old, now)
    back: _Steps = []
    _mark(stage)
    try:
        aside = [path.with_name(f"{path.name}.{name}") for path in old]
        for path, goal in zip(old, aside, strict=True):
            _rename(path, goal, back)
        for source, target in _moves(staged, places):
            if source.exists():
                _move(source, target, back)
    except BaseException:
        _take_back(back)
        _unmark(stage)
        raise
    for one in _stages(places.state_dir):  # this restore also completes interrupted ones
        _unmark(one)
    return [str(path) for path in aside]


def _take_back(steps: _Steps) -> None:
    try:
        for step in reversed(steps):
            step()
    except OSError as error:
        raise AgentdError(
            f"the restore failed, and {error.filename} cannot be put back ({error.strerror})",
            cure=(
                "run `agentd restore FILE --force` again when the file system works; what was "
                "there before stands beside it with .before-… behind its name"
            ),
        ) from error


def _moves(staged: DaemonPaths, places: DaemonPaths) -> tuple[tuple[Path, Path], ...]:
    return (
        (staged.database, places.database),
        (staged.versions, places.versions),
        (staged.images, places.images),
        (staged.mcp_pins, places.mcp_pins),
        (staged.facts_key, places.facts_key),
        (staged.rows_key, places.rows_key),
        (staged.workspace, places.workspace),
        (staged.config_file, places.config_file),
    )


def _move(source: Path, target: Path, back: _Steps) -> None:
    """Move `source` to `target`, where at most an empty folder exists."""
    ensure_private_dir(target.parent)
    for path in (source, *source.rglob("*")):
        sync_file(path)
    if target.is_dir() and not source.is_dir():
        target.rmdir()
        back.append(target.mkdir)
    try:
        _rename(source, target, back)
    except OSError as error:
        if error.errno not in _NO_PLACE:
            raise
        _copy(source, target, back)


def _rename(path: Path, target: Path, back: _Steps) -> None:
    path.rename(target)
    back.append(lambda: _rename(target, path, []))
    for folder in {path.parent, target.parent}:
        sync_directory(folder)


def _copy(source: Path, target: Path, back: _Steps) -> None:
    for path in (source, *sorted(source.rglob("*"))):
        goal = target / path.relative_to(source)
        if not path.is_dir():
            _write(path, goal, back)
        elif not goal.is_dir():
            ensure_private_dir(goal)
            back.append(goal.rmdir)


def _write(source: Path, target: Path, back: _Steps) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    back.append(target.unlink)
    with os.fdopen(descriptor, "wb") as file, source.open("rb") as data:
        shutil.copyfileobj(data, file)
        file.flush()
        os.fsync(descriptor)
    sync_directory(target.parent)


def _cure(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room, then restore it again; nothing was changed"
    if error.errno == errno.EBUSY:
        what = "something is mounted there: unmount it, or move what it holds elsewhere by hand"
    else:
        what = "make its folder writable for you"
    return f"{what} (--without-config leaves the configuration alone); nothing was changed"


def _new_stage(state_dir: Path, now: datetime) -> Path:
    """Create a new folder for the files that this restore unpacks. Raises OSError."""
    name = f"{_STAGE}{now:{_STAMP}}"
    names = (f"{name}{_numbered(number)}" for number in count(1))
    free = next(one for one in names if not os.path.lexists(state_dir / one))
    return ensure_private_dir(state_dir / free)


def _stages(state_dir: Path) -> list[Path]:
    return [path for path in state_dir.glob(f"{_STAGE}*") if path.is_dir()]


def _clear(state_dir: Path) -> None:
    """Remove the folders of restores that moved nothing, or everything. The caller holds the lock,
    so no restore is running.
    """
    for stage in _stages(state_dir):
        if not (stage / _MOVING).exists():
            shutil.rmtree(stage)


def _mark(stage: Path) -> None:
    (stage / _MOVING).touch()
    sync_directory(stage)


def _unmark(stage: Path) -> None:
    (stage / _MOVING).unlink(missing_ok=True)
    sync_directory(stage)


def _numbered(number: int) -> str:
    """Return what distinguishes names of the same second: "" for the first, else `-` and the
    number.
    """
    return "" if number == 1 else f"-{number}"
