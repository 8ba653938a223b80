"""Alerts: what the user is told without having asked."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

_SEEN_BY_NOBODY = frozenset({"journal"})  # a record, which people read when they look for something
_FROM_OUTSIDE = "[may come from outside] "


def as_told(text: str, *, tainted: bool) -> str:
    """The text as people are shown it: marked if text from outside had a part in it."""
    return f"{_FROM_OUTSIDE}{text}" if tainted and text else text


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

    @property
    def told_by(self) -> tuple[str, ...]:
        """The sinks by which a person is told: those that one sees, or the journal where it is all."""
        return tuple(sink for sink in self.sinks if sink not in _SEEN_BY_NOBODY) or self.sinks


@dataclass(frozen=True, slots=True)
class Recipients:
    """Whom alerts go to: sinks by name, none to have them only recorded; `to` is handed to the sinks."""

    sinks: tuple[str, ...]
    to: str = ""

    def alert(self, text: str, origin: str, digest: str, *, tainted: bool = False) -> NewAlert:
        """An alert for them."""
        return NewAlert(text, origin, digest, self.sinks, self.to, tainted)


@dataclass(frozen=True, slots=True)
class Alert:
    """A stored alert."""

    id: int
    at: datetime
    text: str
    origin: str
    to: str = ""
    acked: bool = False
    delivered: dict[str, DeliveryState] = field(default_factory=dict)
    tainted: bool = False

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
            "delivered": {name: str(state) for name, state in self.delivered.items()},
            "acked": self.acked,
        }


@dataclass(frozen=True, slots=True)
class Delivery:
    """One alert for one sink, as the outbox hands it out. `attempts` counts the tries before this one."""

    alert: Alert
    sink: str
    attempts: int


def alert_digest(text: str) -> str:
    """What makes two alerts equal: SHA-256 (hex) of the words, whatever their case, spacing and
    Unicode form.
    """
    words = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return hashlib.sha256(unicodedata.normalize("NFC", words).encode()).hexdigest()
