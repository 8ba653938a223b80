"""Alerts: what the user is told without having asked."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

_SEEN_BY_NOBODY = frozenset({"journal"})  # a record, which people read when they look for something
_FROM_OUTSIDE = "[may come from outside] "


def as_told(text: str, *, tainted: bool) -> str:
    """The text as people are shown it: marked if text from outside had a part in it."""
    return f"{_FROM_OUTSIDE}{text}" if tainted and text else text


class AlertSeverity(StrEnum):
    """How much an alert matters. What is urgent is told at any hour."""

    INFO = "info"
    WARNING = "warning"
    URGENT = "urgent"

    def reaches(self, least: AlertSeverity) -> bool:
        """Whether it is at least that severe."""
        order = tuple(AlertSeverity)
        return order.index(self) >= order.index(least)


class DeliveryState(StrEnum):
    """How far a sink has got with an alert."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"  # given up after all tries


@dataclass(frozen=True, slots=True)
class NewAlert:
    """An alert before it is stored. `digest` is of its normalised text: equal ones are told once a day.

    `sinks` are the names it goes to; none means it is only recorded. `to` is handed to the sink. It is
    tainted when text from outside had a part in it.
    """

    text: str
    origin: str
    digest: str
    sinks: tuple[str, ...]
    to: str = ""
    tainted: bool = False
    severity: AlertSeverity = AlertSeverity.INFO

    @property
    def told_by(self) -> tuple[str, ...]:
        """The sinks by which a person is told: those that one sees, or the journal where it is all."""
        return tuple(sink for sink in self.sinks if sink not in _SEEN_BY_NOBODY) or self.sinks


@dataclass(frozen=True, slots=True)
class Recipients:
    """Whom alerts go to: sinks by name, none to have them only recorded; `to` is handed to the sinks.
    `least` says of sinks how severe an alert must be for them.
    """

    sinks: tuple[str, ...]
    to: str = ""
    least: Mapping[str, AlertSeverity] = field(default_factory=dict)

    def alert(
        self,
        text: str,
        origin: str,
        digest: str,
        *,
        severity: AlertSeverity = AlertSeverity.INFO,
        tainted: bool = False,
    ) -> NewAlert:
        """An alert for those of them that want one so severe."""
        sinks = tuple(
            sink
            for sink in self.sinks
            if severity.reaches(self.least.get(sink, AlertSeverity.INFO))
        )
        return NewAlert(text, origin, digest, sinks, self.to, tainted, severity)


@dataclass(frozen=True, slots=True)
class Handover:
    """How far one sink has got with one alert: `tries` that failed or succeeded, when the last was, when
    the next is due, and why the last one failed.
    """

    sink: str
    state: DeliveryState = DeliveryState.PENDING
    tries: int = 0
    next_try: datetime | None = None
    tried_at: datetime | None = None
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """One of `deliveries` in the shape of `agentd alerts list`."""
        return {
            "sink": self.sink,
            "state": str(self.state),
            "tries": self.tries,
            "next_try": self.next_try.isoformat() if self.next_try else None,
            "tried_at": self.tried_at.isoformat() if self.tried_at else None,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Alert:
    """A stored alert."""

    id: int
    at: datetime
    text: str
    origin: str
    to: str = ""
    acked: bool = False
    handovers: tuple[Handover, ...] = ()
    tainted: bool = False
    severity: AlertSeverity = AlertSeverity.INFO

    @property
    def delivered(self) -> dict[str, DeliveryState]:
        """How far each sink has got with it."""
        return {one.sink: one.state for one in self.handovers}

    @property
    def told(self) -> str:
        """The words as people are shown them: marked if text from outside had a part in them."""
        return as_told(self.text, tainted=self.tainted)

    def as_json(self) -> dict[str, Any]:
        """The shape of `agentd alerts list`."""
        return {
            "id": self.id,
            "at": self.at.isoformat(),
            "text": self.told,
            "origin": self.origin,
            "tainted": self.tainted,
            "severity": str(self.severity),
            "delivered": {name: str(state) for name, state in self.delivered.items()},
            "deliveries": [one.as_json() for one in self.handovers],
            "acked": self.acked,
        }


@dataclass(frozen=True, slots=True)
class Delivery:
    """One alert for one sink, as the outbox hands it out. `attempts` counts the tries before this one."""

    alert: Alert
    sink: str
    attempts: int


@dataclass(frozen=True, slots=True)
class SinkStanding:
    """How a sink fares with the newest alerts: how many wait for it, how many it was given up for and
    nobody has acknowledged, when the next try is, when it last took one, and why it last failed since.
    """

    sink: str
    waiting: int = 0
    failed: int = 0
    next_try: datetime | None = None
    sent_at: datetime | None = None
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """One of `sinks` in the shape of `agentd alerts sinks`."""
        return {
            "sink": self.sink,
            "waiting": self.waiting,
            "failed": self.failed,
            "next_try": self.next_try.isoformat() if self.next_try else None,
            "sent_at": self.sent_at.isoformat() if self.sent_at else None,
            "error": self.error,
        }


def standing(sink: str, alerts: Iterable[Alert]) -> SinkStanding:
    """How the sink fares with these alerts."""
    known = [(alert, one) for alert in alerts for one in alert.handovers if one.sink == sink]
    waiting = [one for _, one in known if one.state is DeliveryState.PENDING]
    tried = sorted(((one.tried_at, one.error) for _, one in known if one.tried_at), reverse=True)
    return SinkStanding(
        sink,
        len(waiting),
        sum(one.state is DeliveryState.FAILED and not alert.acked for alert, one in known),
        min((one.next_try for one in waiting if one.next_try), default=None),
        max((at for at, error in tried if not error), default=None),
        tried[0][1] if tried else "",
    )


def alert_digest(text: str) -> str:
    """What makes two alerts equal: SHA-256 (hex) of the words, whatever their case, spacing and
    Unicode form.
    """
    words = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return hashlib.sha256(unicodedata.normalize("NFC", words).encode()).hexdigest()
