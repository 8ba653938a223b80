"""One model for all daemons, a home for each test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.contract import Wire, World
from tests.e2e.harness import Home, ModelServer, a_home
from tests.e2e.shell import a_shell


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    """The model, alive as long as the tests are."""
    server = ModelServer(tmp_path_factory.mktemp("model"))
    yield server
    server.close()


@pytest.fixture
async def home(model: ModelServer) -> AsyncIterator[Home]:
    """A home of its own; what must always hold is checked at the end."""
    async with a_home(model) as home:
        yield home


@pytest.fixture
async def running(home: Home) -> AsyncIterator[Home]:
    """A home whose daemon listens."""
    daemon = await home.start()
    await daemon.connect()
    yield home
    await daemon.stop()


@pytest.fixture(scope="module")
def world(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A home with a daemon and something in it, and two more; no program of the machine is
    found.
    """
    with ExitStack() as stack:
        variables = {
            "PATH": str(tmp_path_factory.mktemp("no-programs")),
            "ANTHROPIC_API_KEY": "k",
            "AGENTD__GRAPH__SPACES": '["team"]',
        }
        shells = [stack.enter_context(a_shell(**variables)) for _ in range(3)]
        for number, shell in enumerate(shells):
            url = f"http://127.0.0.1:{model.port}/contract{os.getpid()}x{number}"
            file = shell.root / "config.toml"
            file.touch(0o600)
            file.write_text(
                f'[agent]\nmax_queued = 1\n[provider]\nkind = "anthropic"\nbase_url = "{url}"\n'
            )
        shell, quiet, fleeting = shells
        shell.wake()
        shell.ok("send", "say hello")
        wire = stack.enter_context(Wire(shell.socket))
        wire.call("_agentd/memory/write", {"content": "the cellar key hangs behind the clock"})
        wire.call("_agentd/memory/index")
        wire.call("_agentd/heartbeat/run", {"force": True})
        wire.call("_agentd/alerts/test")
        job = wire.call("_agentd/jobs/add", {"text": "stretch your legs", "in": "1d"})
        wire.call("_agentd/jobs/run", {"id": job["id"]})
        yield World(shell, quiet, fleeting, wire)
