"""Whether questions over two or three of 1,000 facts find all of them in the prompt, and what
beside.

The figures to go by are those of the lives that the choice was not tuned on. `python -m
benchmarks.fact_chains` prints every chain that is not whole, with what its question was told.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from statistics import mean, quantiles
from time import perf_counter

from msgspec import Struct

from agentd.core.clock import SystemClock
from agentd.core.fact import Fact, FactWrite
from agentd.core.ports import Embedder
from agentd.core.turn import MAIN, TurnRequest
from agentd.engine import tokens
from agentd.memory.facts.fact_settings import FactsSettings
from agentd.memory.facts.facts_in_prompt import FactsInPrompt
from agentd.memory.index.search.fact_search import LiveFacts
from agentd.memory.index.search.patient_embedder import patient
from agentd.storage.fact_store import SqliteFacts
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from benchmarks import embedder
from benchmarks.fact_lives import FACTS, LIVES, Chain, Life
from benchmarks.household import folder
from benchmarks.row import Row

MANY = 10_000
NOISE = 300  # tokens beside a chain that it may cost
TURNS = 100
_LIMITS = ((FACTS, 15), (MANY, 40))  # numbers of facts, and milliseconds
NEVER_ALL = FactsSettings(prompt_tokens=0)


class Held:
    """Facts that do not change."""

    def __init__(self, facts: tuple[Fact, ...]) -> None:
        self._facts = facts

    async def all(self) -> tuple[Fact, ...]:
        """All of them."""
        return self._facts


@asynccontextmanager
async def found_in(
    facts: tuple[Fact, ...], embedders: Sequence[Embedder]
) -> AsyncIterator[LiveFacts]:
    """An index of these facts that has embedded all of them."""
    with folder() as root:
        async with Database.open(root / "state.db", STATE) as db:
            store, clock = SqliteFacts(db), SystemClock()
            await store.write(FactWrite(facts))
            async with LiveFacts.open(
                store, patient(embedders, clock), clock, patience=30.0
            ) as index:
                await index.settle()
                yield index


class Told(Struct, frozen=True):
    """What a chain's question was told: whether all of it, and how many tokens of anything else."""

    chain: Chain
    is_complete: bool
    noise: int
    lines: Sequence[str]

    @property
    def is_good(self) -> bool:
        """Whether it is complete without too much else."""
        return self.is_complete and self.noise <= NOISE


async def rows() -> AsyncIterator[Row]:
    """The lines of the table."""
    async with embedder.opened() as best:
        embedders = [best] if best else []
        found = [told for style in LIVES for told in await told_of(Life(style), embedders)]
        times = [(size, most, await turn(size, embedders)) for size, most in _LIMITS]
    for length in (2, 3):
        own = [one for one in found if len(one.chain.sentences) == length]
        unseen = [one.is_good for one in own if not one.chain.is_seen]
        seen = [one.is_good for one in own if one.chain.is_seen]
        what = f"chains of {length} facts whole in the prompt"
        yield Row(f"{what}, unseen", [mean(unseen)], f"of {len(unseen)}", least=0.9)
        yield Row(f"{what}, tuned on", [mean(seen)], f"of {len(seen)}")
    yield Row("tokens beside a chain", [one.noise for one in found], "tokens", below=NOISE)
    for size, most, taken in times:
        yield Row(f"a turn's time with {size:,} facts", [taken], "ms at p95", below=most)


async def told_of(life: Life, embedders: Sequence[Embedder]) -> list[Told]:
    """What each chain's question is told."""
    async with found_in(life.facts, embedders) as index:
        source = FactsInPrompt(Held(life.facts), index, SystemClock(), "", NEVER_ALL)
        return [await _told(source, chain) for chain in life.chains]


async def _told(source: FactsInPrompt, chain: Chain) -> Told:
    blocks = await source.blocks(TurnRequest(MAIN, chain.question, "bench"))
    lines = [line for block in blocks for line in block.text.split("\n") if line[:3] == "- ["]
    other = [line for line in lines if not line.endswith(chain.sentences)]
    is_complete = len(lines) - len(other) == len(chain.sentences)
    return Told(chain, is_complete, tokens.of_text("\n".join(other)), lines)


async def turn(size: int, embedders: Sequence[Embedder]) -> float:
    """Milliseconds at p95 that a turn takes longer, embedding included."""
    life, taken = Life("nouns", size), []
    async with found_in(life.facts, embedders) as index:
        source = FactsInPrompt(Held(life.facts), index, SystemClock(), "", NEVER_ALL)
        questions = [chain.question for chain in life.chains]
        for number in range(TURNS):
            asked = f"{questions[number % len(questions)]} ({number})"
            begun = perf_counter()
            await source.blocks(TurnRequest(MAIN, asked, "bench"))
            taken.append(1000 * (perf_counter() - begun))
    return quantiles(taken[len(questions) :], n=20)[-1]


async def _all() -> None:
    async with embedder.opened() as best:
        for style in LIVES:
            for told in await told_of(Life(style), [best] if best else []):
                if not told.is_good or "-v" in sys.argv:
                    kind = "seen" if told.chain.is_seen else "unseen"
                    print(told.is_complete, told.noise, style, kind, told.chain.question)
                    print(*told.lines, sep="\n")
    async for row in rows():
        print(row.as_markdown())


if __name__ == "__main__":
    asyncio.run(_all())
