"""`agentd config set`: one key changed, all else kept, and nothing changed by a mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agentd.app.cli.app import app
from agentd.app.cli.config import readings_of, with_key

TEXT = """\
# my own words
[heartbeat]
interval = "30m"  # half an hour
# why it is so

# Reminders
[jobs]
enabled = true
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    path = tmp_path / "config.toml"
    path.touch(0o600)
    path.write_text(TEXT)
    return path


def put(*argv: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["config", "set", *argv])
    return result.exit_code, result.stdout, result.stderr


def test_a_key_is_changed_in_its_place_with_the_comment_behind_it(file: Path) -> None:
    code, told, _ = put("heartbeat.interval", "20m")
    assert code == 0
    assert told == "heartbeat.interval: 30m → 20m\n`agentd reload` takes it into use\n"
    assert file.read_text() == TEXT.replace('"30m"', '"20m"')
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_new_key_stands_below_the_head_of_its_table_and_takes_no_comment_away(
    file: Path,
) -> None:
    assert put("heartbeat.target", "main")[0] == 0
    assert file.read_text() == TEXT.replace("[heartbeat]\n", '[heartbeat]\ntarget = "main"\n')


def test_a_table_that_is_missing_is_made_and_other_tables_stay(file: Path) -> None:
    assert put("alerts.apprise.phone.url", "json://h/")[0] == 0
    assert file.read_text().startswith(TEXT)
    assert put("alerts.apprise.phone.severity", "urgent")[0] == 0
    table = tomli.loads(file.read_text())["alerts"]["apprise"]["phone"]
    assert table == {"url": "json://h/", "severity": "urgent"}


def test_what_belongs_together_is_set_together(file: Path) -> None:
    table = '{ url = "ntfys://h/{t}", secrets = { t = "T" } }'
    assert put("alerts.apprise.phone.url", "ntfys://h/{t}")[0] == 78
    assert put("alerts.apprise.phone", table)[0] == 0
    assert file.read_text().startswith(f"{TEXT}\n[alerts.apprise]\nphone = {{ ")
    phone = tomli.loads(file.read_text())["alerts"]["apprise"]["phone"]
    assert phone == {"url": "ntfys://h/{t}", "secrets": {"t": "T"}}
    assert put("alerts.apprise.phone", '{ url = "json://h/" }')[0] == 0
    assert tomli.loads(file.read_text())["alerts"]["apprise"] == {"phone": {"url": "json://h/"}}


def test_a_file_that_is_missing_is_made(file: Path) -> None:
    file.unlink()
    code, told, _ = put("log.level", "debug", "--json")
    assert code == 0
    found = json.loads(told)
    assert (found["key"], found["new"], found["needs"]) == ("log.level", "debug", "reload")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_one(file: Path) -> None:
    other = file.with_name("elsewhere.toml")
    file.rename(other)
    file.symlink_to(other)
    assert put("heartbeat.interval", "20m")[0] == 0
    assert file.is_symlink()
    assert '"20m"' in other.read_text()


def test_why_the_file_cannot_be_written_decides_what_to_do(file: Path) -> None:
    file.with_name("config.toml.part").mkdir()
    code, _, said = put("heartbeat.interval", "20m")
    assert (code, "something of another kind stands in its place" in said) == (78, True), said
    assert file.read_text() == TEXT


@pytest.mark.parametrize(
    ("key", "value", "code", "told"),
    [
        ("heartbeat.intervall", "20m", 78, "did you mean 'interval'"),
        ("heartbeat.interval", "soon", 78, "is no duration"),
        ("jobs.enabled.x", "1", 2, "jobs.enabled is a value"),
        ("heartbeat", "x", 2, "is no key"),
        ("heartbeat..x", "x", 2, "is no key"),
        ("provider.model", "sk-ant-REDACTED", 78, "holds a secret"),
    ],
)
def test_a_mistake_changes_nothing(file: Path, key: str, value: str, code: int, told: str) -> None:
    found, _, said = put(key, value)
    assert (found, told in said) == (code, True), said
    assert file.read_text() == TEXT


def test_a_key_that_does_not_exist_is_told_as_such_and_not_its_value(file: Path) -> None:
    _, _, said = put("heartbeat.intervl", "3")
    assert "heartbeat.intervl is no key that agentd knows; did you mean 'interval'?" in said
    _, _, said = put("heartbeat.foo", "3")
    assert "heartbeat.foo is no key that agentd knows" in said
    assert "`agentd config show` lists every key" in said
    _, _, said = put("mcp.servers.x.y.z", "1")
    assert "config.example.toml those of tables that you name, like [mcp.servers.NAME]" in said
    assert "value" not in said


def test_a_bad_value_is_not_told_as_a_line_of_the_file(file: Path) -> None:
    _, _, said = put("web.enabled", "maybe")
    assert "line" not in said
    assert "web.enabled" in said
    assert "stays as it is" in said
    assert "correct the file" not in said


def test_a_value_that_needs_another_key_says_which_to_set_first(file: Path) -> None:
    code, _, said = put("provider.kind", "openai")
    assert (code, "first `agentd config set provider.model VALUE`, then this" in said) == (78, True)
    assert put("provider.model", "m")[0] == put("provider.kind", "openai")[0] == 0


def test_a_file_with_a_mistake_is_to_be_corrected_first(file: Path) -> None:
    file.write_text("[heartbeat\n")
    assert put("heartbeat.interval", "20m")[0] == 78
    assert file.read_text() == "[heartbeat\n"


def test_that_the_environment_wins_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTD__LOG__LEVEL", "warning")
    assert "wins" in put("log.level", "debug")[1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", (True, "true")),
        ("30m", ("30m",)),
        ('"x"', ("x",)),
        ("[1]", ([1], "[1]")),
        ("", ("",)),
    ],
)
def test_a_value_is_toml_or_plain_text(text: str, value: tuple[object, ...]) -> None:
    assert readings_of(text) == value


def test_a_number_where_a_word_belongs_is_the_word(file: Path) -> None:
    for word in ("4", "2026-01-01"):
        assert put("provider.model", word)[0] == 0
        assert tomli.loads(file.read_text())["provider"]["model"] == word


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        ("[a]\nd = { e = 2 }  # why\n", "a.d.y", "[a]\nd = { e = 2, y = 7}  # why\n"),
        ("[a.b.c]\nx = 1\n", "a.y", "[a.b.c]\nx = 1\n\n[a]\ny = 7\n"),
        ("[a]\n[a.b]\nx = 1\n", "a.y", "[a]\ny = 7\n[a.b]\nx = 1\n"),
        ("", "a.b c.y", '[a."b c"]\ny = 7\n'),
        ('s = """\n[a]\n"""\n', "a.y", 's = """\n[a]\n"""\n\n[a]\ny = 7\n'),
    ],
)
def test_however_a_file_is_written_the_key_means_what_it_says(
    text: str, key: str, told: str
) -> None:
    assert with_key(text, key.split("."), 7) == told


names = st.sampled_from(["a", "b", "c"])


@given(st.lists(st.tuples(names, names, st.integers()), max_size=6))
def test_whatever_is_set_is_there_and_every_comment_stays(sets: list[tuple[str, str, int]]) -> None:
    text = "# one\n[a]\n# two\nb = 1 # three\n\n# four\n[b]\n\n# five\n"
    for table, key, value in sets:
        text = with_key(text, (table, key), value)
        assert tomli.loads(text)[table][key] == value
    found = [word for word in text.split() if word in {"one", "two", "three", "four", "five"}]
    assert found == ["one", "two", "three", "four", "five"]
    assert "\n\n# four\n[b]\n" in text


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("heartbeat_daily_tokens", '"budget.heartbeat_daily_tokens"'),
        ("reserve_tokens", '"compaction.reserve_tokens"'),
        ("nothing_like_it", '"heartbeat.interval"'),
    ],
)
def test_a_key_without_its_table_is_told_with_the_table(file: Path, key: str, named: str) -> None:
    code, _, said = put(key, "3")
    assert code == 2
    assert "needs the table" in said
    assert named in said
    assert file.read_text() == TEXT


def test_what_is_so_already_is_said_and_written_nowhere(file: Path) -> None:
    code, told, _ = put("heartbeat.enabled", "true")
    assert (code, told) == (0, "heartbeat.enabled is true already; nothing was changed\n")
    assert put("heartbeat.interval", "30m")[1].endswith("is 30m already; nothing was changed\n")
    assert file.read_text() == TEXT
    told = put("heartbeat.enabled", "false")[1]
    assert told.startswith("heartbeat.enabled: true → false\n")


def test_a_time_of_day_is_text_and_a_key_like_it_is_named(file: Path) -> None:
    _, _, said = put("heartbeat.active_hours", "08:00")
    assert "heartbeat.active_hours is no key that agentd knows; did you mean" in said
    assert "active_hours_start" in said
    assert put("heartbeat.active_hours_start", "07:00")[0] == 0
    assert 'active_hours_start = "07:00"' in file.read_text()


def test_values_are_shown_as_they_can_be_set(file: Path) -> None:
    def shown(*options: str) -> dict[str, str]:
        lines = CliRunner().invoke(app, ["config", "show", *options]).stdout.splitlines()[1:]
        return {line.split()[0]: " ".join(line.split()[1:-1]) for line in lines}

    every = shown()
    assert every["heartbeat.enabled"] == "true"
    assert every["provider.model"] == '""'
    assert put("heartbeat.enabled", "false")[0] == put("provider.max_tokens", "4096")[0] == 0
    changed = shown("--changed")
    assert changed["heartbeat.enabled"] == "false"
    assert changed["provider.max_tokens"] == "4096"
    assert "heartbeat.interval" not in changed, "the file says what is the default"
