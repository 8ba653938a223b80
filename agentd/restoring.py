"""Putting a backup where a daemon looks for its things; what is there is moved aside, never deleted."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from agentd import backup
from agentd.config import load, placed
from agentd.errors import AgentdError
from agentd.facts.known import Digests
from agentd.paths import Places, ensure_private_dir
from agentd.storage.graves import bury_again, graves_in
from agentd.storage.lock import state_lock

_DATABASES = ("state.db", "index.db")
_KEY = "facts.key"
_BESIDE = ("versions", "blobs", _KEY)
_SUFFIXES = ("", "-wal", "-shm", "-journal")


def restore(
    file: Path, places: Places, environ: Mapping[str, str], now: datetime, *, force: bool
) -> dict[str, Any]:
    """Restore an archive; `{restored, aside, forgotten}`. `aside` is where old things are now, `forgotten`
    how many facts of the archive had been forgotten since and are so again, or None where that cannot
    be told. Blocks.

    Raises AlreadyRunning while a daemon uses the place, AgentdError for one that is not empty unless
    forced, and for an archive that is not whole. Then nothing was changed.
    """
    ensure_private_dir(places.state_dir)
    with state_lock(places.state_dir):
        manifest = backup.verify(file)
        stage = ensure_private_dir(places.state_dir / f".restore-{now:%Y%m%dT%H%M%S}")
        try:
            for name, data in backup.read(file):
                _write(stage / name, data)
            backup.check_database(stage / backup.DATABASE)
            places = placed(load(stage / backup.CONFIG, environ), places)
            old = [path for path in _targets(places) if _is_there(path)]
            if old and not force:
                raise AgentdError(
                    f"{old[0]} exists",
                    cure="restore into an empty AGENTD_HOME, or with --force, which moves it aside",
                )
            forgotten = _forgotten_since(places.state_dir, stage, now)
            aside = [str(_aside(path, now)) for path in old]
            _put(stage, places)
        finally:
            _remove(stage)
    return {"restored": len(manifest["files"]), "aside": aside, "forgotten": forgotten}


def _forgotten_since(state: Path, stage: Path, now: datetime) -> int | None:
    """Forget in the archive's facts what the state that is there has forgotten. The book takes their
    lines off the page at the next start, and erases their words. Hashes under another key say nothing.
    """
    graves = graves_in(state / "state.db")
    keys = [folder / _KEY for folder in (state, stage / "state")]
    if graves is None or not all(key.is_file() for key in keys):
        return None
    key, archived = (key.read_bytes() for key in keys)
    if key != archived:
        return None
    return bury_again(stage / backup.DATABASE, graves, Digests(key).of, now)


def _targets(places: Places) -> list[Path]:
    state = places.state_dir
    files = [state / (name + suffix) for name in _DATABASES for suffix in _SUFFIXES]
    return [places.config_file, places.workspace, *files, *(state / name for name in _BESIDE)]


def _is_there(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def _aside(path: Path, now: datetime) -> Path:
    target = path.with_name(f"{path.name}.before-{now:%Y%m%dT%H%M%S}")
    if target.exists():
        raise AgentdError(f"{target} exists", cure="wait a second, or move it away")
    path.rename(target)
    return target


def _put(stage: Path, places: Places) -> None:
    moves = (
        (stage / backup.DATABASE, places.state_dir / "state.db"),
        *((stage / "state" / name, places.state_dir / name) for name in _BESIDE),
        (stage / "workspace", places.workspace),
        (stage / backup.CONFIG, places.config_file),
    )
    for source, target in moves:
        if source.exists():
            _move(source, target)


def _move(source: Path, target: Path) -> None:
    ensure_private_dir(target.parent)
    if target.is_dir():
        target.rmdir()  # empty: everything else was moved aside
    _walk(source, _sync)
    if source.stat().st_dev == target.parent.stat().st_dev:
        source.rename(target)
    elif source.is_dir():
        _walk(source, lambda path: _write(target / path.relative_to(source), path.read_bytes()))
    else:
        _write(target, source.read_bytes())
    _sync(target.parent)


def _walk(path: Path, each: Callable[[Path], None]) -> None:
    for file in path.rglob("*") if path.is_dir() else (path,):
        if file.is_file():
            each(file)


def _write(path: Path, data: bytes) -> None:
    ensure_private_dir(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(stage: Path) -> None:
    for path in sorted(stage.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
    stage.rmdir()
