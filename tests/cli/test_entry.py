"""What every command has from its entry: streams that are there, and an end by Ctrl-C without
noise.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRESSED_AT_IMPORT = """
import os, signal, sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == {where!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Press())
"""
PRESSED_AT_CALL = """
import os, signal, sys
def press(frame, event, _):
    if event == "call" and frame.f_code.co_qualname == {where!r}:
        os.kill(os.getpid(), signal.SIGINT)
sys.setprofile(press)
"""
AGENTD = """
sys.argv = ["agentd", "facts", "list"]
from agentd.__main__ import main
main()
"""


def run(argv: list[str], home: Path, redirected: str = "") -> subprocess.CompletedProcess[str]:
    """Run with redirections as a shell makes them; what was not redirected is caught."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirected}', "sh", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "AGENTD_HOME": str(home)},
    )


def agentd(home: Path, redirected: str, *words: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "agentd", *words], home, redirected)


@pytest.mark.parametrize(
    "words",
    [
        ["chat"],
        ["init"],
        ["restore", "no-such-file"],
        ["facts", "forget", "X"],
        ["sessions", "delete", "K"],
        ["memory", "forget", "X"],
    ],
    ids=" ".join,
)
def test_a_closed_input_is_an_empty_one(tmp_path: Path, words: list[str]) -> None:
    closed = agentd(tmp_path / "a", "<&-", *words)
    empty = agentd(tmp_path / "b", "</dev/null", *words)
    assert (closed.returncode, closed.stderr) == (
        empty.returncode,
        empty.stderr.replace(str(tmp_path / "b"), str(tmp_path / "a")),
    )
    assert "Traceback" not in closed.stderr


@pytest.mark.parametrize(
    ("redirected", "why"),
    [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
)
@pytest.mark.parametrize(
    "words",
    [["config", "show"], ["--help"], ["sessions", "delete", "K", "--json"], ["status", "--json"]],
    ids=" ".join,
)
def test_an_output_that_cannot_be_written_is_one_line(
    tmp_path: Path, words: list[str], redirected: str, why: str
) -> None:
    done = agentd(tmp_path, redirected, *words)
    assert done.stderr == f"error: the output cannot be written: {why}\n"
    assert done.returncode == 1


def test_a_failure_that_nobody_can_be_told_keeps_its_exit_code(tmp_path: Path) -> None:
    codes = {
        agentd(tmp_path, redirected, "status").returncode
        for redirected in ("", "2>/dev/full", "2>&-", "<&- >&- 2>&-")
    }
    assert codes == {69}


def test_letters_that_the_output_does_not_have_are_escaped(tmp_path: Path) -> None:
    command = ["env", "PYTHONIOENCODING=ascii", sys.executable, "-m", "agentd"]
    done = run([*command, "memory", "search", "tea", "--sources", "grüße"], tmp_path)
    assert "gr\\xfc\\xdfe" in done.stderr


@pytest.mark.parametrize(
    ("press", "where"),
    [
        (PRESSED_AT_IMPORT, "agentd.app.cli.foreground"),
        (PRESSED_AT_IMPORT, "typer"),
        (PRESSED_AT_IMPORT, "agentd.app.cli.facts"),
        (PRESSED_AT_IMPORT, "asyncio"),
        (PRESSED_AT_CALL, "BaseEventLoop.__init__"),
        (PRESSED_AT_CALL, "BaseEventLoop.close"),
    ],
)
def test_ctrl_c_ends_a_command_silently_wherever_it_is(
    tmp_path: Path, press: str, where: str
) -> None:
    done = run([sys.executable, "-c", press.format(where=where) + AGENTD], tmp_path)
    told = done.stderr if where != "BaseEventLoop.close" else ""  # its error came before
    assert (done.returncode, done.stdout, told) == (130, "", "")


def test_ctrl_c_that_the_caller_ignores_ends_nothing(tmp_path: Path) -> None:
    press = PRESSED_AT_IMPORT.format(where="typer").replace(
        "class", "signal.signal(2, signal.SIG_IGN)\nclass", 1
    )
    done = run([sys.executable, "-c", press + AGENTD], tmp_path)
    assert done.returncode == 69


def test_a_check_without_a_configuration_says_that_there_is_none(tmp_path: Path) -> None:
    done = agentd(tmp_path, "", "config", "check")
    assert "config.toml: there is no such file; agentd's defaults hold" in done.stdout
    (tmp_path / "config.toml").touch(0o600)
    assert agentd(tmp_path, "", "config", "check").stdout == f"{tmp_path / 'config.toml'}: ok\n"
