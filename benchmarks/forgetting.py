"""Two hundred facts forgotten one by one: what is left of them, and what else was touched.

Each fact names a person and a firm; other messages and lines of the owner's notes name the same
ones and say something else. The model that marks what to erase is scripted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from statistics import quantiles
from time import perf_counter

from benchmarks.conversations.conversation import Conversation
from benchmarks.conversations.invented import Contact, contacts, told
from benchmarks.conversations.player import Stage, holding, perform, staged
from benchmarks.row import Row

FORGOTTEN = 200
KEPT = 200
_SOON = 60.0  # seconds in which a forgotten word is to be gone
_NOTES = 20  # files over which the lines of the owner are spread


async def rows() -> AsyncIterator[Row]:
    """The lines that have a goal."""
    every = contacts(FORGOTTEN + KEPT)
    going, staying = every[:FORGOTTEN], every[FORGOTTEN:]
    conversation = told(every)
    async with staged(conversation) as stage:
        _take_notes(stage.home, every)
        await perform(stage, conversation)
        ids = {fact["text"]: fact["id"] for fact in await stage.known()}
        taken = []
        for one in going:
            begun = perf_counter()
            await stage.client.call("_agentd/facts/forget", query=ids[one.text])
            taken.append(perf_counter() - begun)
        await _settle(stage.home, going)
        left = holding(stage.home, _sentences(going))
        touched = await _touched(stage, conversation, every)
        known = {fact["text"] for fact in await stage.known() if fact["status"] == "active"}
    lost = [one for one in staying if one.text not in known]
    yield Row(f"places that still say one of {FORGOTTEN} forgotten facts", [len(left)], "", below=1)
    yield Row("unrelated messages and lines that were touched", [len(touched)], "", below=1)
    yield Row(f"of {KEPT} other facts lost", [len(lost)], "", below=1)
    yield Row("forgetting one fact", [1000 * quantiles(taken, n=20)[-1]], "ms at p95")


def _take_notes(home: Path, every: Sequence[Contact]) -> None:
    """Lines of the owner's own that mention each person."""
    for number in range(_NOTES):
        lines = [f"- lunch with {one.name} about the parking" for one in every[number::_NOTES]]
        note = home / "workspace" / "memory" / f"2026-05-{number + 1:02}.md"
        note.write_text("\n".join(lines) + "\n", "utf-8")


async def _settle(home: Path, going: Iterable[Contact]) -> None:
    deadline = perf_counter() + _SOON
    while holding(home, _sentences(going)) and perf_counter() < deadline:
        await asyncio.sleep(0.5)


async def _touched(stage: Stage, conversation: Conversation, every: Sequence[Contact]) -> list[str]:
    """Messages and lines that stand nowhere any more as they were."""
    said: set[str] = set()
    for number in range(len(conversation.sessions)):
        key = f"chat:{conversation.name}-{number}"
        rows = (await stage.client.call("_agentd/sessions/export", key=key))["lines"]
        said |= {"".join(b.get("text", "") for b in row["content"]) for row in rows}
    for note in (stage.home / "workspace" / "memory").glob("2026-05-*.md"):
        said |= set(note.read_text("utf-8").splitlines())
    wanted = [text for one in every for text in (one.mention, one.other_mention)]
    wanted += [f"- lunch with {one.name} about the parking" for one in every]
    return [text for text in wanted if text not in said]


def _sentences(several: Iterable[Contact]) -> list[str]:
    return [one.text.rstrip(".") for one in several]
