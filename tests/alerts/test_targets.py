"""What `[heartbeat] target` means."""

from __future__ import annotations

import pytest

from agentd.automation.alerts.alert_settings import Targets, resolve
from agentd.core.alert import Recipients
from agentd.core.errors import ConfigError
from agentd.core.turn import Origin

ON = ("journal", "socket", "main")


@pytest.mark.parametrize(
    ("target", "sinks"),
    [("last", ON), ("none", ()), ("main", ("main",)), ("journal", ("journal",))],
)
def test_a_target_names_its_sinks_and_keeps_the_recipient(
    target: str, sinks: tuple[str, ...]
) -> None:
    assert resolve(target, "me", ON) == Recipients(sinks, "me")


def test_a_sink_that_is_off_is_refused_with_those_that_are_on() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve("webhook", "", ON)
    assert "last, none, journal, socket, main" in caught.value.cure


def test_where_beats_go_can_change_and_a_sink_that_is_off_changes_nothing() -> None:
    targets = Targets(("journal", "socket"), "last", "")
    assert targets(Origin.HEARTBEAT) == targets(Origin.JOB) == Recipients(("journal", "socket"))
    with pytest.raises(ConfigError):
        targets.check("webhook", "")
    targets.adopt("journal", "me")
    assert targets(Origin.HEARTBEAT) == Recipients(("journal",), "me")
    assert targets(Origin.JOB) == Recipients(("journal", "socket"))
