"""How many bytes every call carries before anybody has said anything, and what takes them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from benchmarks.household import daemon, folder, model, newest_body
from benchmarks.row import Row

_WORDS = "How are you today?"


async def rows() -> AsyncIterator[Row]:
    """A conversation and a light heartbeat in an untouched workspace."""
    with folder() as home, model() as port:
        async with daemon(home, port) as running, running.client() as client:
            await client.say("main", _WORDS)
            body = newest_body(port)
            size = _bytes(body) - len(_WORDS)
            yield Row("fixed prompt of a conversation", [size], "B", below=8 * 1024)
            for name, size in _parts(json.loads(body)):
                yield Row(f"of it {name}", [size], "B")
            beat = await client.call("_agentd/heartbeat/run", force=True)
            assert beat["outcome"] != "skipped", beat
            size = _bytes(newest_body(port))
            yield Row("whole prompt of a light heartbeat", [size], "B", below=2 * 1024)


def _bytes(body: bytes) -> int:
    """Of system, tools and messages, with their JSON."""
    request = json.loads(body)
    return sum(_size(request.get(name, [])) for name in ("system", "tools", "messages"))


def _parts(request: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Each section of the system prompt, by its first words, and each tool."""
    for section in request["system"]:
        yield f"“{section['text'].splitlines()[0][:40]}”", _size(section)
    for tool in request["tools"]:
        yield f"the tool {tool['name']}", _size(tool)


def _size(part: Any) -> int:
    return len(json.dumps(part, ensure_ascii=False).encode())
