"""One model for all daemons, a home for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.e2e.harness import Home, ModelServer, a_home


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
