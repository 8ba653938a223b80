"""The alerts' table."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from agentd.app.config import describe, read
from agentd.automation.alerts.alert_settings import AlertsSettings, AppriseTarget, SinkSettings
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


PHONE = {"url": "ntfys://ntfy.sh/{topic}", "secrets": {"topic": "NTFY_TOPIC"}}


def test_each_address_of_apprise_is_a_sink_of_its_own() -> None:
    off = {"url": "json://h/", "enabled": False}
    table = {"apprise": {"phone": PHONE, "hook": {"url": "json://h/"}, "off": off}}
    settings = AlertsSettings.model_validate(table)
    assert settings.names == ("journal", "socket", "main", "phone", "hook")
    assert settings.key_variables == ("NTFY_TOPIC",)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ({"url": ""}, "no address of Apprise"),
        ({"url": "ntfy.sh/topic"}, "no address of Apprise"),
        ({"url": "ntfys://h/{topic}"}, "secrets do not name it"),
        ({"url": "ntfys://h/", "secrets": {"topic": "T"}}, "no place for it"),
        ({"url": "json://{Topic}", "secrets": {"Topic": "T"}}, "write secrets like"),
        ({"url": "json://{a}", "secrets": {"a": " "}}, "write secrets like"),
        ({"url": "mailto://me:hunter2@h"}, "holds a password"),
        ({"url": "json://h", "quiet_hours_start": "22:00"}, "go together"),
        ({"url": "json://h", "quiet_hours_start": "7:00", "quiet_hours_end": "08:00"}, "no time"),
        (
            {"url": "json://h", "quiet_hours_start": "22:00", "quiet_hours_end": "22:00"},
            "different times",
        ),
        ({"url": "json://h", "digest": "2d"}, "at most a day"),
        ({"url": "json://h", "severity": "loud"}, "severity"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(target: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        AlertsSettings.model_validate({"apprise": {"phone": target}})
    AlertsSettings.model_validate({"apprise": {"phone": PHONE}})


@pytest.mark.parametrize("name", ["main", "last", "none", "webhook", "Phone", "", "a" * 25])
def test_a_name_that_means_something_else_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        AlertsSettings.model_validate({"apprise": {name: PHONE}})


def test_command_and_webhook_may_have_hours_too_and_no_other_way() -> None:
    night = {"quiet_hours_start": "22:00", "quiet_hours_end": "07:00"}
    table = {"command": ["x"], "sinks": {"command": night, "webhook": night}}
    settings = AlertsSettings.model_validate(table)
    timings = settings.timings(ZoneInfo("UTC"))
    assert list(timings) == ["command"], "the webhook is off"
    assert timings["command"].gathers
    with pytest.raises(ValidationError, match="only command and webhook"):
        AlertsSettings.model_validate({"sinks": {"main": night}})


def test_a_place_for_a_secret_is_no_secret_and_a_secret_beside_it_is_one(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    table = '[alerts.apprise.mail]\nsecrets = {{ p = "P", u = "U" }}\nurl = "{}"\n'
    file.write_text(table.format("mailto://{u}:{p}@example.org"))
    assert read(file, {}).config.alerts.names[-1] == "mail"
    file.write_text(table.format("mailto://{u}:{p}hunter2@example.org"))
    with pytest.raises(ConfigError, match="holds a secret"):
        read(file, {})


def test_what_is_shown_of_an_address_is_the_kind_of_service(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[alerts.apprise.phone]\nurl = "ntfys://my-secret-topic/{x}"\nsecrets = { x = "X" }\n'
        'severity = "warning"\n'
    )
    found = {one.key: one.value for one in describe(read(file, {}))}["alerts.apprise"]
    assert found["phone"]["url"] == "ntfys://[not shown]"
    assert "my-secret-topic" not in str(found)
    file.write_text('[alerts.apprise.phone]\nurl = ["ntfys://my-secret-topic/"]\n')
    with pytest.raises(ConfigError) as caught:
        read(file, {})
    assert "my-secret-topic" not in caught.value.message
    assert "alerts.apprise.phone.url" in caught.value.message


def test_every_field_says_what_it_is_for() -> None:
    models = (AlertsSettings, AppriseTarget, SinkSettings)
    assert all(field.description for model in models for field in model.model_fields.values())
