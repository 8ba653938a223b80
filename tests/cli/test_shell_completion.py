"""What a shell completes: by the script that `agentd completion` prints, in the shell itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

AGENTD = Path(sys.executable).with_name("agentd")


def agentd(*arguments: str, **variables: str) -> str:
    return subprocess.run(
        [AGENTD, *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("agentd mem", ["memory"]),
        ("agentd memory sea", ["search"]),
        ("agentd memory search --expl", ["--explain"]),
        ("agentd nothing-like-this", []),
    ],
)
def test_bash_completes_commands_and_options(words: str, told: list[str]) -> None:
    program = (
        'eval "$("$AGENTD" completion bash)"; COMP_WORDS=($WORDS); '
        'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _agentd_completion "$AGENTD"; echo '
        '"${COMPREPLY[@]}"'
    )
    bash = shutil.which("bash")
    assert bash is not None
    said = subprocess.run(
        [bash, "-c", program],
        env={**os.environ, "AGENTD": str(AGENTD), "WORDS": words},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert said.stdout.split() == told
    assert not said.stderr


def test_zsh_and_fish_are_told_what_a_command_does() -> None:
    zsh = agentd(_AGENTD_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="agentd hea")
    assert '"heartbeat":"Run the heartbeat' in zsh
    fish = agentd(
        _AGENTD_COMPLETE="complete_fish",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        _TYPER_COMPLETE_ARGS="agentd hea",
    )
    assert fish.startswith("heartbeat\tRun the heartbeat")


def test_every_shell_has_a_script() -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_AGENTD_COMPLETE" in agentd("completion", shell)


def test_the_list_of_commands_imports_none_of_them() -> None:
    program = (
        "import atexit, sys; from agentd.__main__ import main; "
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "_AGENTD_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "agentd "},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert '"doctor":"Check everything' in done.stdout
    loaded = set(re.findall(r"agentd\.app\.cli\.(\w+)", done.stderr))
    assert loaded == {"app", "completion", "foreground", "group", "report", "streams"}
