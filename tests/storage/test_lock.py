"""One daemon per state directory."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from agentd.core.errors import AlreadyRunning
from agentd.storage.lock import folder_lock, state_lock

HOLD = """
import sys, time
from pathlib import Path
from agentd.storage.lock import folder_lock, state_lock
with state_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def listing(folder):
    return sorted((p.name, p.stat().st_mtime_ns, p.stat().st_size) for p in folder.iterdir())


def test_a_second_owner_is_refused_and_changes_nothing(tmp_path):
    with state_lock(tmp_path / "state"):
        before = listing(tmp_path / "state")
        with pytest.raises(AlreadyRunning) as caught, state_lock(tmp_path / "state"):
            pytest.fail("two owners")
        assert caught.value.exit_code == 75
        assert listing(tmp_path / "state") == before
    with state_lock(tmp_path / "state"):
        pass


def test_the_kernel_frees_the_lock_of_a_killed_owner(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    ) as owner:
        assert owner.stdout.readline() == b"held\n"
        with pytest.raises(AlreadyRunning), state_lock(tmp_path):
            pytest.fail("two owners")
        owner.send_signal(signal.SIGKILL)
    with state_lock(tmp_path):
        pass


def test_the_lock_is_private_whatever_the_umask(tmp_path):
    with state_lock(tmp_path / "deep" / "state"):
        assert (tmp_path / "deep" / "state").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "deep" / "state" / "agentd.lock").stat().st_mode & 0o777 == 0o600


def test_a_folder_is_one_holders_at_a_time(tmp_path):
    with folder_lock(tmp_path), pytest.raises(BlockingIOError), folder_lock(tmp_path, tries=2):
        pass
    with folder_lock(tmp_path, tries=1):
        pass
