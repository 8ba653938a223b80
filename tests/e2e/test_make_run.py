"""`make run` with a pipe: what the project's front page promises."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.e2e.harness import Home
from tests.e2e.shell import PATIENCE, Done, Shell, a_shell
from tests.waiting import wait_until

TOLD = "remember that my dog is called Max\nremember that the server room code is 4711\n"
ASKED = "what is my dog called?\nwhich code opens the server room?\n"


@pytest.fixture
def shell() -> Iterator[Shell]:
    with a_shell() as shell:
        yield shell


def replies(done: Done) -> list[str]:
    """The lines on standard output, of a run that went well."""
    assert done.code == 0, done
    return done.out.splitlines()


def check_remembered(answers: list[str], shell: Shell) -> None:
    """Each answer is the fact, in the very words of its line on the page of facts, which it
    names.
    """
    page = (shell.workspace / "memory" / "facts.md").read_text("utf-8").splitlines()
    for answer, word in zip(answers, ("Max", "4711"), strict=True):
        [(number, line)] = [(n, line) for n, line in enumerate(page, start=1) if word in line]
        fact = line.split(" <!-- ")[0].removeprefix("- ")
        assert answer == f"You told me: {fact} (memory/facts.md:{number})"


def test_a_pipe_gets_four_replies_and_a_memory_that_outlives_the_daemon(shell: Shell) -> None:
    answers = replies(shell("up", given=TOLD + ASKED))
    assert len(answers) == 4
    check_remembered(answers[2:], shell)
    first = shell.json("status")
    assert first["provider"]["kind"] == "offline"

    assert shell.ok("stop").err == ""
    assert not shell.socket.exists()
    again = shell("up", given=ASKED)
    check_remembered(replies(again), shell)
    assert "created" not in again.err
    assert shell.json("status")["pid"] != first["pid"]


def test_the_first_run_says_in_a_few_lines_what_takes_its_time(shell: Shell) -> None:
    config, workspace, *rest = shell("up").err.splitlines()
    assert config == f"created {shell.root / 'config.toml'}"
    assert workspace.startswith("created ")
    assert workspace.endswith(f" in {shell.workspace}")
    assert {"SOUL.md", "HEARTBEAT.md"} <= set(workspace.replace(",", "").split())
    assert rest == ["starting the daemon", "the daemon is running now; `agentd stop` ends it"]


def test_up_keeps_the_daemon_that_runs(shell: Shell) -> None:
    assert replies(shell("up")) == []
    first = shell.json("status")["pid"]
    assert replies(shell("up")) == []
    assert shell.json("status")["pid"] == first


async def test_a_failing_turn_is_told_on_stderr_and_by_the_exit_code(home: Home) -> None:
    daemon = await home.start()
    await daemon.connect()
    shell = Shell(home.root, {"ANTHROPIC_API_KEY": "test-key"})
    done = shell("up", given="say one\nfail 401\nsay two\n")
    assert (done.code, done.out) == (1, "one\ntwo\n")
    assert done.err.startswith("error: ")
    await daemon.stop()


@pytest.mark.skipif(
    shutil.which("systemd-socket-activate") is None, reason="needs systemd-socket-activate"
)
def test_the_service_manager_can_hold_the_socket(shell: Shell) -> None:
    shell.ok("init")
    options = ("-l", str(shell.socket), "--fdname=agentd", "-E", "AGENTD_HOME")
    passed = [item for name in shell.environ() for item in ("-E", name)]
    with (shell.root / "stderr").open("wb") as stderr:
        manager = subprocess.Popen(
            ["systemd-socket-activate", *options, *passed, sys.executable, "-m", "agentd", "run"],
            env=shell.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    try:
        wait_until(shell.socket.exists, "somebody listens")
        status = shell.json("status")
        assert status["pid"] == manager.pid  # it became the daemon
        told = shell.ok("send", "remember that tea is green").out
        assert told == "I'll remember that: tea is green\n"
        page = shell.workspace / "memory" / "facts.md"
        assert "- tea is green" in page.read_text("utf-8")
        shell.ok("stop")
        assert manager.wait(PATIENCE) == 0
        assert shell.socket.exists(), "the socket belongs to the manager"
    finally:
        with contextlib.suppress(ProcessLookupError):
            manager.kill()
        manager.wait()
