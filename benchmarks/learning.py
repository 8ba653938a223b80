"""What is learnt of a long talk: nothing twice, nothing stale, nothing forgotten, nothing made up.

`python -m benchmarks.learning offline|scripted|compactions` holds one talk and prints what went wrong.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator

from benchmarks.learning_talk.compactions import TIMES, compacted
from benchmarks.learning_talk.evaluation import Outcome, evaluate
from benchmarks.learning_talk.script import Script, script
from benchmarks.row import Row

MODES = {"offline": False, "scripted": True}


def usual() -> Script:
    """The talk at its usual length."""
    return script(conversations=72, plants=450, changes=110, forgets=56, noises=330)


async def rows() -> AsyncIterator[Row]:
    """The lines that have a goal, for both modes."""
    talk = usual()
    yield Row("conversations", [sum(map(len, talk.waves))], "", least=60)
    yield Row("planted facts", [len(talk.plants)], "", least=400)
    yield Row("updates", [talk.changes], "", least=100)
    yield Row("forgotten on request", [sum(bool(p.manner) for p in talk.plants)], "", least=50)
    yield Row("distractors and injected lines", [len(talk.noises)], "", least=300)
    for mode, is_scripted in MODES.items():
        for row in _told(mode, await evaluate(usual(), is_scripted=is_scripted)):
            yield row
    times, planted, missing = await compacted()
    yield Row("compactions of one conversation", [times], "", least=TIMES)
    share = 100 * (1 - len(missing) / len(planted))
    yield Row(f"its {len(planted)} planted facts found afterwards", [share], "%", least=100)


def _told(mode: str, found: Outcome) -> Iterator[Row]:
    yield Row(f"{mode}: duplicates stored", [len(found.twice)], "", below=1)
    yield Row(f"{mode}: superseded values told as current", [len(found.stale)], "", below=1)
    stale = [len(found.stale_hits)]
    yield Row(f"{mode}: superseded before current in memory search", stale, "", below=1)
    yield Row(f"{mode}: either of them, phrases held out", [len(found.unread)], "")
    yield Row(f"{mode}: places of forgotten values", [len(found.kept)], "", below=1)
    yield Row(f"{mode}: wishes to forget not understood", [len(found.not_taken_back)], "", below=1)
    yield Row(f"{mode}: slowest wish to forget", [found.slowest], "s", below=60)
    yield Row(f"{mode}: distractors stored as facts", [len(found.lured)], "", below=1)
    share = found.share(is_unseen=False)
    yield Row(f"{mode}: planted facts retrievable", [100 * share], "%", least=98)
    share = found.share(is_unseen=True)
    yield Row(f"{mode}: the same, phrases held out", [100 * share], "%")
    yield Row(f"{mode}: stored facts that were planted", [100 * found.true / found.facts], "%")
    yield Row(f"{mode}: tokens of extraction", [found.tokens], "")


def explain(found: Outcome) -> Iterator[str]:
    """What went wrong with the usual forms; of those held out only how much."""
    yield from (f"twice: {what}" for what in found.twice)
    yield from (f"stale: {what}" for what in found.stale)
    yield from (f"stale hit: {what}" for what in found.stale_hits)
    yield from (f"kept: {what}" for what in found.kept)
    yield from (f"not forgotten: {what}" for what in found.not_taken_back)
    yield from (f"lured: {what}" for what in found.lured)
    for plant in found.missing:
        if not plant.is_unseen:
            yield f"missing: {plant.question} {plant.value} <- {' / '.join(plant.taught)}"


async def _main(mode: str) -> None:
    if mode == "compactions":
        times, planted, missing = await compacted()
        print(f"{times} compactions, {len(planted) - len(missing)} of {len(planted)} found")
        print("\n".join(f"missing: {plant.question} {plant.value}" for plant in missing))
        return
    found = await evaluate(usual(), is_scripted=MODES[mode])
    for line in explain(found):
        print(line)
    for row in _told(mode, found):
        print(row.as_markdown())


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
