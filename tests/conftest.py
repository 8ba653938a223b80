"""What holds for every test: patience, an empty environment, no armed failpoint, no outside
network.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from agentd.core import failpoints
from tests import memory_disk

_FOREIGN = (
    "AGENTD",
    "ANTHROPIC_",
    "OPENAI_",
    "LISTEN_",
    "WATCHDOG_",
    "NOTIFY_SOCKET",
    "JOURNAL_STREAM",
    "INVOCATION_ID",
    "CREDENTIALS_DIRECTORY",
    "CONFIGURATION_DIRECTORY",
    "STATE_DIRECTORY",
    "RUNTIME_DIRECTORY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "COLUMNS",
    "LINES",
)
_outside: list[str] = []

tempfile.tempdir = memory_disk.folder()

# A shell that puts the tests into the background has them ignore it, and so all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is the machine's affair; other tests look at what grows how.
settings.register_profile(
    "patient",
    settings.default,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")


class OutsideNetwork(RuntimeError):
    """A test reached for another machine."""


def _refuse_outside(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        peer, address = args
        if peer.family not in (socket.AF_INET, socket.AF_INET6):
            return
        host = str(address[0])
    elif event == "socket.getaddrinfo":
        host = args[0].decode() if isinstance(args[0], bytes) else str(args[0] or "")
    else:
        return
    if not (host.startswith("127.") or host in ("", "::1", "localhost", "0.0.0.0")):
        _outside.append(host)
        raise OutsideNetwork(host)


sys.addaudithook(_refuse_outside)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected lives as long as the tests do, so nobody looks through it for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _isolation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.upper().startswith(_FOREIGN)]:
        monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    _outside.clear()
    yield
    failpoints.arm("")
    assert not _outside, f"the test reached for other machines: {_outside}"
