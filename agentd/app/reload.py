"""Applies a changed configuration while the daemon runs.

All or nothing: a file with a mistake changes nothing, and a configuration that the running parts
could not use is refused before the first part changes. Keys that cannot change live are reported
and wait for the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import structlog
from msgspec import Struct

from agentd.app.config import Config, values

log = structlog.get_logger()

LIVE = (
    "log.level",
    "heartbeat",
    "budget",
    "storage.retention_days",
    "memory_search.chunker",
    "memory_search.chunk_size",
    "memory_search.chunk_overlap",
    "memory_search.index_transcripts",
    "server.max_connections",
    "server.max_calls_per_client",
    "server.client_buffer_bytes",
    "server.drop_after",
)


class ReloadOutcome(Struct, frozen=True):
    """The keys that changed live, and those that wait for the next start."""

    changed: tuple[str, ...]
    needs_restart: tuple[str, ...]
    missing: str = ""  # path of the configuration file if it does not exist: all defaults apply

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as `agentd reload --json` has it."""
        return {
            "changed": list(self.changed),
            "needs_restart": list(self.needs_restart),
            "missing": self.missing,
        }


class Reload:
    """Compares the file with the configuration in force, and passes changes to the running
    parts.
    """

    def __init__(
        self,
        config: Config,
        read: Callable[[], Config],
        check: Callable[[Config], None],
        take: Callable[[Config], None],
        file: Path,
    ) -> None:
        """`read` loads the configuration from `file`, `check` raises ConfigError for one that the
        parts could not use, `take` passes it to the parts.
        """
        self._running = config
        self._read = read
        self._check = check
        self._take = take
        self._file = file
        self._lock = asyncio.Lock()

    async def run(self) -> ReloadOutcome:
        """Read the configuration again and apply what can change live. Raises ConfigError; then
        nothing has changed.
        """
        async with self._lock:
            wanted = await asyncio.to_thread(self._read)
            missing = "" if self._file.exists() else str(self._file)
            before, after = values(self._running), values(wanted)
            different = [key for key in after if after[key] != before.get(key)]
            changed = tuple(key for key in different if is_live(key))
            running = _merged(self._running, wanted, changed)
            self._check(running)
            self._take(running)
            self._running = running
        outcome = ReloadOutcome(
            changed, tuple(key for key in different if key not in changed), missing
        )
        log.info("reloaded", **outcome.as_json())
        return outcome


def is_live(key: str) -> bool:
    """Whether a key can change without a restart."""
    return any(key == live or key.startswith(f"{live}.") for live in LIVE)


def _merged(running: Config, wanted: Config, keys: Sequence[str]) -> Config:
    """Return `running` with the values that `wanted` has for these keys, all of the form
    TABLE.KEY.
    """
    for key in keys:
        table, _, name = key.partition(".")
        value = getattr(getattr(wanted, table), name)
        changed = getattr(running, table).model_copy(update={name: value})
        running = running.model_copy(update={table: changed})
    return running
