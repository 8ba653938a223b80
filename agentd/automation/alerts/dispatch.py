"""Carries alerts from the outbox to the sinks, at least once each."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

import structlog

from agentd.core import failpoints
from agentd.core.alert import Alert, Delivery, NewAlert, alert_digest
from agentd.core.errors import AgentdError, Busy
from agentd.core.health import Problem
from agentd.core.ports import AlertSink, Clock, Outbox

log = structlog.get_logger()

_LONGEST_DELAY = timedelta(hours=1)
# The code of a sink that only reaches those who look: that nobody does is no fault of anything.
_NOBODY_THERE = "no_client"
_LOOK_AGAIN = 60.0  # while something waits, so that a step of the wall clock is seen


class Dispatcher:
    """Delivers what is due, each sink on its own: one that fails or hangs delays no other.

    A failed try is repeated after `retry_delay`, doubling up to an hour; after `max_tries` the sink is
    given up for that alert. An alert is recorded as sent after the sink took it, so a crash between
    the two sends it twice rather than never.
    """

    def __init__(
        self,
        outbox: Outbox,
        sinks: Sequence[AlertSink],
        clock: Clock,
        *,
        max_tries: int = 10,
        retry_delay: timedelta = timedelta(seconds=5),
    ) -> None:
        self._outbox = outbox
        self._sinks = {sink.name: sink for sink in sinks}
        self._clock = clock
        self._max_tries = max_tries
        self._retry_delay = retry_delay
        self._woken = asyncio.Event()
        self._at_work: set[str] = set()
        self._given_up: dict[str, Problem] = {}

    @property
    def name(self) -> str:
        """For `status`."""
        return "alerts"

    @property
    def sinks(self) -> tuple[str, ...]:
        """The names of all sinks."""
        return tuple(self._sinks)

    def wake(self) -> None:
        """Look into the outbox now."""
        self._woken.set()

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._woken.clear()
                try:
                    for name, deliveries in (await self._due()).items():
                        self._at_work.add(name)
                        group.create_task(self._work(name, deliveries))
                    delay = await self._delay()
                except AgentdError:  # the outbox is out of order; its alerts stay where they are
                    log.exception("outbox_failed")
                    delay = _LOOK_AGAIN
                await self._wait(delay)

    async def test(self) -> Alert:
        """Put an alert for every sink, to be delivered at once. Raises Busy within a second of the
        last one, StorageError.
        """
        now = self._clock.now().astimezone(self._clock.zone)
        text = f"This is a test alert of agentd, sent at {now:%Y-%m-%d %H:%M:%S %z} ({self._clock.zone.key})."
        alert = await self._outbox.put(NewAlert(text, "test", alert_digest(text), self.sinks))
        if alert is None:
            raise Busy("a test alert was sent this very second", cure="try again in a second")
        self.wake()
        return alert

    def problems(self) -> tuple[Problem, ...]:
        """The sinks that were given up, until one of their alerts arrives again."""
        return tuple(self._given_up.values())

    async def prove(self) -> None:
        """Look into the outbox. Raises StorageError."""
        await self._outbox.next_due()

    async def _due(self) -> dict[str, list[Delivery]]:
        """What is due for each sink that is not at work."""
        waiting: dict[str, list[Delivery]] = defaultdict(list)
        for delivery in await self._outbox.due():
            if delivery.sink not in self._at_work:
                waiting[delivery.sink].append(delivery)
        return waiting

    async def _work(self, name: str, deliveries: Sequence[Delivery]) -> None:
        try:
            for delivery in deliveries:
                await self._deliver(name, delivery)
        except AgentdError:  # nothing could be recorded; what was sent will be sent again
            log.exception("outbox_failed", sink=name)
            await self._clock.sleep(_LOOK_AGAIN)
        finally:
            self._at_work.discard(name)
            self._woken.set()

    async def _deliver(self, name: str, delivery: Delivery) -> None:
        failpoints.hit("alert.stored")
        sink = self._sinks.get(name)
        if sink is None:
            gone = AgentdError(f"the sink {name!r} is no longer on", cure="check [alerts]")
            await self._give_up(delivery, gone)
            return
        try:
            await sink.send(delivery.alert)
        except AgentdError as error:
            await self._fail(delivery, error)
            return
        except Exception:  # a sink's bug must not keep the other sinks from their alerts
            log.exception("sink_broke", sink=name, alert=delivery.alert.id)
            broken = AgentdError(f"the sink {name!r} broke", cure="see `agentd logs`")
            await self._fail(delivery, broken)
            return
        failpoints.hit("alert.sent")
        await self._outbox.sent(delivery.alert.id, name)
        self._given_up.pop(name, None)
        log.info("alert_sent", sink=name, alert=delivery.alert.id)

    async def _fail(self, delivery: Delivery, error: AgentdError) -> None:
        tries = delivery.attempts + 1
        if tries >= self._max_tries:
            await self._give_up(delivery, error)
            return
        # Twenty doublings pass the longest delay from any first one of a second or more.
        after = min(self._retry_delay * 2 ** min(delivery.attempts, 20), _LONGEST_DELAY)
        log.warning("alert_retry", sink=delivery.sink, alert=delivery.alert.id, tries=tries)
        await self._outbox.retry(delivery.alert.id, delivery.sink, after)

    async def _give_up(self, delivery: Delivery, error: AgentdError) -> None:
        sink = delivery.sink
        log.warning("alert_given_up", sink=sink, alert=delivery.alert.id, reason=error.code)
        if error.code != _NOBODY_THERE:
            text = f"alert {delivery.alert.id} was not delivered by {sink!r}: {error.message}"
            self._given_up[sink] = Problem("alert_undelivered", text, error.cure)
        await self._outbox.retry(delivery.alert.id, sink, None)

    async def _delay(self) -> float | None:
        """Seconds until there is something to do; None while nothing waits."""
        due = await self._outbox.next_due()
        if due is None:
            return None
        # What a sink is at work on stays due; its end wakes us, and so does all else within a second.
        shortest = 1.0 if self._at_work else 0.1
        return min(max((due - self._clock.now()).total_seconds(), shortest), _LOOK_AGAIN)

    async def _wait(self, delay: float | None) -> None:
        """Until `wake`, or until the delay is over."""
        if delay is None:
            await self._woken.wait()
            return
        async with asyncio.TaskGroup() as group:
            timer = group.create_task(self._ring(delay))
            await self._woken.wait()
            timer.cancel()

    async def _ring(self, delay: float) -> None:
        await self._clock.sleep(delay)
        self._woken.set()
