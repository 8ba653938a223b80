"""The sign of life that beats leave in a file, so that somebody outside of the daemon can miss them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import structlog

from agentd.core.errors import AgentdError
from agentd.core.paths import ensure_private_dir, write_private
from agentd.core.ports import Clock

log = structlog.get_logger()

_SLACK = timedelta(minutes=1)  # a tick comes at least so often


@dataclass(frozen=True, slots=True)
class LifeSign:
    """When the next sign comes at the latest: `grace` after `due`, None while beats are off. `written` and
    `awake` (monotonic seconds) are of the moment at which it was left; `is_last` if the daemon has ended
    since, and not by an accident.
    """

    written: datetime
    awake: float
    due: datetime | None
    grace: timedelta
    is_last: bool = False

    def is_missed(self, now: datetime, awake: float) -> bool:
        """Whether the next one should have come, seen from a later moment. Only time that the machine was
        awake counts; after a restart of the machine, that since then.
        """
        if self.due is None or self.is_last:
            return False
        if awake < self.awake:
            return now > self.due + self.grace and awake > self.grace.total_seconds()
        wait = max(self.due - self.written, timedelta()) + self.grace
        return awake - self.awake > wait.total_seconds()

    def as_json(self) -> dict[str, Any]:
        """What stands in the file."""
        return {
            "written": self.written.isoformat(),
            "awake_s": self.awake,
            "due": self.due.isoformat() if self.due else None,
            "grace_s": self.grace.total_seconds(),
            "is_last": self.is_last,
        }


def leave(file: Path, sign: LifeSign) -> None:
    """Put the sign into the file, whole and durable. Blocking. Raises OSError."""
    ensure_private_dir(file.parent)
    write_private(file, json.dumps(sign.as_json()))


def read_sign(file: Path) -> LifeSign | None:
    """The sign in the file; None if there is none. Blocking. Raises AgentdError for what is none."""
    try:
        told = json.loads(file.read_bytes())
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


class Beating(Protocol):
    """The heartbeat, as far as a sign of it goes."""

    @property
    def patience(self) -> timedelta:
        """How long a beat may be over its due time."""

    async def tick(self) -> None:
        """Beat if one is due."""

    async def next_due(self) -> datetime | None:
        """When one is due next; None while beats are off."""


class LifeSigns:
    """The heartbeat, with a sign left whenever it was looked at and its next due time has changed."""

    def __init__(self, heartbeat: Beating, file: Path, clock: Clock) -> None:
        self._heartbeat = heartbeat
        self._file = file
        self._clock = clock
        self._left: LifeSign | None = None
        self._is_failing = False

    async def tick(self) -> None:
        """Beat if one is due, then leave the sign; a tick that fails leaves none. Raises StorageError."""
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
        except OSError as error:  # a full disk keeps no beat from coming; the next tick tries again
            if not self._is_failing:
                log.warning("life_sign_not_left", error=str(error))
            self._is_failing = True
        else:
            self._left, self._is_failing = sign, False

    async def next_due(self) -> datetime | None:
        """When a beat is due next."""
        return await self._heartbeat.next_due()

    async def end(self) -> None:
        """Say that no other is to be expected, since the daemon ends. Raises OSError."""
        if self._left is not None:
            await asyncio.to_thread(leave, self._file, replace(self._left, is_last=True))


def _promise(sign: LifeSign) -> tuple[datetime | None, timedelta]:
    return sign.due, sign.grace
