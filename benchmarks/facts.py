"""How quickly and how surely facts are found for a turn.

`python -m benchmarks.facts` prints one process's figures as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from time import perf_counter

from agentd.core.clock import SystemClock
from agentd.core.fact import Category, Fact, FactSource
from agentd.core.ports import Embedder
from agentd.core.turn import MAIN, TurnRequest
from agentd.memory.facts.fact_settings import FactsSettings
from agentd.memory.facts.facts_in_prompt import FactsInPrompt
from agentd.memory.index.embedding.lazy_static import packaged_static
from agentd.memory.index.embedding.static import load
from agentd.memory.index.search.fact_search import SLICE
from agentd.memory.index.search.facts_in_memory import FactMirror
from agentd.memory.index.search.patient_embedder import to_float16
from benchmarks import embedder, fact_questions
from benchmarks.fact_chains import Held, found_in
from benchmarks.invented import Inventor
from benchmarks.row import Row

USUAL = 1_000
MANY = 100_000
QUESTIONS = 200
WARM_UP = 20
NOW = datetime(2026, 11, 22, tzinfo=UTC)
_NEVER_ALL = FactsSettings(prompt_tokens=0)

Figures = dict[str, float]


async def rows() -> AsyncIterator[Row]:
    """The lines that have a goal."""
    own = await _in_a_process()
    yield Row(
        f"find among {USUAL:,} facts, embedding included", [own["usual"]], "ms at p95", below=15
    )
    yield Row(f"find among {MANY:,} facts, without embedding", [own["many"]], "ms at p95", below=30)
    yield Row("the same by words alone", [own["many by words"]], "ms at p95", below=30)
    yield Row(f"memory of {MANY:,} facts with vectors", [own["held"]], "MB")
    for what, key, below in (
        ("questions that are told the fact that answers them", "told", None),
        ("messages about nothing known that are told any", "untrue", 0.1),
    ):
        yield Row(what, [own[key]], "share", below=below)
        yield Row(
            "the same, by the word table", [own[f"{key} by the word table"]], "share", below=below
        )
        yield Row("the same, without an embedder", [own[f"{key} by words"]], "share", below=below)


async def measure() -> Figures:
    """All figures."""
    async with embedder.opened() as best:
        embedders = [best] if best else []
        with_vectors = await _judged(embedders)
        usual = await _usual(embedders)
    by_table = await _judged([packaged_static()])
    words_alone = await _judged([])
    return {
        "usual": usual,
        **await _many(),
        "told": with_vectors[0],
        "untrue": with_vectors[1],
        "told by the word table": by_table[0],
        "untrue by the word table": by_table[1],
        "told by words": words_alone[0],
        "untrue by words": words_alone[1],
    }


async def _judged(embedders: Sequence[Embedder]) -> tuple[float, float]:
    """The share of questions whose fact is told, and of other messages that are told any."""
    facts = tuple(_fact(at, text) for at, text in enumerate(fact_questions.facts()))
    async with found_in(facts, embedders) as index:
        relevant = FactsInPrompt(Held(facts), index, SystemClock(), "", _NEVER_ALL)

        async def told(text: str) -> str:
            blocks = await relevant.blocks(TurnRequest(MAIN, text, "bench"))
            return "".join(block.text for block in blocks)

        right = [fact in await told(asked) for asked, fact in fact_questions.ANSWERS.items()]
        wrong = [bool(await told(text)) for text in fact_questions.UNRELATED]
    return sum(right) / len(right), sum(wrong) / len(wrong)


async def _usual(embedders: Sequence[Embedder]) -> float:
    """Milliseconds at p95 of a search as a turn makes it."""
    inventor = Inventor()
    facts = tuple(_fact(at, text) for at, text in enumerate(inventor.texts(USUAL)))
    taken = []
    async with found_in(facts, embedders) as index:
        for text in inventor.questions(WARM_UP + QUESTIONS):
            begun = perf_counter()
            await index.find(text, 20)
            taken.append(1000 * (perf_counter() - begun))
    return quantiles(taken[WARM_UP:], n=20)[-1]


async def _many() -> Figures:
    """Searches whose vectors are known, with and without them, and what all of it holds."""
    embedder, inventor = load(), Inventor()
    questions = inventor.questions(WARM_UP + QUESTIONS)
    asked = await embedder.embed(questions, query=True)
    before = _resident()
    mirror = FactMirror(0.35, 50)
    for start in range(0, MANY, SLICE):
        facts = [_fact(start + at, text) for at, text in enumerate(inventor.texts(SLICE))]
        vectors = to_float16(await embedder.embed([fact.text for fact in facts]))
        mirror.put(facts)
        mirror.put_vectors(embedder.model, {f.id: v for f, v in zip(facts, vectors, strict=True)})
    held = (_resident() - before) / 1e6
    meant, heard = [], []
    for text, vector in zip(questions, asked, strict=True):
        begun = perf_counter()
        mirror.find([text], [vector], embedder.model, NOW)
        middle = perf_counter()
        mirror.find([text], None, "", NOW)
        meant.append(1000 * (middle - begun))
        heard.append(1000 * (perf_counter() - middle))
    return {
        "many": quantiles(meant[WARM_UP:], n=20)[-1],
        "many by words": quantiles(heard[WARM_UP:], n=20)[-1],
        "held": held,
    }


def _fact(at: int, text: str) -> Fact:
    return Fact(f"{at:08x}", text, Category.PERSONAL, FactSource.EXTRACTED, 0.6, NOW, NOW)


def _resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _in_a_process() -> Figures:
    """Measure in a process of its own, on one core as in the daemon."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.facts",
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    figures: Figures = json.loads(out.splitlines()[-1])  # before it stands the log
    return figures


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
