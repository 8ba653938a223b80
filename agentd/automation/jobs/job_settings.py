"""The `[jobs]` table."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from agentd.automation.jobs.slots import Rules
from agentd.core.job import Misfire
from agentd.core.settings import Duration, PositiveDuration, Settings


class JobsSettings(Settings):
    """Reminders and questions at set times."""

    enabled: bool = Field(True, description="run jobs at all")
    max_jobs: int = Field(100, ge=1, description="no more jobs than this wait at a time")
    min_interval: PositiveDuration = Field(
        timedelta(minutes=1), description="no job comes round sooner than this"
    )
    timeout: PositiveDuration = Field(
        timedelta(minutes=10), description="a question that takes longer has failed"
    )
    misfire: Misfire = Field(
        Misfire.ONCE,
        description='missed times, unless a job says otherwise: "skip" them, run "once", or "all"',
    )
    misfire_grace: Duration = Field(
        timedelta(minutes=5), description='what is less late than this still runs under "skip"'
    )
    max_late_runs: int = Field(
        10, ge=1, le=100, description='missed times that "all" makes up for, the newest ones'
    )
    ack_max_chars: int = Field(
        300,
        ge=0,
        description="up to this many characters beside HEARTBEAT_OK still count as silence",
    )

    @property
    def rules(self) -> Rules:
        """The rules for late slots."""
        return Rules(self.misfire_grace, self.max_late_runs)
