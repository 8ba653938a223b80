"""Putting a backup where a daemon looks for its things; what is there is moved aside, never deleted."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from agentd.app import backup
from agentd.app.config import Reaching, load, placed, reaching
from agentd.core.errors import AgentdError, ConfigError
from agentd.core.paths import Places, daemon_places, ensure_private_dir, sync_directory, sync_file
from agentd.memory.facts.known import Digests
from agentd.storage import restores
from agentd.storage.beside import note_of
from agentd.storage.fact_store import bury_again, tombstones_in
from agentd.storage.lock import state_lock
from agentd.storage.rescue import forget_count

_SUFFIXES = ("", "-wal", "-shm", "-journal")


Agree = Callable[[Sequence[Reaching]], None]


def restore(
    file: Path,
    places: Places,
    environ: Mapping[str, str],
    now: datetime,
    *,
    force: bool,
    agree: Agree,
) -> dict[str, Any]:
    """Restore an archive; `{restored, aside, forgotten}`. `aside` is where old things are now, `forgotten`
    how many facts of the archive had been forgotten since and are so again, or None where that cannot
    be told. Blocks.

    What is in an archive is data: its settings that run programs, send or read elsewhere are put to
    `agree`, which raises where they are not wanted, unless they are in force here already.

    Raises AlreadyRunning while a daemon uses the place, AgentdError for one that is not empty unless
    forced, and for an archive that is not whole. Then nothing was changed.
    """
    ensure_private_dir(places.state_dir)
    with state_lock(places.state_dir):
        restores.clear(places.state_dir)
        stage = restores.new_stage(places.state_dir, f"{now:%Y%m%dT%H%M%S}")
        staged = daemon_places({"AGENTD_HOME": str(stage)})  # an archive is laid out as a home is
        try:
            manifest = backup.unpack(file, stage)
            alone = manifest.get("holds") == backup.STATE_ALONE
            backup.check_database(staged.database, foreign=True)
            if strange := _strange(staged, places):
                agree(strange)
            config = places.config_file if alone else staged.config_file
            places = placed(load(config, environ), places)
            old = [path for path in _targets(places, alone=alone) if _is_there(path)]
            if old and not force:
                raise AgentdError(
                    f"{old[0]} exists",
                    cure="restore into an empty AGENTD_HOME, or with --force, which moves it aside",
                )
            forgotten = _forgotten_since(places, staged, now)
            forget_count(staged.database)
            name = _free_name(old, now)
            restores.begin_moving(stage)
            aside = [str(path.rename(path.with_name(f"{path.name}.{name}"))) for path in old]
            _put(staged, places)
            restores.end_moving(places.state_dir)
        except OSError as error:
            raise AgentdError(
                f"{error.filename or file} cannot be restored: {error.strerror}",
                cure="make room, or the folder writable for you; nothing was deleted",
            ) from error
        finally:
            restores.clear(places.state_dir)
    return {"restored": len(manifest["files"]), "aside": aside, "forgotten": forgotten}


def _strange(staged: Places, places: Places) -> tuple[Reaching, ...]:
    """The settings of the archive that act beyond agentd, but for those that do so here by now."""
    try:
        known = reaching(load(places.config_file, {}))
    except ConfigError:
        known = ()
    return tuple(one for one in reaching(load(staged.config_file, {})) if one not in known)


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
    name = f"before-{now:%Y%m%dT%H%M%S}"
    for number in count(1):
        wanted = name if number == 1 else f"{name}-{number}"
        if not any(os.path.lexists(path.with_name(f"{path.name}.{wanted}")) for path in old):
            return wanted
    raise AssertionError("numbers end")


def _put(staged: Places, places: Places) -> None:
    moves = (
        (staged.database, places.database),
        (staged.versions, places.versions),
        (staged.images, places.images),
        (staged.mcp_pins, places.mcp_pins),
        (staged.facts_key, places.facts_key),
        (staged.rows_key, places.rows_key),
        (staged.workspace, places.workspace),
        (staged.config_file, places.config_file),
    )
    for source, target in moves:
        if source.exists():
            _move(source, target)


def _move(source: Path, target: Path) -> None:
    ensure_private_dir(target.parent)
    if target.is_dir():
        target.rmdir()  # empty: everything else was moved aside
    for path in (source, *source.rglob("*")):
        sync_file(path)
    if source.stat().st_dev == target.parent.stat().st_dev:
        source.rename(target)
    elif source.is_dir():
        for path in filter(Path.is_file, source.rglob("*")):
            _write(target / path.relative_to(source), path.read_bytes())
    else:
        _write(target, source.read_bytes())
    sync_directory(target.parent)


def _write(path: Path, data: bytes) -> None:
    ensure_private_dir(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    sync_directory(path.parent)
