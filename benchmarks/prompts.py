"""How many bytes every call carries before anybody has said anything."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from benchmarks.household import daemon, folder, model, newest_body
from benchmarks.row import Row

_WORDS = "How are you today?"


async def rows() -> AsyncIterator[Row]:
    """A conversation and a light heartbeat in an untouched workspace."""
    with folder() as home, model() as port:
        async with daemon(home, port) as running, running.client() as client:
            await client.say("main", _WORDS)
            size = _bytes(newest_body(port)) - len(_WORDS)
            yield Row("fixed prompt of a conversation", [size], "B", below=8 * 1024)
            beat = await client.call("_agentd/heartbeat/run", force=True)
            assert beat["outcome"] != "skipped", beat
            size = _bytes(newest_body(port))
            yield Row("whole prompt of a light heartbeat", [size], "B", below=2 * 1024)


def _bytes(body: bytes) -> int:
    """Of system, tools and messages, with their JSON."""
    request = json.loads(body)
    parts = [request.get(name, []) for name in ("system", "tools", "messages")]
    return sum(len(json.dumps(part, ensure_ascii=False).encode()) for part in parts)
