"""Which embedder a benchmark measures: that of a fresh installation, `EMBEDDER=static` the word
table, or `EMBEDDER=onnx EMBEDDER_MODEL=DIR`.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path

from agentd.core.clock import SystemClock
from agentd.core.ports import Embedder
from agentd.memory.index.embedding.assembly import open_embedders
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings


def settings() -> EmbedderSettings:
    """What the environment asks for."""
    model = {"model": os.environ.get("EMBEDDER_MODEL", "")}
    return EmbedderSettings.model_validate(
        {"provider": os.environ.get("EMBEDDER", "auto"), "embedder": model}
    )


def as_toml() -> str:
    """The same as lines of a configuration."""
    wanted = settings()
    return (
        f"[memory_search]\nprovider = {json.dumps(wanted.provider)}\n"
        f"[memory_search.embedder]\nmodel = {json.dumps(wanted.embedder.model)}\n"
    )


@asynccontextmanager
async def opened() -> AsyncIterator[Embedder | None]:
    """That embedder with its process; None for words alone. Raises RuntimeError if it cannot be
    had.
    """
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as state:
        clock = SystemClock(UTC)
        async with (
            open_embedders(settings(), os.environ, Path(state), clock) as found,
            asyncio.TaskGroup() as tasks,
        ):
            if found.refusals:
                raise RuntimeError(f"{found.refusals[0].text} {found.refusals[0].cure}")
            running = [tasks.create_task(work()) for work in found.work]
            yield found.chain[0] if found.chain else None
            for task in running:
                task.cancel()
