"""Reports to the service manager that the daemon is ready, still works, or is stopping."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import MutableMapping, Sequence

import structlog

from agentd.core.ports import Clock, Probe

log = structlog.get_logger()


class Notifier:
    """Sends messages of sd_notify(3) without a library. Does nothing without an address."""

    def __init__(self, address: str = "", watchdog_seconds: float = 0.0) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self.watchdog_seconds = watchdog_seconds  # longest time between pings; 0: no limit

    @classmethod
    def from_environ(cls, environ: MutableMapping[str, str]) -> Notifier:
        """Return the notifier for the address that the service manager has set. The variables are
        removed from `environ`: a child that inherited them could send messages in agentd's name.
        """
        address = environ.pop("NOTIFY_SOCKET", "")
        microseconds = environ.pop("WATCHDOG_USEC", "")
        is_ours = environ.pop("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        seconds = int(microseconds) / 1e6 if is_ours and microseconds.isdecimal() else 0.0
        return cls(address, seconds)

    def send(self, *lines: str) -> None:
        """Send lines such as `READY=1`. If the service manager cannot be reached, that is only
        logged.
        """
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.connect(self._address)
                sender.send("\n".join(lines).encode())
        except OSError as error:
            log.warning("notify_failed", lines=lines, error=str(error))


class Watchdog:
    """Pings the service manager's watchdog after proof of work, never by a mere timer.

    Twice in each watchdog period every part must do a little real work within the deadline. If a
    part does not, no ping is sent, and the service manager restarts the daemon when the period is
    over.
    """

    def __init__(
        self,
        probes: Sequence[Probe],
        notifier: Notifier,
        clock: Clock,
        deadline: float | None = None,
    ) -> None:
        self._probes = probes
        self._notifier = notifier
        self._clock = clock
        self._pause = notifier.watchdog_seconds / 2
        self._deadline = min(10.0, self._pause / 2) if deadline is None else deadline
        self._stuck: set[str] = set()

    async def run(self) -> None:
        """Prove and ping until cancelled; return at once if there is no watchdog."""
        while self._pause:
            await self._clock.sleep(self._pause)
            async with asyncio.TaskGroup() as tasks:
                proofs = [tasks.create_task(self._prove(probe)) for probe in self._probes]
            if all(proof.result() for proof in proofs):
                self._notifier.send("WATCHDOG=1")

    async def _prove(self, probe: Probe) -> bool:
        try:
            async with asyncio.timeout(self._deadline):
                await probe.check()
        except Exception as error:  # noqa: BLE001 - whatever breaks a part, the others are proven
            if probe.name not in self._stuck:
                self._stuck.add(probe.name)
                log.error("part_stuck", part=probe.name, error=repr(error))  # noqa: TRY400 - once
            return False
        if probe.name in self._stuck:
            self._stuck.discard(probe.name)
            log.info("part_recovered", part=probe.name)
        return True
