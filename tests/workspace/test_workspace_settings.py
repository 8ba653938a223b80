"""The table [workspace]."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from agentd.workspace.workspace_settings import WorkspaceSettings


def test_every_key_has_a_line_that_explains_it() -> None:
    for name, field in WorkspaceSettings.model_fields.items():
        assert field.description, name
        assert "\n" not in field.description


def test_scopes_are_names_with_absolute_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    settings = WorkspaceSettings(read_scopes=("work=/srv/notes", "old-one=~/a=b"))
    assert settings.scopes() == {"work": Path("/srv/notes"), "old-one": Path("/home/me/a=b")}


@pytest.mark.parametrize(
    "wrong",
    [
        {"read_scopes": ("work",)},
        {"read_scopes": ("work=notes",)},
        {"read_scopes": ("../x=/srv",)},
        {"read_scopes": ("a=/x", "a=/y")},
        {"daily_dir": "../out"},
        {"daily_dir": "/abs"},
        {"daily_dir": ""},
        {"daily_dir": "a/../b"},
        {"daily_aliases": ("daily", "~x")},
        {"group_paths": ("",)},
        {"group_paths": ("/",)},
        {"group_paths": ("../out",)},
        {"group_paths": ("@work/x",)},
        {"group_paths": (".git",)},
        {"group_paths": ("memory/",)},
        {"group_paths": ("Memory/trips",)},
        {"group_paths": ("daily",)},
        {"group_paths": ("notes",), "daily_dir": "notes/days"},
        {"style": "fancy"},
        {"daily_lookback_days": -1},
        {"max_file_chars": 10},
        {"unknown": 1},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        WorkspaceSettings(**wrong)
