"""Each check of the search finds its defect, and says well once it is cured."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentd.app.doctor.search_checks import EmbedderCheck, SearchCheck
from agentd.core.health import Finding
from agentd.core.search import IndexState, SearchQuery, SearchResult, Source
from agentd.core.turn import SessionKind
from agentd.memory.index.indexer import Indexer
from agentd.memory.recall import MemoryRecall
from agentd.testing import FakeClock, MemoryIndexDouble, MemorySessions
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings

NOTE = "memory/2026-11-20.md"


@pytest.fixture
def house(tmp_path: Path) -> SimpleNamespace:
    """A workspace with one note, and an index that knows nothing yet."""
    root = tmp_path / "ws"
    (root / "memory").mkdir(parents=True)
    (root / NOTE).write_text("# 2026-11-20\n\n- [10:00] the xylophone is in the attic\n")
    clock = FakeClock()
    files = Files(root, WorkspaceSettings(), clock, {}, tmp_path / "versions")
    store, index = MemorySessions(clock), MemoryIndexDouble()
    indexer = Indexer(index, files, store, clock)
    recall = MemoryRecall(index, indexer, store, files)
    return SimpleNamespace(root=root, files=files, index=index, indexer=indexer, recall=recall)


def state_of(word: str = "ready", pending: int = 0, vectors: int = 0):
    async def state() -> IndexState:
        return IndexState(1, 1, pending, word, "static-1", vectors)

    return state


async def test_a_note_that_is_not_found_fails_until_the_index_is_rebuilt(
    house: SimpleNamespace,
) -> None:
    check = SearchCheck(house.files, house.recall, state_of())
    assert (await check.look()).level == "ok"
    before = sorted(path for path in house.root.rglob("*"))
    known = await house.index.digests(Source.NOTES)
    await house.index.replace(NOTE, known[NOTE], [])
    found = await check.look()
    assert (found.level, NOTE in found.text) == ("fail", True)
    assert found.cure == "`agentd memory index`"
    await house.indexer.rebuild()
    assert (await check.look()).level == "ok"
    assert sorted(path for path in house.root.rglob("*")) == before  # it writes nothing
    (house.root / NOTE).unlink()
    assert "no note" in (await check.look()).text


async def test_words_that_are_only_found_somewhere_else_are_not_found(
    house: SimpleNamespace,
) -> None:
    class Elsewhere:
        async def search(self, query: SearchQuery, kind: SessionKind) -> SearchResult:
            found = await house.recall.search(SearchQuery("attic"), kind)
            assert query.text.endswith("the xylophone is in the attic")
            return SearchResult(tuple(h for h in found.hits if h.chunk.path != NOTE), "no_match")

    found = await SearchCheck(house.files, Elsewhere(), state_of()).look()
    assert (found.level, "no_match" in found.text) == ("fail", True)


@pytest.mark.parametrize("word", ["indexing", "rebuilding"])
async def test_an_index_that_is_being_built_is_only_a_warning(
    house: SimpleNamespace, word: str
) -> None:
    found = await SearchCheck(house.files, house.recall, state_of(word, 7)).look()
    assert (found.level, "7 files" in found.text) == ("warn", True)


class Answering:
    """A recall that lacks something, the last of these from then on."""

    def __init__(self, *reasons: str) -> None:
        self.reasons = list(reasons)

    async def search(self, query: SearchQuery, kind: SessionKind) -> SearchResult:
        return SearchResult((), self.reasons.pop(0) if len(self.reasons) > 1 else self.reasons[0])


async def meaning(
    recall: Answering,
    state: Callable[[], Awaitable[IndexState]] | None = None,
    chosen: Callable[[], dict[str, str]] = lambda: {"provider": "onnx", "why": "configured"},
) -> Finding:
    """What the check finds, when it has waited as long as it likes to."""
    clock = FakeClock()
    looking = asyncio.create_task(EmbedderCheck(recall, state or state_of(), chosen, clock).look())
    await clock.advance(60)
    return await looking


@pytest.mark.parametrize(
    ("reason", "told"), [("embedder_down", "fails"), ("embedder_slow", "too long")]
)
async def test_an_embedder_that_does_not_answer_is_told_until_it_does(
    reason: str, told: str
) -> None:
    found = await meaning(Answering(reason))
    assert (found.level, told in found.text, bool(found.cure)) == ("warn", True, True)
    found = await meaning(Answering("no_match"))
    assert (found.level, found.text) == ("ok", "search by meaning: static-1, configured")


async def test_the_models_are_named_without_their_digests() -> None:
    async def state() -> IndexState:
        return IndexState(1, 1, 0, "ready", "minilm-8199be6f699a+e5-small-41fb2d0e09ae-1.5")

    found = await meaning(Answering("no_match"), state)
    assert (found.level, found.text) == ("ok", "search by meaning: minilm and e5-small, configured")


async def test_an_embedder_that_is_only_starting_is_no_slow_one() -> None:
    found = await meaning(Answering(*["embedder_slow"] * 5, "no_match"))
    assert (found.level, found.text) == ("ok", "search by meaning: static-1, configured")


async def test_vectors_that_are_left_are_told_until_there_are_none() -> None:
    found = await meaning(Answering(""), state_of("embedding", 9, 9))
    assert (found.level, "9 pieces" in found.text) == ("warn", True)
    assert (await meaning(Answering(""))).level == "ok"


async def test_to_search_by_words_alone_is_no_fault() -> None:
    none = {"provider": "none", "why": "configured"}
    found = await meaning(Answering("embedder_down"), chosen=lambda: none)
    assert (found.level, "words alone" in found.text) == ("ok", True)
