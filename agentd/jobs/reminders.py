"""Reminders: the owner's own words, told at their time. No model has a part in it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from agentd.domain.alert import Recipients
from agentd.domain.job import Ending, Job, JobOutcome, JobReason, JobRun, Step
from agentd.ports import Clock, JobStore


class Reminders:
    """Puts a reminder's text into the outbox, in the transaction that uses the slot. It goes to
    `recipients`; `wake` tells the alerts' dispatcher.
    """

    def __init__(
        self,
        book: JobStore,
        clock: Clock,
        wake: Callable[[], None],
        recipients: Recipients,
    ) -> None:
        self._book = book
        self._clock = clock
        self._wake = wake
        self._recipients = recipients

    def is_free(self, job: Job) -> bool:
        """Always."""
        return True

    async def run(self, job: Job, step: Step) -> JobRun | None:
        """Remind; None if this slot was used before. Raises StorageError."""
        slot = step.due or self._clock.now()
        # Told each time, though it says the same each time.
        digest = hashlib.sha256(f"job {job.id} {slot.isoformat()}".encode()).hexdigest()
        alert = self._recipients.alert(job.what.text, "job", digest)
        ending = Ending(JobOutcome.ALERT, JobReason.REMINDER, job.what.text)
        run = await self._book.record(step, ending, alert)
        if run is not None:
            self._wake()
        return run
