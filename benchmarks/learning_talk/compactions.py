"""One conversation in a small window: what is found of it after it was compacted again and again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from benchmarks.household import Client, Daemon, first_answer, folder, launch, stop
from benchmarks.learning_talk.evaluation import OFFLINE
from benchmarks.learning_talk.script import Plant, Turn, script

SESSION = "chat:long"
TIMES = 50

_WINDOW = "context_window = 8000\n[compaction]\nbackground = false\n"
_SETTINGS = '[agent]\ntimezone = "UTC"\n[heartbeat]\nenabled = false\n'
_PER_ROUND = 4  # messages between two compactions
_FILLER = (
    "The weather stays as it was, the train was late again, and lunch was soup once more. " * 4
)
_HITS = 10


async def compacted() -> tuple[int, list[Plant], list[Plant]]:
    """How often the conversation was compacted, what was planted, and what of it was not found."""
    talk = script(conversations=4, plants=TIMES * 2, changes=0, forgets=0, noises=TIMES)
    plants = [plant for plant in talk.plants if not plant.is_unseen]
    turns = [turn for wave in talk.waves for told in wave.values() for turn in told]
    Random(5).shuffle(turns)
    with folder() as root:
        async with _daemon(root / "home") as running, running.client() as client:
            times = await _hold(client, turns)
            await client.call("_agentd/memory/index")
            return times, plants, [plant for plant in plants if not await _is_found(client, plant)]


@asynccontextmanager
async def _daemon(home: Path) -> AsyncIterator[Daemon]:
    running = Daemon(launch(home, OFFLINE + _WINDOW + _SETTINGS), home)
    try:
        await first_answer(running)
        yield running
    finally:
        stop(running.process)


async def _hold(client: Client, turns: list[Turn]) -> int:
    """Say it all, a compaction after every few messages; how many there were."""
    await client.call("session/new", cwd="/", mcpServers=[], _meta={"agentd/key": SESSION})
    times = at = 0
    while times < TIMES or at < len(turns):
        for turn in turns[at : at + _PER_ROUND]:
            await client.say(SESSION, turn.text)
        at += _PER_ROUND
        await client.say(SESSION, _FILLER)
        done = await client.call("_agentd/sessions/compact", key=SESSION)
        times += bool(done["compacted"])
        if at > 20 * TIMES:
            break
    return times


async def _is_found(client: Client, plant: Plant) -> bool:
    found = await client.call("_agentd/memory/search", query=plant.question, limit=_HITS)
    return any(plant.value.lower() in hit["text"].lower() for hit in found["results"])
