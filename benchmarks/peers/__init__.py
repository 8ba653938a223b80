"""agentd beside other agents, all talking to the same instant model: `make bench ARGS=peers`.

`python -m benchmarks.peers` installs the others, each into an environment of its own below
`.peers/`; one that is not there is named, and left out. They take turns, so that a machine whose
speed changes treats all alike: compare the rows of one run with each other.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from benchmarks.household import folder, model, stop
from benchmarks.peers.agents import KINDS, Agent
from benchmarks.plot import plot
from benchmarks.process import cpu_seconds, memory_mb, tree
from benchmarks.row import Row

_ROUNDS = int(os.environ.get("ROUNDS", "3"))
_TURNS = int(os.environ.get("TURNS", "1000"))  # after which memory is looked at
_WARM = 10  # turns before the processor's time is counted
_COUNTED = 30
_PARALLEL, _EACH = 16, 5
_READY_WITHIN = 60.0
_REST = 3.0  # seconds after the start; what it does at rest is done then


@dataclass(frozen=True, slots=True)
class _Figure:
    """What is measured of each, and agentd's goal."""

    what: str
    unit: str
    below: float | None = None
    least: float | None = None


_START = _Figure("start to ready", "s", below=0.5)
_IDLE = _Figure("memory at rest", "MB", below=66)
_FIRST = _Figure("first turn, asked at once", "s", below=0.6)
_COST = _Figure("CPU per warm turn, 10 to 40 of a session", "ms", below=8)
_MANY = _Figure(f"memory after {_TURNS} turns", "MB", below=125 if _TURNS == 1000 else None)
_PACE = _Figure(f"turns/s, {_PARALLEL} sessions", "/s", least=180)
_END = _Figure("SIGTERM to the end", "s")
_FIGURES = (_START, _FIRST, _IDLE, _COST, _PACE, _MANY, _END)


@dataclass(slots=True)
class _Seen:
    """The samples of one agent."""

    samples: dict[_Figure, list[float]] = field(default_factory=dict)
    memory: list[tuple[float, float]] = field(default_factory=list)  # by turns done

    def add(self, figure: _Figure, value: float) -> None:
        """Add a sample."""
        self.samples.setdefault(figure, []).append(value)


async def rows() -> AsyncIterator[Row]:
    """Each figure of each agent, medians of rounds in turn with each other."""
    there = [kind for kind in KINDS if kind.is_installed()]
    for kind in KINDS:
        if kind not in there:
            yield Row(f"{kind.name}: not installed (`python -m benchmarks.peers`)", [0], "rounds")
    seen = {kind.name: _Seen() for kind in there}
    for number in range(_ROUNDS):
        for kind in there:
            with folder() as home, model() as port:
                await _life(kind(home, port), seen[kind.name], is_last=number == _ROUNDS - 1)
    axes = ("turns", "MB")
    plot("peers", "Memory over turns", axes, {name: found.memory for name, found in seen.items()})
    for figure in _FIGURES:
        for name, found in seen.items():
            goals = (figure.below, figure.least) if name == KINDS[0].name else (None, None)
            yield Row(f"{figure.what}: {name}", found.samples[figure], figure.unit, *goals)


async def _life(agent: Agent, seen: _Seen, *, is_last: bool) -> None:
    """One start with all that is measured in it; the many turns in the last alone."""
    async with _running(agent, seen) as pid:
        begun = time.perf_counter()
        await agent.say("first", "How are you?")
        seen.add(_FIRST, time.perf_counter() - begun)
        await asyncio.sleep(_REST)
        await _talk(agent, "warm", _WARM)
        before = _computed(agent, pid)
        await _talk(agent, "warm", _COUNTED)
        seen.add(_COST, (_computed(agent, pid) - before) * 1000 / _COUNTED)
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(_PARALLEL):
                group.create_task(_talk(agent, f"side{number}", _EACH))
        seen.add(_PACE, _PARALLEL * _EACH / (time.perf_counter() - begun))
        if is_last:
            done = 1 + _WARM + _COUNTED + _PARALLEL * _EACH
            for first in range(done, _TURNS, _WARM):
                seen.memory.append((first, memory_mb(pid, alone=agent.alone)[0]))
                await _talk(agent, f"many{first}", _WARM)
            await asyncio.sleep(_REST)
            seen.add(_MANY, memory_mb(pid, alone=agent.alone)[0])


@asynccontextmanager
async def _running(agent: Agent, seen: _Seen) -> AsyncIterator[int]:
    """The id of its process, from ready to its end. Memory at rest is that of a start of its own,
    before any turn.
    """
    process = agent.launch()
    try:
        await _ready(agent)
        await asyncio.sleep(_REST)
        seen.add(_IDLE, memory_mb(process.pid, alone=agent.alone)[0])
    finally:
        stop(process, within=_READY_WITHIN)
    begun = time.perf_counter()
    process = agent.launch()
    try:
        await _ready(agent)
        seen.add(_START, time.perf_counter() - begun)
        yield process.pid
    finally:
        await agent.close()
        begun = time.perf_counter()
        stop(process, within=_READY_WITHIN)
    seen.add(_END, time.perf_counter() - begun)


async def _ready(agent: Agent) -> None:
    async with asyncio.timeout(_READY_WITHIN):
        while True:
            with suppress(OSError):
                await agent.greet()
                return
            await asyncio.sleep(0.005)


async def _talk(agent: Agent, session: str, turns: int) -> None:
    for number in range(turns):
        await agent.say(session, f"How is number {number} today?")


def _computed(agent: Agent, pid: int) -> float:
    """Seconds of the processor so far."""
    return sum(cpu_seconds(one) for one in ([pid] if agent.alone else tree(pid)))
