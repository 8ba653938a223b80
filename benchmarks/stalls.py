"""The longest time for which the daemon answers nobody, and what many facts cost a turn.

A second client, in a process of its own, asks every few milliseconds for something that needs no
work; the longest that it waits is the longest stall of the event loop, with what the machine adds:
the same of an idle daemon stands beside it.
"""

from __future__ import annotations

import asyncio
import json
import select
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from statistics import quantiles
from time import perf_counter

from benchmarks.conversations.conversation import Conversation, Turn
from benchmarks.conversations.invented import contacts
from benchmarks.conversations.player import SETTINGS, Played, Stage, staged
from benchmarks.invented import Inventor
from benchmarks.row import Row

MANY = 10_000
LONG = 450_000  # characters of a message
TURNS = 150
WARM_UP = 20
_EVERY = 0.005  # seconds between two questions
_IDLE = 3.0  # seconds in which an idle daemon is asked
_LIMITS = {1_000: 15, MANY: 40}  # milliseconds that a turn may take longer, by number of facts
_UNREAD = SETTINGS.replace('"1s"', '"1h"')  # nothing is read meanwhile
_NOBODY = Conversation("nobody", ())


async def rows() -> AsyncIterator[Row]:
    """The lines that have a goal."""
    async with staged(_NOBODY) as stage:
        yield Row("longest wait of an idle daemon's client", [await _longest(stage, _rest)], "ms")
        for what, work in (
            (f"{MANY:,} lines of facts are read", _read_page),
            (f"one of {MANY:,} facts is forgotten", _forget_one),
            (f"a message of {LONG // 1000} kB is answered and read", _say_long),
        ):
            waited = await _longest(stage, work)
            yield Row(f"longest wait while {what}", [waited], "ms", below=100)
    without, *several = [quantiles(taken, n=20)[-1] for taken in await _turns((0, *_LIMITS))]
    yield Row("a turn without facts", [without], "ms at p95")
    for (count, limit), taken in zip(_LIMITS.items(), several, strict=True):
        longer = taken - without
        yield Row(f"a turn with {count:,} facts takes longer", [longer], "ms at p95", below=limit)


async def _longest(stage: Stage, work: Callable[[Stage], Awaitable[None]]) -> float:
    """Milliseconds that a client waited at most while the work was done."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.stalls", str(stage.home / "agentd.sock"),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdout.readline()  # it asks
    await work(stage)
    process.stdin.close()
    return float(await process.stdout.readline())


def _ask(address: str) -> float:
    """The longest wait in milliseconds, asked for until standard input ends."""
    frame = {"jsonrpc": "2.0", "id": 1, "method": "_agentd/nothing", "params": {}}
    line = json.dumps(frame).encode() + b"\n"
    longest = 0.0
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(address)
        answers = client.makefile("rb")
        print("asking", flush=True)
        while not select.select([sys.stdin], [], [], _EVERY)[0]:
            begun = perf_counter()
            client.sendall(line)
            while b'"id"' not in answers.readline():
                pass  # a notification
            longest = max(longest, perf_counter() - begun)
    return 1000 * longest


async def _rest(_: Stage) -> None:
    await asyncio.sleep(_IDLE)


async def _read_page(stage: Stage) -> None:
    await stage.write_facts([one.text for one in contacts(MANY)])


async def _forget_one(stage: Stage) -> None:
    found = await stage.client.call("_agentd/facts/list", limit=1)
    await stage.client.call("_agentd/facts/forget", query=found["facts"][0]["id"])


async def _say_long(stage: Stage) -> None:
    await stage.client.call(
        "session/new", cwd="/", mcpServers=[], _meta={"agentd/key": "chat:long"}
    )
    words = " ".join(Inventor().texts(LONG // 150))[:LONG]
    await stage.say("chat:long", Turn(words), Played(_NOBODY))
    await stage.rest()


async def _turns(counts: Sequence[int]) -> Sequence[Sequence[float]]:
    """Milliseconds of turns with so many facts each. Every question is put to all of the daemons in
    turn: what else the machine does then falls on all alike.
    """
    async with AsyncExitStack() as stack:
        stages = [
            await stack.enter_async_context(staged(_NOBODY, settings=_UNREAD)) for _ in counts
        ]
        sessions = []
        for stage, count in zip(stages, counts, strict=True):
            await stage.write_facts(_facts(count))
            await stage.client.call("_agentd/memory/index")
            sessions.append(await stage.client.new_session())
        taken: list[list[float]] = [[] for _ in counts]
        for text in Inventor().questions(WARM_UP + TURNS):
            for stage, session, times in zip(stages, sessions, taken, strict=True):
                begun = perf_counter()
                await stage.client.say(session, text)
                times.append(1000 * (perf_counter() - begun))
    return [times[WARM_UP:] for times in taken]


def _facts(count: int) -> list[str]:
    return [" ".join(text.split()[:12]) for text in Inventor(seed=2).texts(count)]


if __name__ == "__main__":
    print(_ask(sys.argv[1]), flush=True)
