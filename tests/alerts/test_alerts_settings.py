"""The alerts' table."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agentd.automation.alerts.alert_settings import AlertsSettings
from agentd.core.errors import ConfigError


def test_journal_socket_and_main_are_on_and_the_rest_is_off() -> None:
    settings = AlertsSettings()
    assert (settings.journal, settings.socket, settings.main) == (True, True, True)
    assert (settings.command, settings.webhook({})) == ((), "")


@pytest.mark.parametrize(
    "table",
    [
        {"webhook_url": "ftp://example.org"},
        {"webhook_url": "example.org/hook"},
        {"webhook_url": "https://example.org", "webhook_url_env": "HOOK"},
        {"command": ["", "x"]},
        {"timeout": "0s"},
        {"max_tries": 0},
    ],
)
def test_what_cannot_be_meant_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        AlertsSettings.model_validate(table)


def test_the_address_may_come_from_the_environment() -> None:
    settings = AlertsSettings(webhook_url_env="HOOK")
    assert settings.webhook({"HOOK": "https://example.org/secret"}) == "https://example.org/secret"


@pytest.mark.parametrize("value", [None, "", "secret-but-no-address"])
def test_a_missing_address_is_told_without_repeating_the_secret(value: str | None) -> None:
    environ = {} if value is None else {"HOOK": value}
    with pytest.raises(ConfigError, match="HOOK") as caught:
        AlertsSettings(webhook_url_env="HOOK").webhook(environ)
    assert "secret" not in caught.value.message


def test_every_field_says_what_it_is_for() -> None:
    assert all(field.description for field in AlertsSettings.model_fields.values())
