"""Those who watch every turn that is not silent."""

from __future__ import annotations

from collections.abc import Callable

from agentd.domain.event import Noticed, TurnEnded, TurnEvent
from agentd.domain.turn import SessionKey
from agentd.ports import EventSink


class Watchers:
    """A sink that hands every event to several others, in order."""

    def __init__(self, *sinks: EventSink) -> None:
        self._sinks = sinks

    def emit(self, event: TurnEvent) -> None:
        """Hand it on."""
        for sink in self._sinks:
            sink.emit(event)


class WhenEnded:
    """A sink that calls back with the session of every turn that has ended."""

    def __init__(self, callback: Callable[[SessionKey], None]) -> None:
        self._callback = callback

    def emit(self, event: TurnEvent) -> None:
        """Look for the end of a turn."""
        if isinstance(event, TurnEnded):
            self._callback(event.session)


class WhenNoticed:
    """A sink that calls back for every notice of one tag."""

    def __init__(self, tag: str, callback: Callable[[], None]) -> None:
        self._tag = tag
        self._callback = callback

    def emit(self, event: TurnEvent) -> None:
        """Look for such a notice."""
        if isinstance(event, Noticed) and event.tag == self._tag:
            self._callback()
