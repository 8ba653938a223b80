"""What init asks on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import typer
from typer.testing import CliRunner

from agentd.app.cli.setup import Answer, ask_settings


def answers_to(lines: Sequence[str]) -> tuple[list[Answer], str]:
    app = typer.Typer()
    got: list[Answer] = []

    @app.command()
    def ask() -> None:
        got.extend(ask_settings())

    result = CliRunner().invoke(app, input="".join(f"{line}\n" for line in lines))
    assert result.exit_code == 0, result.output
    return got, result.output


def test_pressing_return_takes_sensible_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    got, _ = answers_to([""] * 4)
    assert got == [("agent", "timezone", "Europe/Berlin")]  # the others are agentd's own


def test_a_provider_with_a_key_is_asked_for_the_variable_and_warned_if_it_is_empty() -> None:
    got, said = answers_to(["anthropic", "MY_KEY", "UTC", "7:30", "24:00"])
    assert got == [
        ("provider", "kind", "anthropic"),
        ("provider", "api_key_env", "MY_KEY"),
        ("agent", "timezone", "UTC"),
        ("heartbeat", "active_hours_start", "07:30"),
        ("heartbeat", "active_hours_end", "24:00"),
    ]
    assert "MY_KEY is not set here" in said


def test_a_server_that_speaks_like_openai_is_asked_for_its_address_and_model() -> None:
    url = "http://127.0.0.1:8080/v1"
    got, _ = answers_to(["openai", url, "qwen3", "", "UTC", "", ""])
    assert got[:4] == [
        ("provider", "kind", "openai"),
        ("provider", "base_url", url),
        ("provider", "model", "qwen3"),
        ("provider", "api_key_env", "OPENAI_API_KEY"),
    ]


def test_what_makes_no_sense_is_asked_again() -> None:
    got, said = answers_to(
        ["skynet", "offline", "Mars/Base", "UTC", "25:00", "9", "09:00", "22:00"]
    )
    assert ("provider", "kind", "offline") in got
    assert ("heartbeat", "active_hours_start", "09:00") in got
    for wrong in ("'skynet'", "'Mars/Base'", "'25:00'", "'9'"):
        assert wrong in said


def test_active_hours_that_are_equal_or_begin_at_the_end_are_refused_at_once() -> None:
    got, said = answers_to(["", "UTC", "08:00", "8:00", "24:00", "00:00", "24:00"])
    assert got[-2:] == [
        ("heartbeat", "active_hours_start", "00:00"),
        ("heartbeat", "active_hours_end", "24:00"),
    ]
    assert "always or never" in said
    assert "only an end" in said
