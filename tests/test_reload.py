"""A changed configuration: what can change live does, the rest is named, a mistake changes
nothing.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from agentd.app.config import Config, load
from agentd.app.reload import LIVE, Reload
from agentd.core.errors import ConfigError


@pytest.fixture
def house(tmp_path: Path) -> SimpleNamespace:
    """A file, the reload of it, and what the parts took."""
    file = tmp_path / "config.toml"
    taken: list[Config] = []
    refusals: list[ConfigError] = []

    def check(config: Config) -> None:
        if refusals:
            raise refusals[0]

    def read() -> Config:
        return load(file, {})

    reload = Reload(read(), read, check, taken.append, file)
    return SimpleNamespace(file=file, reload=reload, taken=taken, refusals=refusals)


def test_every_live_key_exists() -> None:
    for key in LIVE:
        value: object = Config()
        for name in key.split("."):
            assert hasattr(value, name), key
            value = getattr(value, name)


async def test_live_keys_change_and_others_wait_for_a_restart(house: SimpleNamespace) -> None:
    house.file.write_text(
        '[log]\nlevel = "debug"\nkeep = 9\n[heartbeat]\ninterval = "5m"\n'
        "[server]\nmax_connections = 3\nreplay_turns = 7\n[budget]\ndaily_usd = 2.0\n"
    )
    outcome = await house.reload.run()
    assert outcome.changed == (
        *("heartbeat.interval", "budget.daily_usd", "server.max_connections", "log.level"),
    )
    assert outcome.needs_restart == ("server.replay_turns", "log.keep")
    (taken,) = house.taken
    assert (taken.log.level, taken.server.max_connections) == ("debug", 3)
    assert taken.heartbeat.interval.total_seconds() == 300
    assert (taken.log.keep, taken.server.replay_turns) == (3, 200), "these are not in force"
    again = await house.reload.run()
    assert (again.changed, again.needs_restart) == ((), ("server.replay_turns", "log.keep"))


async def test_what_is_taken_back_changes_back(house: SimpleNamespace) -> None:
    house.file.write_text('[log]\nlevel = "debug"\n')
    await house.reload.run()
    house.file.write_text("")
    assert (await house.reload.run()).changed == ("log.level",)
    assert [config.log.level for config in house.taken] == ["debug", "info"]


async def test_a_file_with_mistakes_changes_nothing_and_names_all(house: SimpleNamespace) -> None:
    house.file.write_text(
        '[log]\nlevel = "loud"\n[heartbeat]\nintervall = "5m"\n[budget]\ndaily_usd = 1\n'
    )
    with pytest.raises(ConfigError) as caught:
        await house.reload.run()
    assert "log.level" in caught.value.message
    assert "intervall" in caught.value.message
    assert house.taken == []
    house.file.write_text("")
    assert not (await house.reload.run()).changed, "all that was set is in force still"


async def test_what_the_running_parts_could_not_go_by_is_refused(house: SimpleNamespace) -> None:
    house.refusals.append(ConfigError("no price", cure="add one"))
    house.file.write_text("[budget]\ndaily_usd = 1\n")
    with pytest.raises(ConfigError, match="no price"):
        await house.reload.run()
    assert house.taken == []
    house.refusals.clear()
    assert (await house.reload.run()).changed == ("budget.daily_usd",)


async def test_a_change_of_what_is_shown_in_part_is_seen(house: SimpleNamespace) -> None:
    house.file.write_text('[alerts]\ncommand = ["bell", "once"]\n')
    assert (await house.reload.run()).needs_restart == ("alerts.command",)
    running = Reload(
        load(house.file, {}),
        lambda: load(house.file, {}),
        lambda _: None,
        lambda _: None,
        house.file,
    )
    house.file.write_text('[alerts]\ncommand = ["bell", "twice"]\n')
    assert (await running.run()).needs_restart == ("alerts.command",)


async def test_a_file_that_is_gone_is_said(house: SimpleNamespace) -> None:
    house.file.write_text("")
    assert not (await house.reload.run()).missing
    house.file.unlink()
    assert (await house.reload.run()).missing == str(house.file)
