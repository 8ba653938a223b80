"""Alerts the user when the heartbeat has stopped. Runs outside of the daemon and needs no part of
it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentd.automation.heartbeat.lifesign import LifeSign
from agentd.core.alert import Alert, AlertSeverity
from agentd.core.errors import AgentdError
from agentd.core.paths import read_regular, write_private
from agentd.core.ports import AlertSink, Clock

_AGAIN = timedelta(hours=24)  # as for every alert
_NEVER = "there is no sign of life yet: no daemon has run here"
_ENDED = "the daemon was stopped, so no heartbeat is expected"
_OFF = "heartbeats are off, so none is missed"


class WatchLook(Struct, frozen=True):
    """The result of a check. `state` is one of fine, missed, failed, stopped, off, unknown, mute.
    `sent` names the sinks that were alerted now, `failed` maps those that could not be to the
    reason.
    """

    state: str
    text: str
    sent: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the shape of `agentd alerts watch`."""
        told = {"state": self.state, "text": self.text}
        return {**told, "sent": list(self.sent), "failed": self.failed}


class Watch:
    """Checks the daemon's sign of life. While it is overdue, each sink is alerted once in 24 hours,
    and once more when the heartbeat is back; a sink that fails is tried again at the next check.
    The file `journal` records which sinks were alerted, and when.
    """

    def __init__(self, sinks: Sequence[AlertSink], journal: Path, clock: Clock) -> None:
        self._sinks = sinks
        self._journal = journal
        self._clock = clock

    async def look(self, sign: LifeSign | None, failure: str = "") -> WatchLook:
        """Check once. `failure` says how the daemon's service has failed, if it has. Raises
        AgentdError if the journal cannot be written: each check would then send the alert again.
        """
        state, text = self._judged(sign, failure)
        life = sign.written.isoformat() if sign else ""
        told = await asyncio.to_thread(self._load_told)
        if state in {"missed", "failed"}:
            known = told.get("sent", {}) if told.get("life") == life else {}
            now = self._clock.now()
            due = [sink for sink in self._sinks if not _is_recent(known.get(sink.name), now)]
            sent, failed = await self._send(due, text)
            told = {"life": life, "sent": {**known, **dict.fromkeys(sent, now.isoformat())}}
            await asyncio.to_thread(self._note, told)
            return WatchLook(state, text, sent, failed)
        if state == "fine" and told.get("sent"):
            back = [sink for sink in self._sinks if sink.name in told["sent"]]
            text = "the heartbeat of agentd is back"
            sent, failed = await self._send(back, text)
            left = {name: at for name, at in told["sent"].items() if name in failed}
            await asyncio.to_thread(self._note, {"life": told["life"], "sent": left})
            return WatchLook(state, text, sent, failed)
        return WatchLook(state, text)

    def _judged(self, sign: LifeSign | None, failure: str) -> tuple[str, str]:
        if failure:
            return "failed", f"agentd no longer runs: {failure}. `systemctl status` says more."
        if sign is None:
            return "unknown", _NEVER
        if sign.is_last:
            return "stopped", _ENDED
        if sign.due is None:
            return "off", _OFF
        due = f"{sign.due.astimezone(self._clock.zone):%Y-%m-%d %H:%M} ({self._clock.zone.key})"
        if not sign.is_missed(self._clock.now(), self._clock.monotonic()):
            return "fine", f"the next heartbeat is due at {due}"
        text = f"No heartbeat of agentd since the one due at {due}: it hangs, or no longer runs."
        return "missed", f"{text} `agentd status` and `agentd logs` say more."

    async def _send(
        self, sinks: Sequence[AlertSink], text: str
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        alert = Alert(0, self._clock.now(), text, "watch", severity=AlertSeverity.URGENT)
        failed: dict[str, str] = {}

        async def send(sink: AlertSink) -> None:
            try:
                await sink.send(alert)
            except AgentdError as error:
                failed[sink.name] = error.message

        async with asyncio.TaskGroup() as group:
            for sink in sinks:
                group.create_task(send(sink))
        return tuple(sink.name for sink in sinks if sink.name not in failed), failed

    def _load_told(self) -> dict[str, Any]:
        """Return the content of the journal. One that cannot be read counts as empty: better
        alerted twice than never.
        """
        try:
            told = json.loads(read_regular(self._journal))
        except (OSError, ValueError):
            return {}
        return told if isinstance(told, dict) and isinstance(told.get("sent"), dict) else {}

    def _note(self, told: dict[str, Any]) -> None:
        try:
            write_private(self._journal, json.dumps(told))
        except OSError as error:
            msg = f"{self._journal} cannot be written: {error.strerror}"
            raise AgentdError(msg, cure="free space there, or correct its rights") from None


def _is_recent(at: Any, now: datetime) -> bool:
    try:
        # A time in the future, written while the clock was ahead, must not suppress alerts.
        return timedelta() <= now - datetime.fromisoformat(at) < _AGAIN
    except (TypeError, ValueError):
        return False
