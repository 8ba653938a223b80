"""What commands print steers no terminal, and reaches a pipe as it is."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import agentd.app.cli

CLI = Path(agentd.app.cli.__file__).parent
HOSTILE = "\x1b]0;title\x07 \x1b[2J \u202egnp \x9b31m tea\tand\ncake"
PROGRAM = f"""
from agentd.app.cli.report import note, show
show({HOSTILE!r}, str, as_json=False)
show({{"title": {HOSTILE!r}}}, str, as_json=True)
note({HOSTILE!r})
"""
# They draw on a terminal, and put everything through `visible` or a canvas of their own.
DRAWING = {"report.py", "screen.py", "painter.py", "progress.py", "markdown.py", "terminal.py"}


def on_a_terminal() -> str:
    """What the program writes on its terminal."""
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM])
    written = b""
    try:
        while read := os.read(terminal, 65_536):
            written += read
    except OSError:
        pass  # the other side is closed
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return written.decode().replace("\r\n", "\n")


def test_no_text_of_others_steers_a_terminal() -> None:
    written = on_a_terminal()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", written)
    assert written.count("tea") == 3
    assert '"title": "\\u001b]0;title\\u0007 ' in written
    assert "\\u202egnp \\u009b31m" in written, "JSON stays the same value"


def test_a_pipe_gets_the_text_as_it_is() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert done.stdout.decode().startswith(f"{HOSTILE}\n")
    assert done.stderr.decode() == f"{HOSTILE}\n"


def test_commands_print_through_one_place() -> None:
    printing = re.compile(r"\b(?:print|typer\.echo|click\.echo|sys\.std(?:out|err)\.write)\(")
    assert {path.name for path in CLI.glob("*.py") if printing.search(path.read_text())} <= DRAWING
