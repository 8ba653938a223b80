"""Alerts: messages that the user gets without having asked, and their deliveries."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

_SEEN_BY_NOBODY = frozenset({"journal"})  # a log, read only when somebody looks something up
_FROM_OUTSIDE = "[may come from outside] "


def as_told(text: str, *, tainted: bool) -> str:
    """Return the text as people see it: with a prefix if text from outside had a part in it."""
    return f"{_FROM_OUTSIDE}{text}" if tainted and text else text


class AlertSeverity(StrEnum):
    """How much an alert matters. An urgent alert is delivered at any hour."""

    INFO = "info"
    WARNING = "warning"
    URGENT = "urgent"

    def reaches(self, least: AlertSeverity) -> bool:
        """Whether this severity is at least `least`."""
        order = tuple(AlertSeverity)
        return order.index(self) >= order.index(least)


class DeliveryState(StrEnum):
    """The state of one alert's delivery to one sink."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"  # given up after all tries
    WITHDRAWN = "withdrawn"  # not needed any more: the alert was acknowledged before


class NewAlert(Struct, frozen=True):
    """An alert before it is stored.

    `digest` identifies the normalised text: equal alerts are told once a day. `sinks` are the names
    of the sinks that get it; none means that it is only recorded. `to` is passed to the sink.
    `tainted` is set when text from outside had a part in it.
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
        """The sinks through which a person sees the alert: all but the journal, or the journal if
        it is the only one.
        """
        return tuple(sink for sink in self.sinks if sink not in _SEEN_BY_NOBODY) or self.sinks


class Recipients(Struct, frozen=True):
    """The recipients of alerts: sinks by name (none: alerts are only recorded); `to` is passed to
    the sinks. `least` is the minimum severity that a sink accepts.
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
        """Return an alert for those of the sinks that accept this severity."""
        sinks = tuple(
            sink
            for sink in self.sinks
            if severity.reaches(self.least.get(sink, AlertSeverity.INFO))
        )
        return NewAlert(text, origin, digest, sinks, self.to, tainted, severity)


class DeliveryProgress(Struct, frozen=True):
    """The state of one alert's delivery to one sink: number of finished `tries`, time of the next
    and of the last one, and the last one's error ("" if it succeeded).
    """

    sink: str
    state: DeliveryState = DeliveryState.PENDING
    tries: int = 0
    next_try: datetime | None = None
    tried_at: datetime | None = None
    error: str = ""

    def once_acked(self) -> DeliveryProgress:
        """Return the handover of an acknowledged alert: one that was pending is withdrawn, and why
        it had not succeeded is of no concern any more.
        """
        if self.state is not DeliveryState.PENDING:
            return self
        return replace(self, state=DeliveryState.WITHDRAWN, next_try=None, error="")

    def as_json(self) -> dict[str, Any]:
        """Return an entry of `deliveries` as in `agentd alerts list`."""
        return {
            "sink": self.sink,
            "state": str(self.state),
            "tries": self.tries,
            "next_try": self.next_try.isoformat() if self.next_try else None,
            "tried_at": self.tried_at.isoformat() if self.tried_at else None,
            "error": self.error,
        }


class Alert(Struct, frozen=True):
    """A stored alert."""

    id: int
    at: datetime
    text: str
    origin: str
    to: str = ""
    acked: bool = False
    handovers: tuple[DeliveryProgress, ...] = ()
    tainted: bool = False
    severity: AlertSeverity = AlertSeverity.INFO

    @property
    def delivered(self) -> dict[str, DeliveryState]:
        """The delivery state by sink."""
        return {one.sink: one.state for one in self.handovers}

    @property
    def told(self) -> str:
        """The text as people see it: with a prefix if text from outside had a part in it."""
        return as_told(self.text, tainted=self.tainted)

    def as_json(self) -> dict[str, Any]:
        """Return an entry of `agentd alerts list`."""
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


class Delivery(Struct, frozen=True):
    """One alert for one sink, as the outbox hands it out. `attempts` counts the tries before this
    one.
    """

    alert: Alert
    sink: str
    attempts: int


class SinkStanding(Struct, frozen=True):
    """How a sink did with the newest alerts: how many wait for it, how many failed for good and are
    not acknowledged, when the next try is, when it last took an alert, and the error of its last
    try.
    """

    sink: str
    waiting: int = 0
    failed: int = 0
    next_try: datetime | None = None
    sent_at: datetime | None = None
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return an entry of `sinks` as in `agentd alerts sinks`."""
        return {
            "sink": self.sink,
            "waiting": self.waiting,
            "failed": self.failed,
            "next_try": self.next_try.isoformat() if self.next_try else None,
            "sent_at": self.sent_at.isoformat() if self.sent_at else None,
            "error": self.error,
        }


def standing(sink: str, alerts: Iterable[Alert]) -> SinkStanding:
    """Return how the sink did with these alerts."""
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
    """Return the SHA-256 (hex) of the text's words, ignoring case, spacing and Unicode form: alerts
    with equal digests are equal.
    """
    words = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return hashlib.sha256(unicodedata.normalize("NFC", words).encode()).hexdigest()
