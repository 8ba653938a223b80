"""`python -m benchmarks [NAME…]`: measure, and print one table. Exits 1 if a goal was missed."""

from __future__ import annotations

import asyncio
import sys

from benchmarks import (
    appends,
    contexts,
    ending,
    engines,
    fact_chains,
    facts,
    first_search,
    forgetting,
    graph_chains,
    graph_derive,
    graph_recall,
    graph_tokens,
    growth,
    idle,
    indexing,
    install,
    learning,
    long_lives,
    machine,
    outside,
    peers,
    prompts,
    rewordings,
    scale,
    screening,
    search_quality,
    stalls,
    start,
    talk_cost,
    turns,
    watched_mail,
)

_ALL = {
    "start": start.rows,
    "turns": turns.rows,
    "appends": appends.rows,
    "contexts": contexts.rows,
    "prompts": prompts.rows,
    "idle": idle.rows,
    "ending": ending.rows,
    "install": install.rows,
    "indexing": indexing.rows,
    "search_quality": search_quality.rows,
    "rewordings": rewordings.rows,
    "scale": scale.rows,
    "first_search": first_search.rows,
    "long_lives": long_lives.rows,
    "screening": screening.rows,
    "facts": facts.rows,
    "fact_chains": fact_chains.rows,
    "learning": learning.rows,
    "forgetting": forgetting.rows,
    "stalls": stalls.rows,
    "talk_cost": talk_cost.rows,
    "graph_recall": graph_recall.rows,
    "graph_derive": graph_derive.rows,
    "graph_chains": graph_chains.rows,
    "graph_tokens": graph_tokens.rows,
    "outside": outside.rows,
    "engines": engines.rows,
    "growth": growth.rows,
    "watched_mail": watched_mail.rows,
    "peers": peers.rows,
}


async def main(names: list[str]) -> int:
    """Measure these, or all of them; the exit code."""
    print(machine.facts(), end="\n\n")
    print("| what | measured (median) | goal | verdict |\n|---|---|---|---|", flush=True)
    missed = 0
    for name in names or _ALL:
        async for row in _ALL[name]():
            line = row.as_markdown()
            missed += "MISSED" in line
            print(line, flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - _ALL.keys()
    if unknown:
        sys.exit(f"known are {', '.join(_ALL)}")
    sys.exit(asyncio.run(main(sys.argv[1:])))
