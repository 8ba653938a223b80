"""How many bytes every call carries before anybody has said anything, what takes them, and the
bounds.

docs/tools.md says when a bound is worth raising.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from benchmarks.household import daemon, folder, model, newest_body
from benchmarks.row import Row

OF_A_CONVERSATION = 8 * 1024  # bytes of its prompt, without the user's words
OF_A_BEAT = 2 * 1024  # bytes of a light beat's whole prompt
WORDS = "How are you today?"


async def rows() -> AsyncIterator[Row]:
    """A conversation and a light heartbeat in an untouched workspace."""
    with folder() as home, model() as port:
        async with daemon(home, port) as running, running.client() as client:
            await client.say("main", WORDS)
            body = json.loads(newest_body(port))
            size = prompt_bytes(body) - len(WORDS)
            yield Row("fixed prompt of a conversation", [size], "B", below=OF_A_CONVERSATION)
            for name, size in parts(body):
                yield Row(f"of it {name}", [size], "B")
            beat = await client.call("_agentd/heartbeat/run", force=True)
            assert beat["outcome"] != "skipped", beat
            size = prompt_bytes(json.loads(newest_body(port)))
            yield Row("whole prompt of a light heartbeat", [size], "B", below=OF_A_BEAT)


def prompt_bytes(request: dict[str, Any]) -> int:
    """The bytes of the request's system prompt, tools and messages, with their JSON."""
    return sum(_size(request.get(name, [])) for name in ("system", "tools", "messages"))


def parts(request: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Each section of the system prompt, by its first words, and each tool."""
    for section in request["system"]:
        yield f"“{section['text'].splitlines()[0][:40]}”", _size(section)
    for tool in request["tools"]:
        yield f"the tool {tool['name']}", _size(tool)


def _size(part: Any) -> int:
    return len(json.dumps(part, ensure_ascii=False).encode())
