"""The line of messages that wait while the model's service is away: one at a time tries.

The first message in the line tries for all. Once the service has answered, the others follow, one
session after the other: each begins when the one before it has its first answer.

The line keeps messages of the user, over restarts; it stops no call. That calls of any turn fail at
once while a service is down is the work of its `CircuitBreaker` (`agentd/providers/resilience.py`).
A try that meets an open breaker learns from the error when that lets the next call through.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from math import ceil

import structlog
from msgspec import Struct

from agentd.core.errors import ProviderError, ShuttingDown, StorageError
from agentd.core.event import AnswerWaits
from agentd.core.health import Problem
from agentd.core.ports import Clock, Provider, ServiceRecord
from agentd.core.prompt import AnswerCompleted, Prompt, ProviderEvent, closing
from agentd.core.times import format_duration
from agentd.core.turn import Receipt, SessionKey, TurnRequest
from agentd.engine.workers import Stopping

log = structlog.get_logger()

# As the breaker waits; a shorter pause would only meet it, and providers may come without one.
_FIRST_PAUSE = 30.0  # seconds between two tries, doubled by each failure
_LONGEST_PAUSE = 600.0
_LOOK = 60.0  # seconds between looks: the wall clock may jump, a suspend stops the monotonic one


class ServiceAway(Exception):
    """Raised when a turn has been put aside because the service is away: control flow of the
    engine.
    """

    def __init__(self, error: ProviderError) -> None:
        super().__init__(error.message)
        self.error = error


class OutagePlace(Struct, eq=False):
    """A message's place in the line; the message is given up at `deadline`. `has_waited` says that
    it has been in the line before, perhaps before a restart; `is_told` says that its sender knows
    it waits.
    """

    deadline: datetime
    has_waited: bool = False
    is_told: bool = False

    @classmethod
    def of(
        cls, request: TurnRequest, receipt: Receipt, *, has_waited: bool = False
    ) -> OutagePlace | None:
        """Return the place that a message takes in the line if it has to wait; None for a message
        that may not wait.
        """
        if not request.patience or receipt.at is None:
            return None
        return cls(receipt.at + request.patience, has_waited)


class Outage:
    """The line of waiting messages, and the time at which the first of them may try. The line is
    empty while the service works.
    """

    def __init__(self, clock: Clock, record: ServiceRecord, stopping: Stopping) -> None:
        self._clock = clock
        self._record = record
        self._stopping = stopping
        self._line: list[OutagePlace] = []
        self._trying: OutagePlace | None = None
        self._error: ProviderError | None = None
        self._since: datetime | None = None
        self._pause = 0.0
        self._next_at = 0.0  # monotonic
        self._changed = asyncio.Event()

    @property
    def is_on(self) -> bool:
        """Whether any message waits; a new message then has to wait, too."""
        return bool(self._line)

    @property
    def error(self) -> ProviderError | None:
        """How the last try failed; None before the first try."""
        return self._error

    @property
    def seconds(self) -> float:
        """The seconds until the next try."""
        return max(0.0, self._next_at - self._clock.monotonic())

    def problems(self) -> tuple[Problem, ...]:
        """Return the problem that messages wait, with the reason and the time of the next try; none
        while no message waits.
        """
        if not self._line or self._error is None or self._since is None:
            return ()
        count = len(self._line)
        who = "a conversation waits" if count == 1 else f"{count} conversations wait"
        since = self._since.astimezone(self._clock.zone)
        left = format_duration(timedelta(seconds=ceil(self.seconds))) if self.seconds else "now"
        text = f"{who} for the model's service since {since:%Y-%m-%d %H:%M}: {self._error.message}"
        return (Problem("service_away", text, f"The next try comes in {left}. {self._error.cure}"),)

    async def has_worked(self) -> bool:
        """Whether the service has ever answered under its present configuration; if not, messages
        do not wait for it.
        """
        return await self._record.has_answered()

    def notice(self, session: SessionKey, place: OutagePlace) -> AnswerWaits:
        """Return the event that tells the sender of a waiting message when the next try comes;
        `is_new` is set in the first event for the place.
        """
        until = place.deadline.astimezone(self._clock.zone)
        why = self._error.message if self._error else "The model's service was away."
        text = (
            f"{why} Your message is kept until {until:%Y-%m-%d %H:%M} and is answered when the "
            "service is back. Cancel to take it back."
        )
        reason = self._error.reason if self._error else "provider_away"
        is_new, place.is_told = not place.is_told, True
        return AnswerWaits(session, reason, text, self.seconds, place.deadline, is_new)

    def join(self, place: OutagePlace) -> None:
        """Put the place at the end of the line."""
        self._line.append(place)

    def holds(self, place: OutagePlace) -> bool:
        """Whether the place is in the line, because its message waits or is the one that tries."""
        return place in self._line

    def leave(self, place: OutagePlace) -> None:
        """Remove the place from the line: its message no longer waits, for whatever reason."""
        if place in self._line:
            self._line.remove(place)
        if self._trying is place:
            self._trying = None
        if not self._line:
            self._error = self._since = None
            self._pause = self._next_at = 0.0
        self._wake()

    async def wait_to_try(self, place: OutagePlace) -> bool:
        """Wait until the message may try and return True; return False if its deadline passes
        first. Raises ShuttingDown.
        """
        while True:
            if self._stopping.is_set:
                raise ShuttingDown
            now = self._clock.now()
            if self._error is not None and now >= place.deadline:
                return False
            is_first = self._trying is None and self._line[0] is place
            if is_first and not self.seconds:
                self._trying = place
                place.has_waited = True
                return True
            left = (place.deadline - now).total_seconds() if self._error else _LOOK
            await self._sleep(min(left, self.seconds if is_first else _LOOK, _LOOK))

    def keep_waiting(self, place: OutagePlace, error: ProviderError) -> None:
        """Keep the message in the line, because its try failed and the service is still away, and
        set the time of the next try.
        """
        if self._trying is place:
            self._trying = None
        elif place.has_waited:  # the service has answered an earlier call of the same turn
            self._line.insert(0, place)
        else:
            self._line.append(place)
        self._since = self._since or self._clock.now()
        self._error = error
        asked = error.retry_after or 0.0
        if error.is_unsent:  # so it tells nothing of the service
            pause = max(asked, 1.0)
        else:
            self._pause = min(2 * self._pause or _FIRST_PAUSE, _LONGEST_PAUSE)
            pause = max(asked, self._pause)
        self._next_at = self._clock.monotonic() + pause
        log.info("service_away", kind=error.kind, waiting=len(self._line), next_try_s=round(pause))
        self._wake()

    async def record_answer(self) -> None:
        """Record that the service has answered, and let the waiting messages go on."""
        try:
            await self._record.record_answer()
        except StorageError as error:  # the next answer is recorded instead
            log.warning("answer_not_recorded", reason=error.reason)
        if not self._line:
            return
        log.info("service_back", waiting=len(self._line))
        self._pause = self._next_at = 0.0
        if self._trying is not None:
            self._line.remove(self._trying)
            self._trying = None
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _sleep(self, seconds: float) -> None:
        """Sleep for at most `seconds`, until something in the line changes or the daemon is
        stopping.
        """
        async with asyncio.TaskGroup() as group:
            waits = (
                group.create_task(self._clock.sleep(max(0.0, seconds))),
                group.create_task(self._changed.wait()),
                group.create_task(self._stopping.wait()),
            )
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in waits:
                task.cancel()


class OutageAwareProvider:
    """A provider that reports each answer to the `Outage`: the service works."""

    def __init__(self, provider: Provider, outage: Outage) -> None:
        self._inner = provider
        self._outage = outage

    @property
    def name(self) -> str:
        """The wrapped provider's name."""
        return self._inner.name

    @property
    def model(self) -> str:
        """The wrapped provider's model."""
        return self._inner.model

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Yield the wrapped provider's events."""
        async with closing(self._inner.stream(prompt)) as events:
            async for event in events:
                if isinstance(event, AnswerCompleted):
                    await self._outage.record_answer()
                yield event
