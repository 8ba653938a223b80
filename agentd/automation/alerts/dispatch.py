"""Delivers alerts from the outbox to the sinks, to each at least once."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import structlog

from agentd.automation.alerts.timing import SinkTiming, as_one, urgent_first
from agentd.core import failpoints
from agentd.core.alert import Alert, AlertSeverity, Delivery, NewAlert, alert_digest, standing
from agentd.core.errors import AgentdError, Busy
from agentd.core.health import Problem
from agentd.core.ports import AlertSink, Clock, Outbox

log = structlog.get_logger()

_LONGEST_DELAY = timedelta(hours=1)
# The error code of a sink without a connected client, which is no problem to report.
_NOBODY_THERE = "no_client"
_NEWEST = 200  # alerts on which the standings of the sinks are based
_AT_ONCE = SinkTiming()
_DELAYED = 5  # tries, about two minutes, after which a failing sink is reported as a problem
_LOOK_AGAIN = 60.0  # seconds between checks while alerts wait, to notice a set wall clock


class Dispatcher:
    """Delivers due alerts. Each sink is served separately: one that fails or hangs delays no other.

    A failed try is repeated after `retry_delay`, doubling up to an hour, or as soon as the sink has
    accepted another alert. After `max_tries` the sink is given up for that alert. An alert is
    recorded as sent after the sink has accepted it, so a crash between the two sends it twice
    rather than never; while it cannot be recorded, on a full disk for instance, it is not sent
    again. `timings` say until when a sink's alerts are held and whether they are sent as one
    message.
    """

    def __init__(
        self,
        outbox: Outbox,
        sinks: Sequence[AlertSink],
        clock: Clock,
        *,
        timings: Mapping[str, SinkTiming] = MappingProxyType({}),
        max_tries: int = 10,
        retry_delay: timedelta = timedelta(seconds=5),
    ) -> None:
        self._outbox = outbox
        self._sinks = {sink.name: sink for sink in sinks}
        self._clock = clock
        self._timings = timings
        self._max_tries = max_tries
        self._retry_delay = retry_delay
        self._woken = asyncio.Event()
        self._busy: set[str] = set()
        self._recovered: set[str] = set()  # sinks that accepted an alert since the last `_due`
        self._taken: dict[str, set[int]] = defaultdict(set)  # alerts accepted, not yet recorded
        self._problems: dict[str, Problem] = {}

    @property
    def name(self) -> str:
        """The name in `status`."""
        return "alerts"

    @property
    def sinks(self) -> tuple[str, ...]:
        """The names of all sinks."""
        return tuple(self._sinks)

    def wake(self) -> None:
        """Check the outbox now."""
        self._woken.set()

    async def run(self) -> None:
        """Deliver alerts until cancelled. May be called again afterwards."""
        self._busy.clear()  # a task cancelled before its first step did not do this
        async with asyncio.TaskGroup() as group:
            while True:
                self._woken.clear()
                try:
                    for name, deliveries in (await self._due()).items():
                        self._busy.add(name)
                        group.create_task(self._work(name, deliveries))
                    delay = await self._delay()
                except AgentdError:  # the outbox cannot be read; its alerts stay in it
                    log.exception("outbox_failed")
                    delay = _LOOK_AGAIN
                await self._wait(delay)

    async def test(self) -> Alert:
        """Put a test alert for every sink into the outbox, due at once. Raises Busy within a second
        of the last one, and StorageError.
        """
        now = self._clock.now().astimezone(self._clock.zone)
        text = (
            f"This is a test alert of agentd, sent at {now:%Y-%m-%d %H:%M:%S %z} "
            f"({self._clock.zone.key})."
        )
        new = NewAlert(text, "test", alert_digest(text), self.sinks, severity=AlertSeverity.URGENT)
        alert = await self._outbox.put(new)
        if alert is None:
            raise Busy("a test alert was sent this very second", cure="try again in a second")
        self.wake()
        return alert

    async def standings(self) -> tuple[dict[str, Any], ...]:
        """Return, for each sink, its timing settings and how the newest alerts fared: the shape of
        `sinks` in `agentd alerts sinks`.
        """
        alerts = await self._outbox.alerts(_NEWEST)
        usual = {"severity": str(AlertSeverity.INFO), "quiet_hours": "", "digest": ""}
        return tuple(
            {
                **standing(name, alerts).as_json(),
                **(self._timings.get(name, _AT_ONCE).told or usual),
            }
            for name in self._sinks
        )

    def problems(self) -> tuple[Problem, ...]:
        """Return the sinks that keep failing or were given up, each until it accepts an alert
        again.
        """
        return tuple(self._problems.values())

    async def check(self) -> None:
        """Check that the outbox can be read. Raises StorageError."""
        await self._outbox.next_due()

    async def _due(self) -> dict[str, list[Delivery]]:
        """Return the due deliveries for each sink that is not at work."""
        waiting: dict[str, list[Delivery]] = defaultdict(list)
        free = self._recovered - self._busy
        for delivery in await self._outbox.due(free):
            if delivery.sink not in self._busy:
                waiting[delivery.sink].append(delivery)
        self._recovered -= free
        return waiting

    async def _work(self, name: str, deliveries: Sequence[Delivery]) -> None:
        timing = self._timings.get(name, _AT_ONCE)
        taken = [one for one in deliveries if one.alert.id in self._taken[name]]
        waiting = [one for one in deliveries if one not in taken]
        try:
            await self._record(name, taken)
            if name not in self._sinks:
                gone = AgentdError(f"the sink {name!r} is no longer on", cure="check [alerts]")
                await self._give_up(waiting, gone)
                return
            urgent, others = urgent_first(waiting)
            for delivery in urgent if timing.gathers else waiting:
                await self._deliver(name, (delivery,))
            if timing.gathers and others:
                await self._gather(name, timing, others)
        except AgentdError:  # the result could not be recorded; the deliveries stay due
            log.exception("outbox_failed", sink=name)
            await self._clock.sleep(_LOOK_AGAIN)
        finally:
            self._busy.discard(name)
            self._woken.set()

    async def _gather(self, name: str, timing: SinkTiming, waiting: Sequence[Delivery]) -> None:
        """Send the waiting alerts as one message, or hold them."""
        until = timing.hold_until(waiting, self._clock.now())
        if until is not None:
            for delivery in waiting:
                await self._outbox.hold(delivery.alert.id, name, until)
            return
        tries = max(one.attempts for one in waiting)
        if len(waiting) == 1 or tries < _DELAYED:
            await self._deliver(name, waiting)
        else:
            await self._deliver_apart(name, waiting, waiting[tries % len(waiting)])

    async def _deliver_apart(
        self, name: str, waiting: Sequence[Delivery], by_itself: Delivery
    ) -> None:
        """Send the alerts as one message. If that fails but `by_itself` alone is accepted, send
        each on its own: the service may refuse a message because of a single alert in it.
        """
        error = await self._send(name, waiting)
        if error is None:
            return
        if await self._send(name, (by_itself,)) is not None:
            await self._fail(waiting, error)
            return
        for other in waiting:
            if other is not by_itself:
                await self._deliver(name, (other,))

    async def _deliver(self, name: str, deliveries: Sequence[Delivery]) -> None:
        """Send the alerts as one message; if that fails, schedule the next try."""
        if (error := await self._send(name, deliveries)) is not None:
            await self._fail(deliveries, error)

    async def _send(self, name: str, deliveries: Sequence[Delivery]) -> AgentdError | None:
        """Send the alerts as one message. Return None if the sink accepted it, else the error."""
        failpoints.hit("alert.stored")
        alert = as_one(deliveries, self._clock.zone)
        try:
            await self._sinks[name].send(alert)
        except AgentdError as error:
            return error
        except Exception:  # a sink's bug must not keep the other sinks from their alerts
            log.exception("sink_broke", sink=name, alert=alert.id)
            return AgentdError(f"the sink {name!r} broke", cure="see `agentd logs`")
        failpoints.hit("alert.sent")
        self._recovered.add(name)
        self._taken[name].update(delivery.alert.id for delivery in deliveries)
        self._problems.pop(name, None)
        await self._record(name, deliveries)
        return None

    async def _record(self, name: str, taken: Sequence[Delivery]) -> None:
        """Record that the sink has accepted these alerts. Raises StorageError; those not recorded
        are recorded at the next try.
        """
        for delivery in taken:
            await self._outbox.mark_sent(delivery.alert.id, name)
            self._taken[name].discard(delivery.alert.id)
            log.info("alert_sent", sink=name, alert=delivery.alert.id)

    async def _fail(self, deliveries: Sequence[Delivery], error: AgentdError) -> None:
        """Schedule the next try for all of them together, and give up those that have used all
        their tries.
        """
        lost = [one for one in deliveries if one.attempts + 1 >= self._max_tries]
        if lost:
            await self._give_up(lost, error)
        others = [one for one in deliveries if one not in lost]
        attempts = max((one.attempts for one in others), default=0)
        # After 20 doublings any first delay of a second or more exceeds the longest.
        until = self._clock.now() + min(self._retry_delay * 2 ** min(attempts, 20), _LONGEST_DELAY)
        for one in others:
            tries = one.attempts + 1
            log.warning("alert_retry", sink=one.sink, alert=one.alert.id, tries=tries)
            if tries >= _DELAYED:
                self._complain("alert_delayed", f"alert {one.alert.id} waits for", one.sink, error)
            await self._outbox.retry(one.alert.id, one.sink, until, error.message)

    async def _give_up(self, deliveries: Sequence[Delivery], error: AgentdError) -> None:
        for one in deliveries:
            log.warning("alert_given_up", sink=one.sink, alert=one.alert.id, reason=error.code)
            what = f"alert {one.alert.id} was not delivered by"
            self._complain("alert_undelivered", what, one.sink, error)
            await self._outbox.retry(one.alert.id, one.sink, None, error.message)

    def _complain(self, code: str, what: str, sink: str, error: AgentdError) -> None:
        if error.code != _NOBODY_THERE:
            self._problems[sink] = Problem(code, f"{what} {sink!r}: {error.message}", error.cure)

    async def _delay(self) -> float | None:
        """Return the seconds until the outbox must be checked again; None while no alert waits."""
        due = await self._outbox.next_due()
        if due is None:
            return None
        # Deliveries in progress still count as due, so do not poll for them: their end wakes `run`.
        shortest = 1.0 if self._busy else 0.1
        return min(max((due - self._clock.now()).total_seconds(), shortest), _LOOK_AGAIN)

    async def _wait(self, delay: float | None) -> None:
        """Wait until `wake` is called or the delay is over; None waits for `wake` only."""
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
