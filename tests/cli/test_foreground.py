"""`agentd run` without the libraries of the other commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentd.app.cli.foreground import config_of, is_plain

HEAVY = {"typer", "rich", "acp", "anthropic", "numpy", "prompt_toolkit", "onnxruntime"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "own.toml").write_text("")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "config"),
    [
        (["run"], None),
        (["run", "--config", "own.toml"], Path("own.toml")),
        (["run", "--config=own.toml"], Path("own.toml")),
    ],
)
def test_a_plain_run_needs_no_parser(here, words, config):
    assert (is_plain(words), config_of(words)) == (True, config)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["status"],
        ["--help"],
        ["run", "--help"],
        ["run", "--config"],
        ["run", "--config", "missing.toml"],
        ["run", "--config", "."],
        ["run", "extra"],
        ["run", "--config", "own.toml", "extra"],
    ],
)
def test_help_mistakes_and_other_commands_are_for_the_parser(here, words):
    assert not is_plain(words)


def ran(*words, **environ):
    command = [sys.executable, "-m", "agentd", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=os.environ | environ
    )


def test_the_daemon_loads_no_library_that_others_need(tmp_path):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[agent]\nno_such_key = 1\n")
    done = ran(
        "run", "--config", str(wrong), AGENTD_HOME=str(tmp_path), PYTHONPROFILEIMPORTTIME="1"
    )
    lines = re.finditer(r"^import time:.*\|\s+(\S+)$", done.stderr, re.MULTILINE)
    loaded = {line[1].partition(".")[0] for line in lines if "." in line[1]}
    assert "no_such_key" in done.stderr
    assert done.returncode == 78
    assert {"agentd", "structlog", "pydantic"} <= loaded
    assert not HEAVY & loaded


def test_a_configuration_that_is_missing_is_told_before_anything_starts(tmp_path):
    done = ran("run", "--config", str(tmp_path / "gone.toml"), AGENTD_HOME=str(tmp_path))
    assert done.returncode == 2
    assert "gone.toml" in done.stderr.replace("\n", "")
