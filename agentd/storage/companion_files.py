"""Notices the loss of files beside the database: configuration, keys, versions of files. Blocking.

Which of them existed at the last start is recorded in `beside.json`. What has disappeared since, or
was emptied, is reported like damage of the database.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import structlog
from msgspec import Struct
from msgspec.structs import asdict

from agentd.core.health import Problem
from agentd.core.paths import DaemonPaths, read_regular, write_private
from agentd.storage.damages import Damages
from agentd.storage.keys import KEY_BYTES

log = structlog.get_logger()

_NOTE = "beside.json"
_CONFIG_LOST = "config_lost"
_NOTHING, _COMMENTS, _SETTINGS = range(3)  # levels of `CompanionFiles.content`
_LEFT = "left"  # file in a damage's folder: how much was left of the lost configuration
_MOST_NAMED = 3
_OF_NOTHING = hashlib.sha256(b"").hexdigest()
_WHOLE = re.compile(r"log|[0-9a-f]{64}")


def note_of(state_dir: Path) -> Path:
    """Return the path of the record."""
    return state_dir / _NOTE


def check_companions(places: DaemonPaths, now: datetime) -> None:
    """Report what has disappeared since the last start, end the report of a configuration that is
    back, and record what exists now. Raises OSError.
    """
    before, here = _read_note(places.state_dir), _read_state(places)
    damages = Damages(places.database)
    for damage in damages.all():
        if damage.problem.code == _CONFIG_LOST and here.content > _left(damage.folder):
            shutil.rmtree(damage.folder)  # the configuration was put back
    _tell(places, _losses(places, before, here), here.content, now)
    if before != here:
        _keep(places.state_dir, here)


def check_before_new(places: DaemonPaths, now: datetime) -> None:
    """Report a missing configuration as `check_companions` does. To be called before a new one is
    written in its place unasked, because the loss could not be noticed afterwards. Raises OSError.
    """
    gone = () if places.config_file.exists() else _config_gone(places, _read_note(places.state_dir))
    _tell(places, gone, _COMMENTS, now)


def record_companions(places: DaemonPaths) -> None:
    """Record what was created since the last start; losses are left for the next start to find.
    Raises OSError.
    """
    before, here = _read_note(places.state_dir), _read_state(places)
    now = CompanionFiles(
        here.config,
        max(here.content, before.content if here.config == before.config else 0),
        here.facts_key or before.facts_key,
        here.versions or before.versions,
    )
    if now != before:
        _keep(places.state_dir, now)


class CompanionFiles(Struct, frozen=True):
    """What existed at one time. `config` is the path of the configuration file and `content` how
    much it contained. `facts_key` identifies the key for hashes of forgotten facts ("": none).
    `versions` tells whether former versions of files existed.
    """

    config: str = ""
    content: int = _NOTHING  # or _COMMENTS, or _SETTINGS
    facts_key: str = ""
    versions: bool = False


def _left(folder: Path) -> int:
    """Return how much the configuration contained when found lost, as in
    `CompanionFiles.content`.
    """
    try:
        return int(read_regular(folder / _LEFT))
    except (OSError, ValueError):
        return 0


def _tell(places: DaemonPaths, found: Iterable[Problem], left: int, now: datetime) -> None:
    """Record each problem that is not recorded yet; `left` is how much the configuration contains
    now, as in `CompanionFiles.content`.
    """
    damages = Damages(places.database)
    known = {problem.text for problem in damages.problems()}
    for problem in found:
        if problem.text in known:
            continue
        log.error(problem.code)
        folder = damages.folder()
        if problem.code == "facts_key_lost" and places.facts_key.exists():
            places.facts_key.rename(folder / places.facts_key.name)
        if problem.code == _CONFIG_LOST:
            (folder / _LEFT).write_text(str(left))
        cure = f"{problem.cure}; removing {folder} ends this notice"
        damages.record(folder, Problem(problem.code, problem.text, cure), now)


def _config_gone(places: DaemonPaths, before: CompanionFiles) -> Iterator[Problem]:
    """Yield the problem if the configuration had settings at the last start. Only called for one
    that is missing or empty now: someone who leaves comments in it wants the defaults.
    """
    if before.config != str(places.config_file) or before.content != _SETTINGS:
        return
    is_there = places.config_file.exists()
    text = f"{before.config} {'is empty' if is_there else 'is gone'}: agentd runs with its defaults"
    wanted = "; if that is what you want, write a comment into it" if is_there else ""
    cure = f"put it back and restart, or `agentd init` writes a new one{wanted}"
    yield Problem(_CONFIG_LOST, text, cure)


def _losses(places: DaemonPaths, before: CompanionFiles, here: CompanionFiles) -> Iterator[Problem]:
    if here.content == _NOTHING:
        yield from _config_gone(places, before)
    is_spoilt = places.facts_key.exists() and not here.facts_key
    if is_spoilt or (before.facts_key and here.facts_key != before.facts_key):
        text = (
            f"{places.facts_key} is gone, damaged or another: what was "
            "forgotten may be learnt again"
        )
        cure = "put it back from a backup and restart, or forget again what comes back"
        yield Problem("facts_key_lost", text, cure)
    if before.versions and not here.versions:
        text = f"{places.versions} is gone: files of the workspace have no former versions any more"
        yield Problem("versions_lost", text, "put the folder back from a backup, if you need them")
    elif emptied := list(_emptied_files(places.versions)):
        names = ", ".join(emptied[:_MOST_NAMED])
        more = f" and {len(emptied) - _MOST_NAMED} more" if len(emptied) > _MOST_NAMED else ""
        text = f"former versions of files were emptied: {names}{more}"
        yield Problem("versions_lost", text, "put them back from a backup, or delete these files")


def _read_state(places: DaemonPaths) -> CompanionFiles:
    config, versions = places.config_file, places.versions
    lines = config.read_bytes().split(b"\n") if config.is_file() else []
    lines = [line.strip() for line in lines if line.strip()]
    has_settings = any(not line.startswith(b"#") for line in lines)
    key = places.facts_key.read_bytes() if places.facts_key.is_file() else b""
    mark = hashlib.blake2b(b"mark", key=key, digest_size=8).hexdigest()
    return CompanionFiles(
        str(config),
        bool(lines) + has_settings,
        mark if len(key) == KEY_BYTES else "",
        versions.is_dir() and any(versions.iterdir()),
    )


def _emptied_files(versions: Path) -> Iterator[str]:
    """Yield FOLDER/NAME of each list of versions and each stored content that is empty. Both are
    written whole or not at all, so someone else has emptied them.
    """
    for folder in sorted(versions.iterdir()) if versions.is_dir() else ():
        with suppress(OSError), os.scandir(folder) as files:
            for file in files:
                can_be_empty = file.name == _OF_NOTHING or not _WHOLE.fullmatch(file.name)
                if not can_be_empty and not file.stat().st_size:
                    yield f"{folder.name}/{file.name}"


def _read_note(state_dir: Path) -> CompanionFiles:
    try:
        return CompanionFiles(**json.loads(read_regular(note_of(state_dir))))
    except FileNotFoundError:
        return CompanionFiles()
    except (OSError, ValueError, TypeError) as error:  # a loss cannot be noticed, this time
        log.warning("beside_not_read", reason=str(error))
        return CompanionFiles()


def _keep(state_dir: Path, here: CompanionFiles) -> None:
    write_private(note_of(state_dir), json.dumps(asdict(here)))
