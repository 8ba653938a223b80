"""What a turn costs that adds a line to today's note, by the size of the note."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.household import Daemon, daemon, folder, model
from benchmarks.instant_model import NOTING
from benchmarks.process import cpu_seconds
from benchmarks.row import Row

LINES = 10_000  # of the long note
_SETTINGS = """[agent]
timezone = "UTC"
[facts]
enabled = false
[memory_search]
provider = "static"
[workspace]
inject_daily = {shown}
"""
_WARM_UP = 10
_TURNS = 20
_ROUNDS = 5


async def rows() -> AsyncIterator[Row]:
    """Notes that prompts do not show, and those that they do, of which a long one fills its share
    there.
    """
    for shown in (False, True):
        async for row in _compared("shown in prompts" if shown else "not shown", shown=shown):
            yield row


async def _compared(what: str, *, shown: bool) -> AsyncIterator[Row]:
    """Notes of no lines and of many, appended to in turn: what else the machine does falls on
    both.
    """
    settings = _SETTINGS.format(shown=str(shown).lower())
    async with AsyncExitStack() as stack:
        port = stack.enter_context(model())
        costs: dict[int, list[float]] = {0: [], LINES: []}
        homes = {lines: stack.enter_context(folder()) for lines in costs}
        for lines, home in homes.items():
            _write_note(home, lines)
        running = {
            lines: await stack.enter_async_context(daemon(home, port, NOTING, settings))
            for lines, home in homes.items()
        }
        for one in running.values():
            await _cost(one, _WARM_UP)
        for _ in range(_ROUNDS):
            for lines, one in running.items():
                costs[lines].append(await _cost(one, _TURNS))
        for lines, taken in costs.items():
            yield Row(f"CPU per turn that adds to a note of {lines:,} lines, {what}", taken, "ms")
        ratios = [long / short for short, long in zip(costs[0], costs[LINES], strict=True)]
        yield Row(f"the long note's to the short one's, {what}", ratios, "", below=1.1)


def _write_note(home: Path, lines: int) -> None:
    note = home / "workspace" / "memory" / f"{datetime.now().astimezone(UTC).date()}.md"
    note.parent.mkdir(parents=True)
    if lines:
        words = (f"- [09:00] Note {number} of the day.\n" for number in range(lines))
        note.write_text("".join(words))


async def _cost(running: Daemon, turns: int) -> float:
    before = cpu_seconds(running.pid)
    async with running.client(allows=True) as client:
        session = await client.new_session()
        for number in range(turns):
            await client.say(session, f"How is number {number} today?")
    await running.settled()
    return (cpu_seconds(running.pid) - before) * 1000 / turns
