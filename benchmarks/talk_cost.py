"""What a talk costs in which facts change: how much of its prompts the service's cache can give.

Fifty turns, before eight of which the user has a fact kept. A cache holds the beginnings of former
requests up to their breakpoints; what of a request is such a beginning is not billed anew.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.conversations.conversation import Conversation
from benchmarks.conversations.invented import contacts
from benchmarks.conversations.model import Answer, Model
from benchmarks.conversations.player import SETTINGS
from benchmarks.conversations.service import served
from benchmarks.household import daemon, folder
from benchmarks.invented import Inventor
from benchmarks.row import Row

TURNS = 50
CHANGES = 8
KNOWN = 25  # facts that are known before
_CHARS = 4  # of a token, about

Json = dict[str, Any]


async def rows() -> AsyncIterator[Row]:
    """With changes, and the same talk without any."""
    for changes in (0, CHANGES):
        billed = await _talk(changes)
        what = f"a talk of {TURNS} turns with {changes} changed facts"
        yield Row(f"{what}: tokens of its prompts", [sum(billed.sizes) / _CHARS], "tokens")
        yield Row(f"{what}: not from the cache", [sum(billed.anew) / _CHARS], "tokens")
        share = 1 - sum(billed.anew) / sum(billed.sizes)
        yield Row(f"{what}: share from the cache", [share], "share")


@dataclass(slots=True)
class Billed:
    """Characters of the requests of a talk, and how many of each stood in no former one."""

    sizes: list[int] = field(default_factory=list)
    anew: list[int] = field(default_factory=list)
    _held: set[int] = field(default_factory=set)  # beginnings that the cache has

    def take(self, body: Json) -> None:
        """Count a request, and let the cache hold its beginnings."""
        size = cached = 0
        beginning = hash(body["model"])
        for block in _blocks(body):
            is_breakpoint = block.pop("cache_control", None) is not None
            text = json.dumps(block, ensure_ascii=False)
            size += len(text)
            beginning = hash((beginning, text))
            if beginning in self._held:
                cached = size
            elif is_breakpoint:
                self._held.add(beginning)
        self.sizes.append(size)
        self.anew.append(size - cached)


async def _talk(changes: int) -> Billed:
    billed = Billed()
    model = Model(Conversation("nobody", ()))
    several = contacts(KNOWN + changes)

    def answer(body: Json) -> Answer:
        if body.get("tools"):
            billed.take(json.loads(json.dumps(body)))
        return model.answer(body)

    with folder() as root:
        async with (
            served(answer) as port,
            daemon(root / "home", port, settings=SETTINGS) as running,
            running.client() as client,
        ):
            for one in several[:KNOWN]:
                await client.call("_agentd/facts/add", text=one.text)
            session = await client.new_session()
            for number, words in enumerate(Inventor().texts(TURNS)):
                due, _ = divmod((number + 1) * changes, TURNS)
                if changes and due > number * changes // TURNS:
                    await client.say(session, f"/remember {several[KNOWN + due - 1].text}")
                await client.say(session, words)
    return billed


def _blocks(body: Json) -> Iterator[Json]:
    yield from body["tools"]
    yield from body["system"]
    for message in body["messages"]:
        content = message["content"]
        yield from [{"text": content}] if isinstance(content, str) else content
