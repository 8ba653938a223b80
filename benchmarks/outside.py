"""Search as a client sees it, on an outside benchmark: `MEMBENCH=DIR python -m benchmarks outside`.

The folder holds `dev/workspaces`, `dev/gold` and the package `membench` that loads and scores them.
Each conversation gets a daemon of its own, once with its notes alone and once with its transcripts
alone, and is asked over the socket. Without the variable nothing is measured: the data may be read
here, and not shipped. `DETAIL=1` measures every fusion, and what decay and diversity change.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from statistics import fmean, quantiles
from time import perf_counter
from typing import Any

from benchmarks.household import daemon, environment, folder, model
from benchmarks.row import Row

_DEPTH = 60
_FORMS = ("notes", "transcripts")
_TRANSCRIPTS = "sessions/chat:"  # how imported files are spelled; the data says `sessions/`
_LEAST = {"recall@1000tok": 0.84, "ndcg@10": 0.62}  # with the vectors that ship
_PLAIN: dict[str, Any] = {}
_WAYS: dict[str, dict[str, Any]] = {
    "default": _PLAIN,
    "without decay": {"recency": False},
    "weighted": {"fusion": "weighted"},
    "rrf": {"fusion": "rrf"},
}


async def rows() -> AsyncIterator[Row]:
    """Recall within 1,000 tokens and nDCG of each form; then what one search takes."""
    place = os.environ.get("MEMBENCH", "")
    if not place:
        yield Row("outside benchmark: MEMBENCH is not set, nothing measured", [0], "questions")
        return
    sys.path.insert(0, place)
    core = importlib.import_module("membench.core")
    conversations = core.load_split(Path(place) / "dev")
    ways = _WAYS if os.environ.get("DETAIL") else {"default": _PLAIN}
    for form in _FORMS:
        scores: dict[str, list[Mapping[str, Any]]] = {way: [] for way in ways}
        times: list[float] = []
        with model() as port:
            for conversation in conversations:
                with folder() as home:
                    await _asked(core, conversation, form, home, port, ways, scores, times)
        for way, found in scores.items():
            main = [one for one in found if one["category"] != "adversarial"]
            for figure, least in _LEAST.items():
                value = fmean(float(one[figure]) for one in main)
                bar = least if way == "default" else None
                yield Row(f"{form}, {way}: {figure}, {len(main)} questions", [value], "", least=bar)
        yield Row(f"{form}: a search over the socket", [quantiles(times, n=20)[-1]], "ms at p95")


async def _asked(
    core: Any,
    conversation: Any,
    form: str,
    home: Path,
    port: int,
    ways: Mapping[str, dict[str, Any]],
    scores: Mapping[str, list[Mapping[str, Any]]],
    times: list[float],
) -> None:
    """Ask a fresh daemon every question of a conversation, in every way."""
    if form == "notes":
        shutil.copytree(conversation.dir / "memory", home / "workspace" / "memory")
    async with daemon(home, port) as running, running.client() as client:
        if form == "transcripts":
            command = [sys.executable, "-m", "agentd", "sessions", "import"]
            command.append(str(conversation.dir / "sessions"))
            subprocess.run(command, env=environment(home), check=True, capture_output=True)
        await client.call("_agentd/memory/index")
        for asked in conversation.queries:
            for way, options in ways.items():
                begun = perf_counter()
                found = await client.call(
                    "_agentd/memory/search", query=asked["query"], limit=_DEPTH, **options
                )
                times.append((perf_counter() - begun) * 1000)
                hits = [
                    core.Hit(
                        text=one["text"],
                        path=one["path"].replace(_TRANSCRIPTS, "sessions/"),
                        start_line=one["start_line"],
                        end_line=one["end_line"],
                    )
                    for one in found["results"]
                ]
                marks = core.score(conversation, asked, hits)
                scores[way].append({**marks, "category": asked["category"]})
