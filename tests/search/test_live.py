"""The contract of MemoryIndex, over every implementation, and what the live one adds to it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import date
from itertools import count

import pytest
from msgspec.structs import replace

from agentd.core.errors import EmbedderFault, StorageCorrupt, StorageFull
from agentd.core.search import OWNER, PUBLIC, LinePatch, SearchQuery, Source
from agentd.memory.index.embedding.lazy_static import packaged_static
from agentd.memory.index.search import chain, live
from agentd.memory.index.search import patient_embedder as patience_of
from agentd.memory.index.search.audiences import Mirrors
from agentd.memory.index.search.entries import entry
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.index.search.patient_embedder import patient
from agentd.memory.index.search.search_settings import SearchSettings
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import HashEmbedder, MemoryIndexDouble

NOTE = "memory/2026-11-21.md"
LIMIT = 250  # milliseconds: enough for what answers at once on a busy machine


async def paths(index, query, audience=OWNER, **more):
    found = await index.search(SearchQuery(query, limit=10, **more), audience)
    return [h.chunk.path for h in found.hits]


def open_index(store, clock, *embedders, **settings):
    return LiveIndex.open(store, clock, patient(embedders, clock), SearchSettings(**settings))


@pytest.fixture(params=["live", "live with vectors", "memory"])
async def any_index(request, store, clock):
    if request.param == "memory":
        yield MemoryIndexDouble()
        return
    embedders = [HashEmbedder()] if "vectors" in request.param else []
    async with LiveIndex.open(store, clock, patient(embedders, clock)) as index:
        yield index


async def test_a_hit_is_the_chunk_with_its_scores(any_index, chunk):
    stored = chunk("Anna likes green tea")
    await any_index.replace(NOTE, "d1", [stored])
    found = await any_index.search(SearchQuery("green tea", limit=5), OWNER)
    (hit,) = found.hits
    assert (hit.chunk, found.reason) == (stored, "")
    assert 0 < hit.score <= 1
    assert "keyword" in hit.scores


async def test_replace_extend_and_remove_are_seen_at_once(any_index, chunk):
    index = any_index
    await index.replace(NOTE, "d1", [chunk("alpha")])
    await index.extend(NOTE, "d2", [chunk("beta", line=50)])
    assert set(await paths(index, "alpha")) == set(await paths(index, "beta")) == {NOTE}
    assert await index.digests(Source.NOTES) == {NOTE: "d2"}
    assert await index.digests(Source.SESSIONS) == {}
    await index.replace(NOTE, "d3", [chunk("gamma")])
    assert "alpha" not in str(await index.search(SearchQuery("alpha beta", limit=5), OWNER))
    assert await paths(index, "gamma") == [NOTE]
    state = await index.state()
    assert (state.files, state.chunks) == (1, 1)
    await index.replace("empty.md", "d", [])
    assert set(await index.digests(Source.NOTES)) == {NOTE, "empty.md"}
    await index.remove([NOTE, "never indexed"])
    assert await paths(index, "gamma") == []
    await index.replace(NOTE, "d4", [chunk("delta")])
    await index.erase([NOTE])
    assert await paths(index, "delta") == []
    await index.replace(NOTE, "d5", [chunk("epsilon")])
    await index.outdate()
    assert await index.digests(Source.NOTES) == {NOTE: "", "empty.md": ""}
    assert await paths(index, "epsilon") == [NOTE]
    await index.replace(NOTE, "d5", [chunk("epsilon")])
    assert (await index.digests(Source.NOTES))[NOTE] == "d5"
    assert await paths(index, "epsilon") == [NOTE]
    await index.settle()


async def test_reasons_say_why_nothing_came_back(any_index, chunk):
    assert (await any_index.search(SearchQuery("tea", limit=5), OWNER)).reason == "nothing_indexed"
    assert (await any_index.search(SearchQuery("?!", limit=5), OWNER)).reason == "empty_query"
    assert (await any_index.search(SearchQuery("", limit=5), OWNER)).reason == "empty_query"


async def test_a_word_that_nothing_holds_finds_nothing(index, chunk):
    await index.replace(NOTE, "d", [chunk("tea")])
    assert (await index.search(SearchQuery("coffee", limit=5), OWNER)).reason == "no_match"


async def test_what_is_the_owners_alone_does_not_exist_for_others(any_index, chunk):
    index = any_index
    await index.replace("MEMORY.md", "d", [chunk("the pin is 4711", "MEMORY.md", scope="main")])
    found = await index.search(SearchQuery("pin", limit=5), PUBLIC)
    assert (found.hits, found.reason) == ((), "nothing_indexed")
    await index.replace("g.md", "d", [chunk("a pin board", "g.md")])
    before = await index.search(SearchQuery("pin", limit=5), PUBLIC)
    assert [hit.chunk.path for hit in before.hits] == ["g.md"]
    more = [chunk(f"pin {n}", "MEMORY.md", n, scope="main") for n in range(1, 80)]
    await index.extend("MEMORY.md", "d2", more)
    assert await index.search(SearchQuery("pin", limit=5), PUBLIC) == before
    await index.remove(["MEMORY.md"])
    assert await index.search(SearchQuery("pin", limit=5), PUBLIC) == before


async def test_sources_narrow_the_search(any_index, chunk):
    path = "sessions/main.jsonl"
    await any_index.replace(NOTE, "d", [chunk("tea")])
    await any_index.replace(path, "d", [chunk("tea", path, source=Source.SESSIONS)])
    only = frozenset({Source.SESSIONS})
    assert await paths(any_index, "tea", sources=only) == [path]
    assert len(await paths(any_index, "tea")) == 2
    assert await paths(any_index, "tea", sources=frozenset()) == []


@pytest.mark.parametrize(("least", "told"), [(0.3, "nothing_fits"), (0.2, "")])
async def test_hits_that_most_likely_do_not_answer_come_with_a_reason(
    store, clock, chunk, least, told
):
    class Unsure(Mirrors):
        async def search(self, *asked):
            return replace(await super().search(*asked), confidence=0.2)

    async with Unsure.open(store) as mirrors:
        settings = SearchSettings(least_confidence=least)
        for embedders, expected in (((), ""), ((HashEmbedder(),), told)):  # words alone cannot tell
            index = LiveIndex(store, mirrors, patient(embedders, clock), settings, clock)
            await index.replace(NOTE, "d", [chunk("green tea")])
            await index.settle()
            found = await index.search(SearchQuery("green tea", limit=5), OWNER)
            assert (len(found.hits), found.reason, found.confidence) == (1, expected, 0.2)
    answer = found.as_json()
    assert (answer["confidence"], answer["reason"]) == (0.2, told)
    assert replace(found, hits=()).as_json()["confidence"] == 0.0


async def test_the_chunk_with_more_of_the_words_comes_first(any_index, chunk):
    await any_index.replace("one.md", "d", [chunk("dentist dentist dentist", "one.md")])
    await any_index.replace("two.md", "d", [chunk("dentist on tuesday in berlin", "two.md")])
    assert (await paths(any_index, "dentist tuesday berlin"))[0] == "two.md"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        pytest.param("我在北京工作", "北京", id="chinese inside a run"),
        pytest.param("明日は東京へ行きます", "東京", id="japanese"),
        pytest.param("カメラを買った", "カメラ", id="katakana"),
        pytest.param("서울에서 만나자", "서울", id="korean with a particle"),
        pytest.param("Café zum Löwen", "cafe lowen", id="diacritics"),
        pytest.param("Привет, Москва", "МОСКВА", id="cyrillic case"),
        pytest.param("the file state.db grew", "state.db", id="punctuation inside"),
        pytest.param("e\u0301cole", "école", id="decomposed"),
        pytest.param("Löwe 🦁 gesehen", "🦁", id="emoji"),
        pytest.param("call 0171-2345678", "2345678", id="numbers"),
    ],
)
@pytest.mark.parametrize("warm", [True, False])
async def test_words_of_many_scripts_are_found(index, store, chunk, text, query, warm):
    await index.replace("other.md", "d", [chunk("quite another thing 上海", "other.md")])
    await index.replace(NOTE, "d", [chunk(text)])
    if warm:
        assert await paths(index, query) == [NOTE]
    else:
        terms = live.words.terms(query)
        found = await store.keyword(terms, OWNER, limit=5)
        assert [hit.chunk.path for hit in found.hits] == [NOTE]


QUERIES = [
    *('"', "'", "a\x00b", "AND", "NOT tea", "tea OR", "NEAR(", "(tea", "tea*", "^tea", "-tea"),
    *("text:tea", "col : x", "{a b}", "\\", "%", "_", "\ud800", "\U0010ffff", "tea; DROP TABLE"),
    pytest.param("x" * 100_000, id="one long word"),
    pytest.param("tea " * 25_000, id="100 kB of one word"),
    pytest.param(" ".join(f"w{n}" for n in range(20_000)), id="20,000 words"),
    pytest.param("茶" * 100_000, id="a long run"),
    pytest.param('"' * 10_000, id="quotes alone"),
]


@pytest.mark.parametrize("query", QUERIES)
async def test_any_text_is_a_valid_query(store, clock, chunk, query):
    async with open_index(store, clock, HashEmbedder()) as index:
        await index.replace(NOTE, "d", [chunk("a cup of tea")])
        found = await index.search(SearchQuery(query, limit=5), OWNER)
        assert found.reason in {"", "no_match", "empty_query", "nothing_fits"}
        assert (found.reason in {"", "nothing_fits"}) == bool(found.hits)
    terms = list(dict.fromkeys(live.words.terms(query[:10_000])))
    assert (await store.keyword(terms, OWNER, limit=5)).reason in {"", "no_match"}


@pytest.mark.parametrize("text", ["a\x00tea", "half \ud800 tea", "\ufeff tea", "🍵tea"])
async def test_any_text_can_be_indexed(index, chunk, text):
    await index.replace(NOTE, "d", [chunk(text, speaker="\ud800", context="\x00")])
    assert await paths(index, "tea") == [NOTE]
    await index.replace(NOTE, "d2", [chunk("gone")])
    assert await paths(index, "tea") == []
    assert await paths(index, "gone") == [NOTE]


async def test_neighbours_come_as_one_hit_whose_text_is_its_lines(index, chunk):
    first = chunk("- buy tea\n- and a kettle\n", line=1)
    await index.replace(NOTE, "d", [first, chunk("- the kettle is for Anna\n-\n-", line=6)])
    (hit,) = (await index.search(SearchQuery("kettle tea", limit=5), OWNER)).hits
    assert (hit.chunk.start_line, hit.chunk.end_line) == (1, 8)
    assert hit.chunk.text.split("\n")[:2] == ["- buy tea", "- and a kettle"]
    assert hit.chunk.text.split("\n")[5] == "- the kettle is for Anna"


async def test_a_hit_in_a_transcript_says_who_spoke(index, chunk):
    path = "sessions/main.jsonl"
    said = [("user", "when is the dentist"), ("assistant", "the dentist is on friday")]
    rows = [
        chunk(text, path, n, Source.SESSIONS, speaker=who) for n, (who, text) in enumerate(said, 1)
    ]
    await index.extend(path, "2", rows)
    (hit,) = (await index.search(SearchQuery("dentist friday", limit=5), OWNER)).hits
    assert hit.chunk.text == "[user] when is the dentist\n[assistant] the dentist is on friday"


async def test_a_search_of_other_words_is_answered_by_vectors(store, clock, chunk):
    class Synonyms(HashEmbedder):
        async def embed(self, texts, *, query=False):
            return await super().embed([t.replace("automobile", "car") for t in texts])

    async with open_index(store, clock, Synonyms()) as index:
        await index.replace("a.md", "d", [chunk("the car is red", "a.md")])
        await index.replace("b.md", "d", [chunk("the tree is green", "b.md")])
        found = await index.search(SearchQuery("automobile", limit=1), OWNER)
        assert [hit.chunk.path for hit in found.hits] == ["a.md"]
        assert (await index.state()).vectors == 0


async def test_a_failing_embedder_leaves_keywords_and_says_so(store, clock, chunk):
    embedder = HashEmbedder()
    embedder.broken = True
    async with open_index(store, clock, embedder) as index:
        await index.replace(NOTE, "d", [chunk("a cup of tea")])
        found = await index.search(SearchQuery("tea", limit=5), OWNER)
        assert ([hit.chunk.path for hit in found.hits], found.reason) == ([NOTE], "embedder_down")
        assert [problem.code for problem in index.problems()] == ["embedder_down"]
        embedder.broken = False
        await clock.advance(1)
        assert (await index.search(SearchQuery("tea", limit=5), OWNER)).reason == ""
        assert index.problems() == ()


class Picky(HashEmbedder):
    """Fails at any batch that holds poison."""

    def __init__(self):
        super().__init__()
        self.failures = 0

    async def embed(self, texts, *, query=False):
        if self.broken or any("poison" in text for text in texts):
            self.failures += 1
            raise EmbedderFault("The process of picky failed: it was killed by SIGSEGV.")
        return await super().embed(texts, query=query)


async def settled(index, clock, seconds=60):
    for _ in range(seconds):
        await index.settle()
        await clock.advance(1)


async def test_a_text_that_no_embedder_survives_is_named_and_all_others_get_vectors(
    store, clock, chunk
):
    embedder = Picky()
    async with open_index(store, clock, embedder) as index:
        rows = [chunk(f"tea number {n}", line=n) for n in range(1, 301)]
        rows[200] = chunk("tea with poison", line=201)
        await index.replace(NOTE, "d", rows)
        await settled(index, clock)
        (problem,) = index.problems()
        assert problem.code == "text_not_embedded"
        assert f"{NOTE}:201: " in problem.text
        assert len([text for text in embedder.texts if text.startswith("tea number")]) == 299
        assert (await index.state()).vectors == 0
        assert embedder.failures < 12
        (first, *_) = (await index.search(SearchQuery("poison", limit=5), OWNER)).hits
        assert first.chunk.start_line <= 201 <= first.chunk.end_line
    async with open_index(store, clock, Picky()) as index:  # a restart tries again
        assert (await index.state()).vectors == 1
        await settled(index, clock)
        assert [problem.code for problem in index.problems()] == ["text_not_embedded"]
        await index.replace(NOTE, "e", [chunk("tea without")])
        await settled(index, clock, 1)
        assert index.problems() == ()


async def test_no_text_is_blamed_for_an_embedder_that_is_down(store, clock, chunk):
    embedder = Picky()
    async with open_index(store, clock, embedder) as index:
        await index.replace(NOTE, "d", [chunk(f"tea number {n}", line=n) for n in range(1, 30)])
        embedder.broken = True
        await settled(index, clock, 200)
        assert [problem.code for problem in index.problems()] == ["embedder_down"]
        embedder.broken = False
        await settled(index, clock, 200)
        assert index.problems() == ()
        assert (await index.state()).vectors == 0
        assert len([text for text in embedder.texts if text.startswith("tea number")]) == 29


async def test_a_failing_embedder_is_left_alone_longer_and_longer(store, clock, chunk):
    embedder = HashEmbedder()
    embedder.broken = True
    async with open_index(store, clock, embedder) as index:
        await index.replace(NOTE, "d", [chunk("a cup of tea")])
        tries = []
        for second in range(20):
            before = len(tries)
            if not index._chain._backfills[0].embedder.pause:
                tries.append(second)
            await index.search(SearchQuery("tea", limit=5), OWNER)
            await clock.advance(1)
            assert len(tries) - before <= 1
        assert tries == [0, 1, 3, 7, 15]


@pytest.mark.parametrize("fault", ["short", "few", "nan"])
async def test_vectors_that_are_none_are_refused(store, clock, chunk, fault):
    class Wrong(HashEmbedder):
        async def embed(self, texts, *, query=False):
            vectors = await super().embed(texts)
            if fault == "short":
                return [vector[:-4] for vector in vectors]
            if fault == "few":
                return vectors[:-1]
            return [b"\x00\x00\xc0\x7f" * self.dimension for _ in vectors]

    async with open_index(store, clock, Wrong()) as index:
        await index.replace(NOTE, "d", [chunk("tea"), chunk("more tea", line=9)])
        await index.settle()
        (problem,) = index.problems()
        assert problem.code == "embedder_down"
        assert ("63 numbers" in problem.text) == (fault == "short")
        assert await paths(index, "tea")


async def test_a_slow_query_is_answered_by_the_next_embedder(store, clock, chunk):
    class Slow(HashEmbedder):
        def __init__(self):
            super().__init__(32)
            self.slow = False

        async def embed(self, texts, *, query=False):
            if self.slow:
                await asyncio.Event().wait()
            return await super().embed(texts)

    best, quick = Slow(), HashEmbedder()
    async with open_index(store, clock, best, quick, query_timeout_ms=LIMIT) as index:
        await index.replace(NOTE, "d", [chunk("a cup of tea")])
        await index.settle()
        assert (await index.search(SearchQuery("tea", limit=5), OWNER)).reason == ""
        asked = len(quick.texts)
        best.slow = True
        found = await index.search(SearchQuery("tea", limit=5), OWNER)
        assert (bool(found.hits), found.reason) == (True, "embedder_slow")
        assert len(quick.texts) == asked + 1


async def test_searches_that_do_not_wait_for_a_slow_embedder_do_not_keep_it_from_its_work(
    store, clock, chunk
):
    class Gated(HashEmbedder):
        def __init__(self):
            super().__init__(32)
            self.gate = asyncio.Event()
            self.begun = 0

        async def embed(self, texts, *, query=False):
            self.begun += not query
            await self.gate.wait()
            return await super().embed(texts, query=query)

    best, quick = Gated(), HashEmbedder()
    async with (
        open_index(store, clock, best, quick, query_timeout_ms=LIMIT) as index,
        asyncio.TaskGroup() as tasks,
    ):
        running = tasks.create_task(index.run())
        await index.replace(NOTE, "d", [chunk("a cup of tea")])
        for _ in range(3):
            found = await index.search(SearchQuery("tea", limit=5), OWNER)
            assert (bool(found.hits), found.reason) == (True, "embedder_slow")
        assert best.begun == 1  # the same piece of work all the time
        best.gate.set()
        found = await index.search(SearchQuery("tea", limit=5), OWNER)
        assert (bool(found.hits), found.reason) == (True, "")
        assert (await index.state()).embedder == best.model
        running.cancel()


class SlowTexts(HashEmbedder):
    """Questions are answered at once, texts when `gate` is open."""

    def __init__(self):
        super().__init__(32)
        self.gate = asyncio.Event()

    async def embed(self, texts, *, query=False):
        if not query:
            await self.gate.wait()
        return await super().embed(texts, query=query)


async def test_what_is_new_keeps_no_question_from_the_best_embedder(store, clock, chunk):
    best, quick = SlowTexts(), HashEmbedder()
    async with (
        open_index(store, clock, best, quick, query_timeout_ms=LIMIT) as index,
        asyncio.TaskGroup() as tasks,
    ):
        running = tasks.create_task(index.run())
        best.gate.set()
        await index.replace("a.md", "d", [chunk("a cup of tea", "a.md")])
        await index.settle()
        best.gate.clear()
        await index.replace("b.md", "d", [chunk("a pot of tea", "b.md")])
        found = await index.search(SearchQuery("tea", limit=5), OWNER)
        assert (len(found.hits), found.reason) == (2, "vectors_missing")
        best.gate.set()
        while (await index.search(SearchQuery("tea", limit=5), OWNER)).reason:
            await asyncio.sleep(0)
        running.cancel()


async def test_few_pieces_get_vectors_though_nobody_searches(store, clock, chunk):
    best, quick = SlowTexts(), HashEmbedder()
    async with (
        open_index(store, clock, best, quick) as index,
        asyncio.TaskGroup() as tasks,
    ):
        running = tasks.create_task(index.run())
        await index.replace(NOTE, "d", [chunk("a cup of tea")])
        state = await index.state()
        assert (state.state, state.pending, state.vectors) == ("embedding", 1, 1)
        assert index.problems() == ()
        await clock.advance(chain.LATE + 1)
        assert [problem.code for problem in index.problems()] == ["vectors_missing"]
        best.gate.set()
        while (state := await index.state()).state != "ready":
            await clock.advance(1)
        assert (state.pending, state.vectors, index.problems()) == (0, 0, ())
        assert quick.texts == []  # what is in this process waits until it is needed
        running.cancel()


async def test_a_slow_embedder_is_given_no_more_at_once_than_it_can_do_in_time(store, clock, chunk):
    class Slow(HashEmbedder):
        batches = ()

        async def embed(self, texts, *, query=False):
            self.batches = (*self.batches, len(texts))
            await clock.advance(2 * len(texts))  # two seconds for each
            return await super().embed(texts, query=query)

    slow = Slow()
    async with open_index(store, clock, slow) as index:
        await index.replace(NOTE, "d", [chunk(f"tea {n}", line=3 * n + 1) for n in range(100)])
        await index.settle()
        assert (await index.state()).vectors == 0
    assert max(slow.batches) * 2 < patience_of.SECONDS
    assert sum(slow.batches) == 100  # nothing was done in vain


async def test_a_store_without_room_for_vectors_answers_and_gets_them_later(store, clock, chunk):
    class Full:
        """The store on a disk that is full."""

        is_full = True

        def __getattr__(self, name):
            return getattr(store, name)

        async def put_vectors(self, model, vectors):
            if self.is_full:
                raise StorageFull("no room", cure="make some")
            return await store.put_vectors(model, vectors)

    full = Full()
    async with open_index(full, clock, HashEmbedder()) as index, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(index.run())
        await index.replace(NOTE, "d", [chunk("a cup of tea")])
        found = await index.search(SearchQuery("tea", limit=5), OWNER)
        assert (len(found.hits), found.reason) == (1, "vectors_missing")
        full.is_full = False
        while (await index.state()).vectors:
            await clock.advance(1)
        assert (await index.search(SearchQuery("tea", limit=5), OWNER)).reason == ""
        running.cancel()


async def test_only_vectors_of_models_that_answer_are_in_memory(store, clock, chunk):
    class Synonyms(HashEmbedder):
        slow = False

        async def embed(self, texts, *, query=False):
            if self.slow:
                await asyncio.Event().wait()
            return await super().embed([text.replace("automobile", "car") for text in texts])

    best, quick = Synonyms(32), Synonyms(64)
    settings = SearchSettings(query_timeout_ms=LIMIT)
    async with Mirrors.open(store) as mirrors:
        index = LiveIndex(store, mirrors, patient([best, quick], clock), settings, clock)
        await index.replace("a.md", "d", [chunk("the car is red", "a.md")])
        await index.replace("b.md", "d", [chunk("the tree is green", "b.md")])
        await index.settle()
        assert (await paths(index, "automobile"))[0] == "a.md"
        assert mirrors.models == {best.model}
        best.slow = True
        assert await paths(index, "automobile")  # the other one stands in
        assert mirrors.models == {best.model, quick.model}
        best.slow = False
        await index.replace("c.md", "d", [chunk("an old automobile", "c.md")])
        assert {"a.md", "c.md"} <= set(await paths(index, "car"))
        assert mirrors.models == {best.model, quick.model}  # it may stand in again
        await clock.advance(chain.STANDING_IN)
        assert {"a.md", "c.md"} <= set(await paths(index, "car"))
        assert mirrors.models == {best.model}
        best.slow = True
        assert {"a.md", "c.md"} <= set(await paths(index, "car"))


async def test_the_better_model_answers_when_it_has_seen_nearly_all(store, clock, chunk):
    class Waiting(HashEmbedder):
        def __init__(self):
            super().__init__(32)
            self.may = asyncio.Event()

        async def embed(self, texts, *, query=False):
            await self.may.wait()
            return await super().embed(texts)

    best, quick = Waiting(), HashEmbedder()
    many = [chunk(f"tea number {n}", line=3 * n + 1) for n in range(chain.FEW + 50)]
    async with open_index(store, clock, best, quick) as index:
        await index.replace(NOTE, "d", many)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(index.run())
            while (await index.state()).embedder != quick.model or index._chain._backfills[1].left:
                await asyncio.sleep(0)
            assert (await index.search(SearchQuery("tea", limit=5), OWNER)).reason == ""
            assert (await index.state()).state == "embedding"
            best.may.set()
            while (await index.state()).embedder != best.model or (await index.state()).vectors:
                await asyncio.sleep(0)
            asked = len(best.texts)
            await index.search(SearchQuery("tea", limit=5), OWNER)
            assert len(best.texts) == asked + 1
            running.cancel()


async def test_what_is_embedded_once_is_not_embedded_again(store, clock, chunk):
    embedder = HashEmbedder()
    async with open_index(store, clock, embedder) as index:
        await index.replace(NOTE, "d", [chunk("tea"), chunk("milk", line=9)])
        await index.settle()
        await index.replace(NOTE, "d2", [chunk("tea", line=3), chunk("sugar", line=9)])
        await index.replace("b.md", "d", [chunk("milk", "b.md")])
        await index.settle()
        assert embedder.texts == ["tea", "milk", "sugar"]
    async with open_index(store, clock, embedder) as index:
        await index.settle()
        assert embedder.texts == ["tea", "milk", "sugar"]


async def test_text_erased_while_it_is_embedded_stays_erased(store, clock, chunk):
    class Held(HashEmbedder):
        def __init__(self):
            super().__init__()
            self.asked, self.may = asyncio.Event(), asyncio.Event()

        async def embed(self, texts, *, query=False):
            self.asked.set()
            await self.may.wait()
            return await super().embed(texts)

    embedder = Held()
    async with open_index(store, clock, embedder) as index:
        await index.replace(NOTE, "d", [chunk("a secret about Anna")])
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(index.settle())
            await embedder.asked.wait()
            await index.erase([NOTE])
            embedder.may.set()
        assert await paths(index, "secret Anna") == []
        assert await store._db.read(
            lambda conn: conn.execute("SELECT count(*) FROM embeddings").fetchone()[0]
        ) == 0  # fmt: skip


async def test_a_search_that_cannot_wait_is_answered_by_words(store, clock, chunk):
    async with LiveIndex.open(store, clock, patience=0.0) as index:
        await index.replace(NOTE, "d", [chunk("a cup of tea")])
        found = await index.search(SearchQuery("tea", limit=5), OWNER)
        assert ([hit.chunk.path for hit in found.hits], found.reason) == ([NOTE], "warming")
        assert 0 < found.hits[0].score <= live.WORDS_ALONE
        sure = await index.search(SearchQuery("tea", min_score=0.51), OWNER)
        assert (sure.hits, sure.reason) == ((), "warming")
        short = await index.search(SearchQuery("tea", max_tokens=1), OWNER)
        assert (short.hits, short.reason) == ((), "warming")


async def test_a_turn_waits_for_the_first_load_no_longer_than_for_a_vector(store, clock, chunk):
    class Loading(Mirrors):
        ended = False

        async def ready(self, audience):
            if not self.ended:
                await asyncio.Event().wait()
            await super().ready(audience)

    async with Loading.open(store) as mirrors:
        settings = SearchSettings(query_timeout_ms=LIMIT)
        index = LiveIndex(store, mirrors, (), settings, clock, patience=60.0)
        await index.replace(NOTE, "d", [chunk("a cup of tea")])
        asked = SearchQuery("tea", limit=5, waits=False)
        found = await index.search(asked, OWNER)
        assert ([hit.chunk.path for hit in found.hits], found.reason) == ([NOTE], "warming")
        mirrors.ended = True
        assert (await index.search(asked, OWNER)).reason == ""


async def test_words_alone_give_the_newest_value_first(store, clock, chunk):
    async with LiveIndex.open(store, clock, patience=0.0) as index:
        for day, code in ((3, "4417"), (17, "9023"), (9, "7715")):
            path = f"memory/2026-11-{day:02}.md"
            said = replace(chunk(f"- the boiler code is {code}", path), date=date(2026, 11, day))
            await index.replace(path, "d", [said])
        hits = (await index.search(SearchQuery("boiler code", limit=5), OWNER)).hits
        assert "9023" in hits[0].chunk.text
        assert hits[0].newer == ""
        assert all(hit.newer == "memory/2026-11-17.md:1" for hit in hits[1:])


async def test_a_change_that_is_cut_off_is_mended(store, clock, chunk):
    async with open_index(store, clock) as index:
        await index.replace(NOTE, "d", [chunk("a cup of tea")])
        assert await paths(index, "tea") == [NOTE]
        async with asyncio.TaskGroup() as tasks:
            cut = tasks.create_task(index.replace(NOTE, "d2", [chunk("coffee")]))
            while store._db.commits < 2:
                await asyncio.sleep(0)
            cut.cancel()
        assert await paths(index, "tea") == []
        assert await paths(index, "coffee") == [NOTE]


async def test_an_index_damaged_while_open_begins_anew_while_memory_answers(tmp_path, clock, chunk):
    async with (
        Database.open(tmp_path / "i.db", INDEX) as db,
        LiveIndex.open(SqliteChunks(db), clock, patient([HashEmbedder()], clock)) as index,
    ):
        await index.replace(NOTE, "d", [chunk("tea")])
        assert await paths(index, "tea") == [NOTE]
        epoch = index.epoch
        await db.execute("PRAGMA writable_schema = 1", ())
        await db.execute("UPDATE sqlite_schema SET rootpage = 999999 WHERE name = 'chunks'", ())
        await db.execute("PRAGMA schema_version = 4711", ())
        with pytest.raises(StorageCorrupt):
            await index.replace("b.md", "d", [chunk("more tea", "b.md")])
        found = await index.search(SearchQuery("tea", limit=5), OWNER)
        assert ([hit.chunk.path for hit in found.hits], found.reason) == ([NOTE], "indexing")
        assert index.epoch != epoch
        assert await index.digests(Source.NOTES) == {}
        await index.replace(NOTE, "d", [chunk("tea")])
        await index.replace("b.md", "d", [chunk("more tea", "b.md")])
        assert await paths(index, "tea") == [NOTE]
        await index.complete()
        found = await index.search(SearchQuery("tea", limit=5), OWNER)
        assert (len(found.hits), found.reason) == (2, "")


@pytest.mark.parametrize("way", ["remove", "erase"])
async def test_what_is_taken_out_is_not_found_in_what_was_before_the_damage(
    tmp_path, clock, chunk, way
):
    async with (
        Database.open(tmp_path / "i.db", INDEX) as db,
        LiveIndex.open(SqliteChunks(db), clock) as index,
    ):
        await index.replace(NOTE, "d", [chunk("tea")])
        await index.replace("b.md", "d", [chunk("more tea", "b.md")])
        assert sorted(await paths(index, "tea")) == ["b.md", NOTE]
        (tmp_path / "i.db").write_bytes(b"no database" * 5000)
        (tmp_path / "i.db-wal").write_bytes(b"")
        epoch = index.epoch
        await index.verify()
        assert index.epoch != epoch
        await getattr(index, way)([NOTE])
        assert await paths(index, "tea") == ["b.md"]
        await index.complete()
        found = await index.search(SearchQuery("tea", limit=5), OWNER)
        assert (found.hits, found.reason) == ((), "nothing_indexed")


async def test_a_file_read_by_other_rules_is_found_and_known_as_changed(store, clock, chunk):
    old = entry(chunk("alpha"))
    await store.replace(NOTE, "words-0:d1", [replace(old, terms="omega", traits=b"old")])
    async with LiveIndex.open(store, clock) as index:
        assert await index.digests(Source.NOTES) == {NOTE: ""}
        assert await paths(index, "alpha") == [NOTE]
        await index.replace(NOTE, "d1", [chunk("alpha")])
        assert await index.digests(Source.NOTES) == {NOTE: "d1"}
    (row,) = await store.load(0, 10, OWNER)
    assert (row.terms, row.traits) == (old.terms, old.traits)


def test_the_index_is_opened_without_numpy():
    names = ("agentd.memory.index.search.live", "agentd.memory.index.embedding.lazy_static")
    code = f"import sys, {', '.join(names)}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_vectors_alone_find_nothing_for_words_about_something_else(store, clock, chunk):
    embedder = packaged_static()
    async with open_index(store, clock, embedder) as index:
        await index.replace(NOTE, "d", [chunk("Anna likes green tea in the morning")])
        assert await paths(index, "what does she drink") == [NOTE]
        found = await index.search(SearchQuery("Quetzalschwanzfeder"), OWNER)
        assert (found.hits, found.reason) == ((), "no_match")


async def test_words_answer_when_ranking_breaks(store, clock, chunk):
    class Broken(Mirrors):
        async def ready(self, audience):
            raise MemoryError

    async with Broken.open(store, []) as mirrors:
        index = LiveIndex(store, mirrors, [], SearchSettings(), clock)
        await index.replace(NOTE, "d", [chunk("a cup of tea")])
        found = await index.search(SearchQuery("tea"), OWNER)
        assert [hit.chunk.path for hit in found.hits] == [NOTE]
        assert [problem.code for problem in index.problems()] == ["search_broke"]


async def test_a_worn_mirror_answers_until_a_new_one_is_loaded(store, clock, chunk):
    class Worn(Mirrors):
        """Counts a mirror as worn as soon as something went from it."""

        renewed = 0

        @property
        def worn(self):
            places = [(a, p.mirror) for a, p in self._places.items() if p.mirror is not None]
            return tuple(a for a, m in places if m._ids and len(m._ids) > len(m))

        async def renew(self, audience):
            self.renewed += 1
            await self._store.replace("late.md", "d", [entry(chunk("late tea", "late.md"))])
            await super().renew(audience)

    embedder = HashEmbedder()
    async with Worn.open(store, [embedder.model]) as mirrors:
        index = LiveIndex(store, mirrors, patient([embedder], clock), SearchSettings(), clock)
        await index.replace(NOTE, "d", [chunk("tea"), chunk("milk", line=9)])
        await index.replace("b.md", "d", [chunk("tea and sugar", "b.md")])
        assert len(await paths(index, "tea")) == 2
        await index.remove(["b.md"])
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(index.run())
            assert await paths(index, "tea") == [NOTE]
            while not mirrors.renewed or mirrors.worn:
                await asyncio.sleep(0)
            assert sorted(await paths(index, "tea")) == ["late.md", NOTE]
            running.cancel()
        assert mirrors.renewed == 1


async def test_a_file_is_found_at_every_moment_while_it_is_replaced(store, clock, chunk):
    async with open_index(store, clock, HashEmbedder()) as index:
        for n in range(20):
            await index.replace(f"{n}.md", "d", [chunk(f"the code of door {n} is old", f"{n}.md")])
        assert await paths(index, "door") != []

        async def rewrite() -> None:
            for n in count():
                path = f"{n % 20}.md"
                said = [chunk(f"the code of door {n % 20} is number {n}", path)]
                await index.replace(path, str(n), said)

        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(rewrite())
            for _ in range(10):
                found = await index.search(SearchQuery("code door", limit=50), OWNER)
                assert {hit.chunk.path for hit in found.hits} == {f"{n}.md" for n in range(20)}
            writing.cancel()


@pytest.mark.parametrize("query", ["🦊", " 🦊🦊 ", " " * 100_000 + "kettle"])
async def test_emoji_and_what_stands_behind_blanks_is_looked_for(index, chunk, query):
    await index.replace(NOTE, "d1", [chunk("the blue kettle 🦊")])
    await index.replace("other.md", "d2", [chunk("nothing 🐼", "other.md")])
    assert await paths(index, query) == [NOTE]


async def test_emoji_that_nobody_wrote_match_nothing(index, chunk):
    await index.replace(NOTE, "d1", [chunk("the blue kettle 🦊")])
    found = await index.search(SearchQuery("🐙", limit=5), OWNER)
    assert (found.hits, found.reason) == ((), "no_match")


async def test_a_key_is_not_in_the_index_and_the_lines_around_it_are_where_they_were(
    index, chunk
) -> None:
    pem = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkq\n" * 3 + "-----END PRIVATE KEY-----"
    await index.replace(NOTE, "d1", [chunk(f"the server's\n{pem}\nlies there", line=4)])
    (hit,) = (await index.search(SearchQuery("server lies"), OWNER)).hits
    assert "[secret:pem]" in hit.chunk.text
    assert hit.chunk.text.split("\n")[6] == "lies there"
    assert not (await index.search(SearchQuery("MIIEvQIBADANBgkq"), OWNER)).hits


async def test_chunks_that_only_moved_are_not_read_again(index, store, chunk):
    lines = [chunk(f"fact number {n}", line=n) for n in range(1, 101)]
    await index.replace(NOTE, "d1", lines)
    planted = [replace(one, terms=f"{one.terms} planted") for one in await store.entries(NOTE)]
    await store.replace(NOTE, "d1", planted)
    moved = [
        replace(one, start_line=one.start_line - 1, end_line=one.end_line - 1) for one in lines[50:]
    ]
    await index.replace(NOTE, "d2", [*lines[:49], *moved])
    held = await store.entries(NOTE)
    assert [one.chunk for one in held] == [*lines[:49], *moved]
    assert all("planted" in one.terms for one in held)
    assert await store.entries(NOTE, 90) == held[89:]


FACTS = "memory/facts.md"


def fact(chunk, text, line):
    return replace(chunk(text, FACTS, line, scope="main"), end_line=line)


async def where(index, query):
    """The lines of the page on which something is found."""
    found = await index.search(SearchQuery(query, limit=20), OWNER)
    return sorted((h.chunk.start_line, h.chunk.end_line, h.chunk.text) for h in found.hits)


async def test_chunks_are_found_on_the_lines_to_which_they_have_moved(any_index, chunk):
    texts = [f"tea number {n}" for n in range(1, 8)]
    await any_index.replace(FACTS, "d1", [fact(chunk, t, n) for n, t in enumerate(texts, 1)])
    assert len(await where(any_index, "tea")) == 7
    added = fact(chunk, "tea at last", 6)
    await any_index.patch(FACTS, "d2", [LinePatch(2, 4, 0, ()), LinePatch(8, 8, 1, (added,))])
    left = ["tea number 1", *texts[3:], "tea at last"]
    assert await where(any_index, "tea") == [(n, n, text) for n, text in enumerate(left, 1)]
    await any_index.patch(FACTS, "d3", [LinePatch(1, 1, 1, (fact(chunk, "tea first", 1),))])
    await any_index.patch(FACTS, "d4", [LinePatch(3, 4, 0, ())])
    left = ["tea first", "tea number 1", *texts[4:], "tea at last"]
    assert await where(any_index, "tea") == [(n, n, text) for n, text in enumerate(left, 1)]
    assert await where(any_index, "number 4") == [
        one for one in await where(any_index, "tea") if "number" in one[2]
    ]


async def test_chunks_that_moved_can_be_forgotten_one_by_one(store, clock, chunk):
    async with open_index(store, clock) as index:
        texts = [f"tea number {n}" for n in range(1, 30)]
        await index.replace(FACTS, "d0", [fact(chunk, t, n) for n, t in enumerate(texts, 1)])
        await where(index, "tea")
        for round_ in range(25):
            at = 1 + round_ * 7 % len(texts)
            new = fact(chunk, f"tea of round {round_}", len(texts))
            patches = [
                LinePatch(at, at + 1, 0, ()),
                LinePatch(len(texts) + 1, len(texts) + 1, 1, (new,)),
            ]
            await index.patch(FACTS, f"d{round_ + 1}", patches)
            del texts[at - 1]
            texts.append(new.text)
            if round_ % 3 == 0:
                found = await where(index, texts[-1])
                assert (len(texts), len(texts), texts[-1]) in found
        for text in texts[:5]:
            line = texts.index(text) + 1
            assert (line, line, text) in await where(index, text)


@pytest.mark.parametrize("is_searched", [False, True])
async def test_what_moves_while_all_is_loaded_anew_is_found_where_it_is(store, chunk, is_searched):
    class Slow(SqliteChunks):
        gates: tuple[asyncio.Event, ...] = ()  # of the next loads

        async def load(self, after, limit, audience):
            rows = await super().load(after, limit, audience)
            if self.gates:
                gate, *self.gates = self.gates
                await gate.wait()
            return rows

    slow, gate = Slow(store._db), asyncio.Event()
    async with Mirrors.open(slow) as mirrors:
        entries = [entry(fact(chunk, f"tea number {n}", n)) for n in range(1, 20)]
        await slow.replace(FACTS, "d", entries)
        await mirrors.ready(OWNER)
        slow.gates = (gate,)
        renewed = asyncio.create_task(mirrors.renew(OWNER))
        while slow.gates:
            await asyncio.sleep(0)
        await mirrors.change(slow.patch(FACTS, "d2", [LinePatch(1, 3, 0, ())]), moved=FACTS)
        if is_searched:  # the present mirror knows of the move by then
            await mirrors.ready(OWNER)
        gate.set()
        await renewed
        options = SearchSettings().options(SearchQuery("tea number 9", limit=1), date(2026, 11, 21))
        found = await mirrors.search(OWNER, ["tea number 9"], None, "", options)
        assert [one.start_line for one in found.hits[0].chunks] == [7]


async def test_lines_are_not_read_again_after_others_were_appended(store, chunk):
    class Watched(SqliteChunks):
        reads = 0

        async def lines(self, path):
            self.reads += 1
            return await super().lines(path)

    watched = Watched(store._db)
    async with Mirrors.open(watched) as mirrors:
        await watched.replace(FACTS, "d", [entry(fact(chunk, "tea number 1", 1))])
        await mirrors.ready(OWNER)
        for line in (2, 3, 4):
            added = entry(fact(chunk, f"tea number {line}", line))
            patch = watched.patch(FACTS, f"d{line}", [LinePatch(line, line, 1, (added,))])
            await mirrors.change(patch, moved=FACTS)
            await mirrors.ready(OWNER)
        assert watched.reads <= 1
        await mirrors.change(watched.patch(FACTS, "d", [LinePatch(1, 2, 0, ())]), moved=FACTS)
        await mirrors.ready(OWNER)
        assert watched.reads <= 2
