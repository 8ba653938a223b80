"""One question to the daemon."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from agentd.paths import client_sockets

QUICK_SECONDS = 30.0
MODEL_SECONDS = 900.0  # commands that wait for a language model


def sockets() -> tuple[Path, ...]:
    """Where this process looks for the daemon."""
    return client_sockets(os.environ)


def ask(command: str, *, within: float = QUICK_SECONDS, **options: Any) -> Any:
    """What the daemon answers to `_agentd/<command>`; options that are None are left out.

    Raises DaemonUnreachable, RemoteError, Busy.
    """
    import asyncio

    params = {key: value for key, value in options.items() if value is not None}
    return asyncio.run(_call(f"_agentd/{command}", params, within))


async def _call(method: str, params: dict[str, Any], within: float) -> Any:
    from agentd.client.connection import connected

    async with connected(sockets()) as connection:
        return await connection.call(method, params, within=within)
