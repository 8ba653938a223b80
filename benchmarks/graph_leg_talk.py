"""What the graph as a leg does to the facts of a long talk: a daemon hears it once, and is asked twice.

`python -m benchmarks.graph_leg_talk` prints the figures without the leg and with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, quantiles

from benchmarks.fact_questions import UNRELATED
from benchmarks.household import Daemon, first_answer, folder, launch, stop
from benchmarks.learning_talk.evaluation import OFFLINE, is_stale, says, unread
from benchmarks.learning_talk.script import Plant, Script, script
from benchmarks.row import Row

FIRST = 5
TOKENS = 1_000

_SETTINGS = '[agent]\ntimezone = "UTC"\n[facts]\nidle = "1s"\n[heartbeat]\nenabled = false\n'
_LEG = "[memory_search]\ngraph = {on}\n"
_PATIENCE = 300.0
_DEPTH = 60


@dataclass(slots=True)
class Asked:
    """What the questions brought; shares as 0 or 1 for each."""

    listed: list[float] = field(default_factory=list)  # among the first facts
    first: list[float] = field(default_factory=list)  # among the first hits of memory
    within: list[float] = field(default_factory=list)  # within so many tokens of it
    current: list[float] = field(default_factory=list)  # above what was outdated
    hits: list[list[str]] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)  # milliseconds
    idle: list[float] = field(default_factory=list)  # of texts that name nothing known


async def rows() -> AsyncIterator[Row]:
    """What is found without the leg, and what it gains."""
    off, on = await both(script(conversations=24, plants=200, changes=50, forgets=0, noises=80))
    what = "graph as a leg, facts of a talk"
    for name in ("listed", "first", "within", "current"):
        before, after = getattr(off, name), getattr(on, name)
        label = {
            "listed": f"found among {FIRST} facts",
            "first": f"found among {FIRST} hits",
            "within": f"found in {TOKENS:,} tokens",
            "current": "current before superseded",
        }[name]
        yield Row(f"{what}: {label}, without it", [100 * fmean(before)], "%")
        yield Row(f"{what}: the same, gained", [100 * (fmean(after) - fmean(before))], "points")
    changed = fmean(one != other for one, other in zip(off.hits, on.hits, strict=True))
    yield Row(f"{what}: questions whose hits change", [100 * changed], "%")
    for label, before, after in (
        ("a question", off.taken, on.taken),
        ("a text that names nothing known", off.idle, on.idle),
    ):
        for name, cut in (("p50", 9), ("p95", 18)):
            more = quantiles(after, n=20)[cut] - quantiles(before, n=20)[cut]
            yield Row(f"{what}: {label}, more", [more], f"ms at {name}")


async def both(talk: Script) -> tuple[Asked, Asked]:
    """The talk is held, and its facts are asked for without the leg and with it."""
    with folder() as root:
        home = root / "home"
        async with _daemon(home, on=False) as running:
            await _hold(running, talk)
        async with _daemon(home, on=False) as running:
            off = await _ask(running, talk)
        async with _daemon(home, on=True) as running:
            on = await _ask(running, talk)
    return off, on


@asynccontextmanager
async def _daemon(home: Path, *, on: bool) -> AsyncIterator[Daemon]:
    config = OFFLINE + _SETTINGS + _LEG.format(on=str(on).lower())
    running = Daemon(launch(home, config), home)
    try:
        await first_answer(running)
        yield running
    finally:
        stop(running.process)


async def _hold(running: Daemon, talk: Script) -> None:
    """Say everything, and return when it has been read for facts."""
    async with running.client() as client:
        for wave in talk.waves:
            for session, turns in wave.items():
                meta = {"agentd/key": session}
                await client.call("session/new", cwd="/", mcpServers=[], _meta=meta)
                for turn in turns:
                    await client.say(session, turn.text)
            await _rest(running.home)
        await client.call("_agentd/memory/index")


async def _rest(home: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while waiting := unread(home):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not read for facts: {waiting}")
        await asyncio.sleep(0.2)


async def _ask(running: Daemon, talk: Script) -> Asked:
    found = Asked()
    async with running.client() as client:

        async def hits(text: str, **more: int) -> list[str]:
            answer = await client.call("_agentd/memory/search", query=text, **more)
            return [hit["text"] for hit in answer["results"]]

        for text in UNRELATED:  # everything is loaded then
            await hits(text)
        for plant in talk.plants:
            facts = await client.call("_agentd/facts/list", query=plant.question, limit=FIRST)
            found.listed.append(_any([fact["text"] for fact in facts["facts"]], plant.value))
            begun = time.perf_counter()
            texts = await hits(plant.question, limit=10)
            found.taken.append(1000 * (time.perf_counter() - begun))
            found.hits.append(texts)
            found.first.append(_any(texts[:FIRST], plant.value))
            within = await hits(plant.question, limit=_DEPTH, max_tokens=TOKENS)
            found.within.append(_any(within, plant.value))
            if len(plant.values) > 1:
                found.current.append(_is_current(texts, plant))
        for text in UNRELATED * 2:
            begun = time.perf_counter()
            await hits(text, limit=10)
            found.idle.append(1000 * (time.perf_counter() - begun))
    return found


def _any(texts: Sequence[str], value: str) -> float:
    return float(any(says(text, value) for text in texts))


def _is_current(texts: Sequence[str], plant: Plant) -> float:
    """Whether no hit that tells an old value stands before the first that tells the one that holds."""
    for text in texts:
        if says(text, plant.value):
            return 1.0
        if is_stale(text, plant):
            return 0.0
    return 1.0


async def _main() -> None:
    async for row in rows():
        print(row.as_markdown())


if __name__ == "__main__":
    asyncio.run(_main())
