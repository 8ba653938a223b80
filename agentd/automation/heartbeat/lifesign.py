"""The sign of life: a file written after beats, by which a program outside of the daemon notices
missed ones.
"""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import AgentdError
from agentd.core.paths import ensure_private_dir, read_regular, write_private
from agentd.core.ports import Clock

log = structlog.get_logger()

_SLACK = timedelta(minutes=1)  # the longest time between two ticks


class LifeSign(Struct, frozen=True):
    """A promise of the next sign of life: it comes at most `grace` after `due` (None while beats
    are off). `written` and `awake` (monotonic seconds) are the times at which this sign was
    written. `is_last`: the daemon was stopped on purpose.
    """

    written: datetime
    awake: float
    due: datetime | None
    grace: timedelta
    is_last: bool = False

    def is_missed(self, now: datetime, awake: float) -> bool:
        """Whether the next sign is overdue at a later moment, given by both clocks. Only time
        counts during which the machine was awake; after a reboot, only that since then.
        """
        if self.due is None or self.is_last:
            return False
        if awake < self.awake:
            return now > self.due + self.grace and awake > self.grace.total_seconds()
        wait = max(self.due - self.written, timedelta()) + self.grace
        return awake - self.awake > wait.total_seconds()

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        return {
            "written": self.written.isoformat(),
            "awake_s": self.awake,
            "due": self.due.isoformat() if self.due else None,
            "grace_s": self.grace.total_seconds(),
            "is_last": self.is_last,
        }


def leave(file: Path, sign: LifeSign) -> None:
    """Write the sign to the file, atomically and durably. Blocking. Raises OSError."""
    ensure_private_dir(file.parent)
    write_private(file, json.dumps(sign.as_json()))


def read_sign(file: Path) -> LifeSign | None:
    """Return the sign in the file; None if there is no file. Blocking. Raises AgentdError if the
    file cannot be read or contains no sign.
    """
    try:
        told = json.loads(read_regular(file))
        return LifeSign(
            datetime.fromisoformat(told["written"]),
            float(told["awake_s"]),
            datetime.fromisoformat(told["due"]) if told["due"] else None,
            timedelta(seconds=float(told["grace_s"])),
            bool(told["is_last"]),
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror}"
        raise AgentdError(msg, cure="run this as the user whom the daemon serves") from None
    except (ValueError, TypeError, KeyError):
        msg = f"{file} holds no sign of life"
        raise AgentdError(msg, cure="delete it; the next heartbeat writes it anew") from None


class BeatSchedule(Protocol):
    """The part of the heartbeat that LifeSigns uses."""

    @property
    def patience(self) -> timedelta:
        """How late after its due time a beat may be recorded."""

    async def tick(self) -> None:
        """Run a beat if one is due."""

    async def next_due(self) -> datetime | None:
        """Return when the next beat is due; None while beats are off."""


class LifeSigns:
    """Wraps the heartbeat's tick: after each tick it writes a sign of life if the next due time has
    changed.
    """

    def __init__(self, heartbeat: BeatSchedule, file: Path, clock: Clock) -> None:
        self._heartbeat = heartbeat
        self._file = file
        self._clock = clock
        self._left: LifeSign | None = None
        self._is_failing = False

    async def tick(self) -> None:
        """Run a beat if one is due, then write the sign. If the tick fails, no sign is written.
        Raises StorageError.
        """
        await self._heartbeat.tick()
        sign = LifeSign(
            self._clock.now(),
            self._clock.monotonic(),
            await self._heartbeat.next_due(),
            self._heartbeat.patience + _SLACK,
        )
        if self._left is not None and _promise(self._left) == _promise(sign):
            return
        try:
            await asyncio.to_thread(leave, self._file, sign)
        except OSError as error:  # a full disk must not stop beats; the next tick tries again
            if not self._is_failing:
                log.warning("life_sign_not_left", error=str(error))
            self._is_failing = True
        else:
            self._left, self._is_failing = sign, False

    async def next_due(self) -> datetime | None:
        """Return when the next beat is due; None while beats are off."""
        return await self._heartbeat.next_due()

    async def end(self) -> None:
        """Mark the sign as the last one, because the daemon is being stopped. Raises OSError."""
        if self._left is not None:
            await asyncio.to_thread(leave, self._file, replace(self._left, is_last=True))


def _promise(sign: LifeSign) -> tuple[datetime | None, timedelta]:
    return sign.due, sign.grace
