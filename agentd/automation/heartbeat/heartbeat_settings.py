"""The `[heartbeat]` table."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from agentd.automation.heartbeat.hours import Hours, Window
from agentd.core.settings import Duration, PositiveDuration, Settings, TimeOfDay, ZoneName
from agentd.core.times import parse_time

_DAY_MINUTES = 24 * 60


class HeartbeatSettings(Settings):
    """When agentd looks at HEARTBEAT.md by itself, and whom it tells."""

    enabled: bool = Field(True, description="wake up by itself at all")
    interval: Duration = Field(
        timedelta(minutes=30), description='time between two beats; "0m" turns them off'
    )
    active_hours_start: TimeOfDay = Field(8 * 60, description="no beat before this time of day")
    active_hours_end: TimeOfDay = Field(
        22 * 60, description='no beat from this time of day on; "24:00" is the end of the day'
    )
    timezone: ZoneName = Field("", description='IANA zone of all times here; "": the agent\'s')
    target: str = Field(
        "last",
        description='who is told: "last" (every sink that is on), "none", or one sink\'s name',
    )
    to: str = Field("", description="the recipient, handed to the sink as it is")
    model: str = Field("", description='the model of beats; "": the provider\'s')
    prompt: str = Field("", description='what a beat asks; "": the text that ships with agentd')
    context: Literal["light", "main"] = Field(
        "light",
        description='what a beat sees: "light" (the checklist) or "main" (a conversation too)',
    )
    session: str = Field("main", description='the conversation that context "main" means')
    include_reasoning: bool = Field(False, description="put the model's reasoning before an alert")
    ack_max_chars: int = Field(
        300,
        ge=0,
        description="up to this many characters beside HEARTBEAT_OK still count as silence",
    )
    quiet_hours_start: TimeOfDay | Literal[""] = Field(
        "", description='no beat from this time of day on, inside the active hours too; "": none'
    )
    quiet_hours_end: TimeOfDay | Literal[""] = Field(
        "", description="beats are allowed again from this time of day on"
    )
    pause_after_idle: Duration = Field(
        timedelta(0),
        description='no beat while you have not written for so long (`idle`); "0s": never',
    )
    timeout: PositiveDuration = Field(
        timedelta(minutes=10), description="a beat that takes longer has failed"
    )

    @field_validator("quiet_hours_start", "quiet_hours_end", mode="before")
    @classmethod
    def _time_or_nothing(cls, value: Any) -> Any:
        return value if value == "" else parse_time(value)

    @field_validator("interval")
    @classmethod
    def _not_too_long(cls, value: timedelta) -> timedelta:
        if value > timedelta(days=365):
            msg = 'a heartbeat comes at least once a year; "0m" turns it off'
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _hours_leave_room(self) -> Self:
        _check_window("active_hours", self.active_hours_start, self.active_hours_end)
        quiet_start, quiet_end = self.quiet_hours_start, self.quiet_hours_end
        if quiet_start == "" and quiet_end == "":
            return self
        if quiet_start == "" or quiet_end == "":
            msg = "quiet_hours_start and quiet_hours_end go together: set both, or neither"
            raise ValueError(msg)
        _check_window("quiet_hours", quiet_start, quiet_end)
        hours = self.hours(ZoneInfo("UTC"))
        if all(hours.closed_at_minute(minute) for minute in range(_DAY_MINUTES)):
            msg = (
                "the quiet hours cover all the active hours; move one of "
                "them, or set enabled = false"
            )
            raise ValueError(msg)
        return self

    @property
    def is_on(self) -> bool:
        """Whether beats run on a schedule."""
        return self.enabled and bool(self.interval)

    def hours(self, zone: ZoneInfo) -> Hours:
        """Return the hours in which beats may run; `zone` is used if the settings name none."""
        zone = ZoneInfo(self.timezone) if self.timezone else zone
        quiet_start, quiet_end = self.quiet_hours_start, self.quiet_hours_end
        return Hours(
            Window(self.active_hours_start, self.active_hours_end),
            None if quiet_start == "" or quiet_end == "" else Window(quiet_start, quiet_end),
            zone,
        )


def _check_window(name: str, start: int, end: int) -> None:
    if start == _DAY_MINUTES:
        msg = f'{name}_start cannot be "24:00"; write "00:00"'
        raise ValueError(msg)
    if start == end:
        msg = (
            f"{name}_start and {name}_end are equal, which could mean always or never; "
            'write "00:00" and "24:00" for always'
        )
        raise ValueError(msg)
