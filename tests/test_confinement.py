"""What a process gives up with `confine`, and that keys leave its environment."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import pytest

from agentd.app.confinement import without_keys

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the kernel's own words are Linux's"
)

_TELL = """
import json, os, resource, subprocess, sys
from pathlib import Path
from agentd.app.confinement import confine, without_keys
if sys.argv[1] == "confined":
    confine()
    environ = without_keys(os.environ, ["SOME_API_KEY", "NOT_SET"])
else:
    environ = os.environ
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
import ctypes
print(json.dumps({
    "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
    "dumpable": ctypes.CDLL(None).prctl(3, 0, 0, 0, 0),
    "privileges": status["NoNewPrivs"].strip(),
    "read": environ["SOME_API_KEY"],
    "kernel": "a-secret-value" in Path("/proc/self/environ").read_text(errors="replace"),
    "others": "of-no-secret" in Path("/proc/self/environ").read_text(errors="replace"),
    "child": subprocess.run(["env"], capture_output=True, text=True).stdout.count("a-secret-value"),
}))
"""


def told(how: str) -> dict[str, object]:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    del soft
    environ = {**os.environ, "SOME_API_KEY": "a-secret-value", "PLAIN": "of-no-secret"}
    done = subprocess.run(
        [sys.executable, "-c", _TELL, how],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)),
    )
    return json.loads(done.stdout)


def test_a_confined_process_dumps_nothing_gains_nothing_and_shows_no_key() -> None:
    assert told("confined") == {
        "core": 0,
        "dumpable": 0,
        "privileges": "1",
        "read": "a-secret-value",
        "kernel": False,
        "others": True,
        "child": 0,
    }


def test_the_same_is_not_so_of_any_process() -> None:
    plain = told("as it is")
    assert (plain["dumpable"], plain["kernel"], plain["child"]) == (1, True, 1)


def test_what_is_set_or_taken_later_is_so_in_the_environment_itself() -> None:
    environ = {"KEY": "k", "LISTEN_PID": "1"}
    seen = without_keys(environ, ["KEY"])
    assert (seen["KEY"], "KEY" in environ) == ("k", False)
    seen.setdefault("THREADS", "1")
    assert seen.pop("LISTEN_PID", "") == "1"
    assert environ == {"THREADS": "1"}
