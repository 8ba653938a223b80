"""Those who watch every turn that is not silent."""

from __future__ import annotations

from collections.abc import Callable

from agentd.core.event import Noticed, TurnEnded, TurnEvent
from agentd.core.ports import EventSink, TurnAudience
from agentd.core.turn import SessionKey


class Watchers:
    """An audience that hands every event to several other sinks, in order; `shown`, the first, is who
    has to keep up.
    """

    def __init__(self, shown: TurnAudience, *sinks: EventSink) -> None:
        self._shown = shown
        self._sinks = (shown, *sinks)

    def emit(self, event: TurnEvent) -> None:
        """Hand it on."""
        for sink in self._sinks:
            sink.emit(event)

    async def wait_room(self, session: SessionKey) -> None:
        """Return when who it is shown to keeps up."""
        await self._shown.wait_room(session)


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
