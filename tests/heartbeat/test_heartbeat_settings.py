"""The heartbeat's table."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from agentd.automation.heartbeat.heartbeat_settings import HeartbeatSettings


def test_defaults_are_the_documented_ones() -> None:
    settings = HeartbeatSettings()
    assert settings.is_on
    assert settings.interval == timedelta(minutes=30)
    assert (settings.active_hours_start, settings.active_hours_end) == (480, 1320)
    assert (settings.target, settings.context, settings.ack_max_chars) == ("last", "light", 300)


def test_an_interval_of_nothing_turns_beats_off() -> None:
    assert not HeartbeatSettings.model_validate({"interval": "0m"}).is_on


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"active_hours_start": "09:00", "active_hours_end": "09:00"}, "always or never"),
        ({"active_hours_start": "00:00", "active_hours_end": "00:00"}, '"24:00" for always'),
        ({"active_hours_start": "24:00"}, "cannot be"),
        ({"active_hours_end": "24:30"}, "no time of day"),
        ({"active_hours_end": "8pm"}, "no time of day"),
        ({"quiet_hours_start": "12:00"}, "go together"),
        ({"quiet_hours_start": "12:00", "quiet_hours_end": "12:00"}, "always or never"),
        ({"quiet_hours_start": "07:00", "quiet_hours_end": "23:00"}, "cover all"),
        ({"timezone": "Mars/Olympus"}, "no known time zone"),
        ({"timeout": "0s"}, "longer than nothing"),
        ({"interval": "400d"}, "once a year"),
        ({"ack_max_chars": -1}, "greater than or equal"),
        ({"intervall": "30m"}, "Extra inputs"),
    ],
)
def test_what_cannot_be_meant_is_refused(table: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        HeartbeatSettings.model_validate(table)


def test_the_whole_day_is_midnight_to_twenty_four() -> None:
    day = {"active_hours_start": "00:00", "active_hours_end": "24:00"}
    settings = HeartbeatSettings.model_validate(day)
    assert (settings.active_hours_start, settings.active_hours_end) == (0, 24 * 60)


def test_every_field_says_what_it_is_for() -> None:
    assert all(field.description for field in HeartbeatSettings.model_fields.values())


def test_a_time_that_cannot_be_read_is_one_mistake() -> None:
    with pytest.raises(ValidationError) as caught:
        HeartbeatSettings.model_validate({"quiet_hours_start": "8pm"})
    assert caught.value.error_count() == 1
    assert "no time of day" in str(caught.value)
