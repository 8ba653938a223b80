"""Times as the owner's clock shows them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentd.ports import Clock  # loads more than a quick command should wait for

_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_MANY_MINUTES = 5
_DAYS = {-1: "yesterday", 0: "today", 1: "tomorrow"}


class Times:
    """Words for times, seen from the clock's zone and its present moment."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @property
    def clock(self) -> Clock:
        """Where the times come from."""
        return self._clock

    def told(self, at: str) -> str:
        """An ISO time in short words, one to come with its distance; other text as it is."""
        if not _ISO.fullmatch(at):
            return at
        now = self._clock.now()
        moment = datetime.fromisoformat(at)
        local, here = moment.astimezone(self._clock.zone), now.astimezone(self._clock.zone)
        days = (local.date() - here.date()).days
        words = f"{_DAYS.get(days, f'{local:%Y-%m-%d}')} {local:%H:%M}"
        return f"{words}, in {span(moment - now)}" if moment > now else words

    def exact(self, at: str) -> str:
        """An ISO time to the second, on the owner's clock; other text as it is."""
        if not _ISO.fullmatch(at):
            return at
        return f"{datetime.fromisoformat(at).astimezone(self._clock.zone):%Y-%m-%d %H:%M:%S}"

    def age(self, at: str) -> timedelta:
        """How long ago an ISO time was."""
        return self._clock.now() - datetime.fromisoformat(at)

    def read(self, value: Any) -> Any:
        """A daemon's answer with all its times in words."""
        match value:
            case str():
                return self.told(value)
            case dict():
                return {key: self.read(item) for key, item in value.items()}
            case list():
                return [self.read(item) for item in value]
        return value


def span(duration: timedelta) -> str:
    """A duration by its largest unit and the next one below."""
    minutes, seconds = divmod(int(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s"))
    first = next((at for at, (number, _) in enumerate(parts) if number), len(parts) - 1)
    # Nobody wants seconds beside many minutes.
    last = first + 1 if parts[first][1] == "min" and minutes >= _MANY_MINUTES else first + 2
    shown = [f"{number} {unit}" for number, unit in parts[first:last] if number]
    return " ".join(shown) or "0 s"
