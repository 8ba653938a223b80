"""Calls a method of the daemon; times are formatted for the owner's zone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentd.core.clock import SystemClock
from agentd.interfaces.client.connection import DaemonConnection, connect, introduction
from agentd.interfaces.commands.plain import TimeFormatter

_INTRODUCTION_SECONDS = 30.0


def call_daemon(
    sockets: Sequence[Path], method: str, params: dict[str, Any], within: float, *, in_words: bool
) -> Any:
    """Call a method and return the result, with ISO times replaced by words if `in_words`. Raises
    DaemonUnreachable, RemoteError, Busy.
    """
    return asyncio.run(_call(sockets, method, params, within, in_words=in_words))


async def owners_times(connection: DaemonConnection) -> TimeFormatter:
    """Return the time formatter for the daemon's zone. Raises RemoteError, Busy."""
    hello = await connection.call(
        "initialize", introduction(deny=True), within=_INTRODUCTION_SECONDS
    )
    return TimeFormatter(SystemClock((hello.get("_meta") or {}).get("agentd/zone", "")))


async def _call(
    sockets: Sequence[Path], method: str, params: dict[str, Any], within: float, *, in_words: bool
) -> Any:
    async with connect(sockets) as connection:
        result = await connection.call(method, params, within=within)
        return (await owners_times(connection)).read(result) if in_words else result
