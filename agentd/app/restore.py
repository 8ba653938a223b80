"""Putting a backup where a daemon looks for its things; what is there is moved aside, never deleted.

A folder `.restore-…` beside the database holds what is unpacked. From the first thing that is moved aside to
the last that is put in place a mark stands in it. A step that fails takes back those before it; where a kill has
left the mark, the home is neither the old one nor the archive's, and a daemon that worked there would take
missing notes for deleted ones.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from agentd.app import backup
from agentd.app.config import Reaching, load, reaching, with_workspace
from agentd.core.errors import AgentdError, ConfigError, StateMissing
from agentd.core.paths import Places, daemon_places, ensure_private_dir, sync_directory, sync_file
from agentd.memory.facts.known import Digests
from agentd.storage.companion_files import note_of
from agentd.storage.fact_store import bury_again, tombstones_in
from agentd.storage.lock import state_lock
from agentd.storage.rescue import forget_count

_SUFFIXES = ("", "-wal", "-shm", "-journal")
_STAGE = ".restore-"
_MOVING = "moving"
_STAMP = "%Y%m%dT%H%M%S"
_NO_PLACE = (errno.EXDEV, errno.EBUSY, errno.ENOTDIR)  # what is mounted, or a link, is not replaced


Agree = Callable[[Sequence[Reaching]], None]
_Steps = list[Callable[[], object]]  # that take back what was done, the last first


def restore(
    file: Path,
    places: Places,
    environ: Mapping[str, str],
    now: datetime,
    *,
    force: bool,
    agree: Agree,
    with_config: bool = True,
) -> dict[str, Any]:
    """Restore an archive; `{restored, aside, forgotten, config}`. `aside` is where old things are now,
    `forgotten` how many facts of the archive had been forgotten since and are so again, or None where
    that cannot be told. Without `with_config` the configuration that is here stays in force, and `config` is
    where that of the archive was put to be read, else None. Blocks.

    What is in an archive is data: its settings that run programs, send or read elsewhere are put to
    `agree`, which raises where they are not wanted, unless they are in force here already.

    Raises AlreadyRunning while a daemon uses the place; AgentdError for one that is not empty unless
    forced, for an archive that is not whole, and for what the file system refuses; ConfigError for a
    configuration in the archive that is none here. Then nothing was changed.
    """
    ensure_private_dir(places.state_dir)
    with state_lock(places.state_dir):
        _clear(places.state_dir)
        stage = _new_stage(places.state_dir, now)
        staged = daemon_places({"AGENTD_HOME": str(stage)})  # an archive is laid out as a home is
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
                raise AgentdError(
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
    """Raises StateMissing where a restore was cut while it moved things."""
    for stage in _stages(state_dir):
        if (stage / _MOVING).exists():
            raise StateMissing(
                "a restore was cut before it was complete: part of what it brings is in place, part is not",
                cure="run `agentd restore FILE --force` again; what was there before stands beside it with"
                f" .before-… behind its name (if you put that back by hand, remove {stage})",
            )


def _as_wanted(
    file: Path, staged: Places, places: Places, environ: Mapping[str, str], agree: Agree
) -> Places:
    """The places as the configuration in the archive has them, with its settings agreed to. Raises
    ConfigError, and what `agree` raises.
    """
    own = staged.config_file
    try:
        wanted = reaching(load(own, {}))
        there = with_workspace(load(own, environ), places)
    except ConfigError as error:
        raise ConfigError(
            error.message.replace(str(own), f"{own.name} in {file}"),
            cure="--without-config restores all else, and leaves the configuration that is here in force",
        ) from None
    try:
        known = reaching(load(places.config_file, {}))
    except ConfigError:
        known = ()
    if strange := tuple(one for one in wanted if one not in known):
        agree(strange)
    return there


def _as_here(places: Places, environ: Mapping[str, str], now: datetime) -> Places:
    """The places as the configuration that is here has them, and one for another, which is not to be in
    force. Raises ConfigError.
    """
    name = f"{places.config_file.name}.restored-{now:{_STAMP}}"
    apart = next(
        path
        for number in count(1)
        if not os.path.lexists(path := places.state_dir / f"{name}{_numbered(number)}")
    )
    return replace(with_workspace(load(places.config_file, environ), places), config_file=apart)


def _forgotten_since(places: Places, staged: Places, now: datetime) -> int | None:
    """Forget in the archive's facts what the state that is there has forgotten. The book takes their
    lines off the page at the next start, and erases their words. Hashes under another key say nothing.
    """
    tombstones = tombstones_in(places.database)
    keys = [places.facts_key, staged.facts_key]
    if tombstones is None or not all(key.is_file() for key in keys):
        return None
    key, archived = (key.read_bytes() for key in keys)
    if key != archived:
        return None
    return bury_again(staged.database, tombstones, Digests(key).of, now)


def _targets(places: Places, *, alone: bool) -> list[Path]:
    """What is moved aside: all, or the state `alone` where the archive holds no more."""
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
    """What is put behind the names of what is moved aside: so far no file has that there, not even where a
    restore of this very second was cut.
    """
    for number in count(1):
        wanted = f"before-{now:{_STAMP}}{_numbered(number)}"
        if not any(os.path.lexists(path.with_name(f"{path.name}.{wanted}")) for path in old):
            return wanted
    raise AssertionError("numbers end")


def _exchange(
    stage: Path, staged: Places, places: Places, old: Sequence[Path], now: datetime
) -> list[str]:
    """Move what is there aside and what was unpacked in place; where the old things are. A step that fails
    takes back those before it. Raises OSError; AgentdError where that fails, too.
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
    for one in _stages(places.state_dir):  # what earlier restores have left half done is whole now
        _unmark(one)
    return [str(path) for path in aside]


def _take_back(steps: _Steps) -> None:
    try:
        for step in reversed(steps):
            step()
    except OSError as error:
        raise AgentdError(
            f"the restore failed, and {error.filename} cannot be put back ({error.strerror})",
            cure="run `agentd restore FILE --force` again when the file system works; what was there"
            " before stands beside it with .before-… behind its name",
        ) from error


def _moves(staged: Places, places: Places) -> tuple[tuple[Path, Path], ...]:
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
    """Put it there, where nothing is but perhaps an empty folder."""
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
    """A folder of its own for what this restore unpacks. Raises OSError."""
    name = f"{_STAGE}{now:{_STAMP}}"
    names = (f"{name}{_numbered(number)}" for number in count(1))
    free = next(one for one in names if not os.path.lexists(state_dir / one))
    return ensure_private_dir(state_dir / free)


def _stages(state_dir: Path) -> list[Path]:
    return [path for path in state_dir.glob(f"{_STAGE}*") if path.is_dir()]


def _clear(state_dir: Path) -> None:
    """Remove what restores have unpacked that have moved nothing, or all; the caller holds the lock, so that
    no other is at work.
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
    """What tells names of one second apart."""
    return "" if number == 1 else f"-{number}"
