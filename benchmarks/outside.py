"""Search as a client sees it, on an outside benchmark: `MEMBENCH=DIR python -m benchmarks outside`.

The folder holds `dev/workspaces`, `dev/gold` and the package `membench` that loads and scores them.
Each conversation gets a daemon of its own, once with its notes alone and once with its transcripts
alone, imported by the command for that, and is asked over the socket; the same questions are asked
of a searcher without a daemon. Without the variable nothing is measured: the data may be read here,
and not shipped. `EVERY=5` asks each fifth question (too few for a goal), `DETAIL=1` measures every
fusion too, and `EMBEDDER=onnx EMBEDDER_MODEL=DIR` another embedder than the one that ships.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from statistics import fmean, quantiles
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from agentd.core.clock import SystemClock
from benchmarks import embedder, retrieval
from benchmarks.household import Client, daemon, environment, folder, model
from benchmarks.row import Row

_IMPORTED = "sessions/chat:"  # how imported files are spelled; the data says `sessions/`
_APART = 0.02  # by so much a daemon may differ from the searcher alone
_WITHIN, _NDCG = "recall@1000tok", "ndcg@10"
_DEFAULT: dict[str, Any] = {}
_WAYS: dict[str, dict[str, Any]] = {
    "default": _DEFAULT,
    "without decay": {"recency": False},
    "weighted": {"fusion": "weighted"},
    "rrf": {"fusion": "rrf"},
}


@dataclass(slots=True)
class Answers:
    """What asking a daemon brought: the marks of each question, whether something was missing, and
    milliseconds.
    """

    marks: list[Mapping[str, float]] = field(default_factory=list)
    lacking: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)


async def rows() -> AsyncIterator[Row]:
    """Of each form recall within 1,000 tokens and nDCG, over the socket and without a daemon, and
    what one search takes.
    """
    place = os.environ.get("MEMBENCH", "")
    if not place:
        yield Row("outside benchmark: MEMBENCH is not set, nothing measured", [0], "questions")
        return
    every = int(os.environ.get("EVERY", "1"))
    ways = _WAYS if os.environ.get("DETAIL") else {"default": _DEFAULT}
    provider = embedder.settings().provider
    least = retrieval.LEAST.get(provider)
    for form in retrieval.FORMS:
        alone, talks = await _without_daemon(Path(place), form, every)
        found = await _over_the_socket(talks, form, ways, every)
        what = f"conversations as {form}, embedder {provider}"
        for way, answers in found.items():
            asked = f"{what}, {way}, {len(answers.marks)} questions over the socket"
            goals = (
                (least, retrieval.LEAST_NDCG) if way == "default" and every == 1 else (None, None)
            )
            for figure, goal in zip((_WITHIN, _NDCG), goals, strict=True):
                value = fmean(mark[figure] for mark in answers.marks)
                yield Row(f"{asked}: {figure}", [value], "share", least=goal)
                if way == "default":
                    yield Row(f"{what}, without a daemon: {figure}", [alone[figure]], "share")
                    apart = abs(value - alone[figure])
                    yield Row(f"{what}: {figure}, apart", [apart], "share", below=_APART)
        plain = found["default"]
        lacking = fmean(plain.lacking)
        yield Row(f"{what}: answers that lacked something", [lacking], "share", below=0.01)
        yield Row(f"{what}: over the socket", [quantiles(plain.taken, n=20)[-1]], "ms at p95")


async def _without_daemon(
    place: Path, form: str, every: int
) -> tuple[dict[str, float], Sequence[retrieval.Talk]]:
    """The figures of a searcher alone on this day, as it is a daemon's; and what it was made
    from.
    """
    async with embedder.opened() as made:
        talks = await retrieval.talks(place, form, made)
    today = SystemClock(UTC).now().date()
    talks = [replace(talk, today=today) for talk in talks]
    return retrieval.figures(talks, retrieval.DEFAULT, every), talks


async def _over_the_socket(
    talks: Sequence[retrieval.Talk],
    form: str,
    ways: Mapping[str, dict[str, Any]],
    every: int,
) -> dict[str, Answers]:
    """What a fresh daemon for each conversation answers, in every way."""
    found = {way: Answers() for way in ways}
    with model() as port:
        for talk in talks:
            place: Path = talk.conversation.dir
            with folder() as home:
                if form == "notes":
                    shutil.copytree(place / "memory", home / "workspace" / "memory")
                async with (
                    daemon(home, port, settings=embedder.as_toml()) as running,
                    running.client() as client,
                ):
                    if form == "sessions":
                        _import(home, place / "sessions")
                    await client.call("_agentd/memory/index")
                    await _ask(client, talk, ways, every, found)
    return found


def _import(home: Path, transcripts: Path) -> None:
    command = [sys.executable, "-m", "agentd", "sessions", "import", str(transcripts)]
    subprocess.run(command, env=environment(home), check=True, capture_output=True)


async def _ask(
    client: Client,
    talk: retrieval.Talk,
    ways: Mapping[str, dict[str, Any]],
    every: int,
    found: Mapping[str, Answers],
) -> None:
    """Ask a daemon the questions of a conversation that have an answer."""
    for asked in talk.conversation.queries[::every]:
        if asked["category"] == "adversarial":
            continue
        for way, options in ways.items():
            begun = perf_counter()
            answer = await client.call(
                "_agentd/memory/search", query=asked["query"], limit=retrieval.DEPTH, **options
            )
            found[way].taken.append((perf_counter() - begun) * 1000)
            hits = [_hit(talk, one) for one in answer["results"]]
            found[way].marks.append(talk.core.score(talk.conversation, asked, hits))
            found[way].lacking.append(float(bool(answer["reason"])))


def _hit(talk: retrieval.Talk, one: Mapping[str, Any]) -> Any:
    return talk.core.Hit(
        text=one["text"],
        path=one["path"].replace(_IMPORTED, "sessions/"),
        start_line=one["start_line"],
        end_line=one["end_line"],
    )
