"""The contract of MemoryIndex, over every implementation, and what full text adds to it."""

from __future__ import annotations

from datetime import date

import pytest

from agentd.domain.memory import Chunk, Source
from agentd.storage.index import SqliteIndex
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database

NOTE = "memory/2026-11-21.md"


def chunk(text, path=NOTE, line=1, source=Source.NOTES, owner_only=False):
    return Chunk(path, line, line + 2, text, source, owner_only, date(2026, 11, 21))


async def paths(index, query, owner=True, **more):
    found = await index.search(query, owner=owner, limit=10, **more)
    return [h.chunk.path for h in found.hits]


@pytest.fixture
async def index(index_db):
    return SqliteIndex(index_db)


async def test_a_hit_is_the_chunk_with_its_scores(stores):
    stored = chunk("Anna likes green tea")
    await stores.index.replace(NOTE, "d1", [stored, chunk("nothing of that kind", line=9)])
    found = await stores.index.search("green tea", owner=True, limit=5)
    (hit,) = found.hits
    assert (hit.chunk, found.reason) == (stored, "")
    assert 0 < hit.score < 1
    assert hit.scores == {"keyword": hit.score}


async def test_replace_extend_remove_and_clear_are_seen_at_once(stores):
    index = stores.index
    await index.replace(NOTE, "d1", [chunk("alpha")])
    await index.extend(NOTE, "d2", [chunk("beta", line=5)])
    assert await paths(index, "alpha") == await paths(index, "beta") == [NOTE]
    assert await index.digests(Source.NOTES) == {NOTE: "d2"}
    assert await index.digests(Source.SESSIONS) == {}
    await index.replace(NOTE, "d3", [chunk("gamma")])
    assert await paths(index, "alpha beta") == []
    assert await paths(index, "gamma") == [NOTE]
    state = await index.state()
    assert (state.files, state.chunks) == (1, 1)
    await index.replace("empty.md", "d", [])
    assert set(await index.digests(Source.NOTES)) == {NOTE, "empty.md"}
    await index.remove([NOTE, "never indexed"])
    assert await paths(index, "gamma") == []
    await index.clear()
    assert await index.digests(Source.NOTES) == {}


async def test_reasons_say_why_nothing_came_back(stores):
    assert (await stores.index.search("tea", owner=True, limit=5)).reason == "nothing_indexed"
    await stores.index.replace(NOTE, "d", [chunk("tea")])
    assert (await stores.index.search("coffee", owner=True, limit=5)).reason == "no_match"
    assert (await stores.index.search("?!", owner=True, limit=5)).reason == "empty_query"
    assert (await stores.index.search("", owner=True, limit=5)).reason == "empty_query"


async def test_what_is_the_owners_alone_does_not_exist_for_others(stores):
    index = stores.index
    await index.replace("MEMORY.md", "d", [chunk("the pin is 4711", "MEMORY.md", owner_only=True)])
    found = await index.search("pin", owner=False, limit=5)
    assert (found.hits, found.reason) == ((), "nothing_indexed")
    await index.replace("g.md", "d", [chunk("a pin board", "g.md")])
    before = await index.search("pin", owner=False, limit=5)
    more = [chunk(f"pin {n}", "MEMORY.md", n, owner_only=True) for n in range(1, 80)]
    await index.extend("MEMORY.md", "d2", more)
    assert await index.search("pin", owner=False, limit=5) == before
    await index.remove(["MEMORY.md"])
    assert await index.search("pin", owner=False, limit=5) == before


async def test_sources_narrow_the_search(stores):
    path = "sessions/main.jsonl"
    await stores.index.replace(NOTE, "d", [chunk("tea")])
    await stores.index.replace(path, "d", [chunk("tea", path, source=Source.SESSIONS)])
    only = frozenset({Source.SESSIONS})
    assert await paths(stores.index, "tea", sources=only) == [path]
    assert len(await paths(stores.index, "tea")) == 2
    assert await paths(stores.index, "tea", sources=frozenset()) == []


async def test_equal_scores_are_ordered_by_path_and_line(stores):
    for path in ("b.md", "a.md", "c.md"):
        both = [chunk("same words", path, 7), chunk("same words", path, 3)]
        await stores.index.replace(path, "d", both)
    found = await stores.index.search("same", owner=True, limit=5)
    places = [(h.chunk.path, h.chunk.start_line) for h in found.hits]
    assert places == [("a.md", 3), ("a.md", 7), ("b.md", 3), ("b.md", 7), ("c.md", 3)]


async def test_the_chunk_with_more_of_the_words_comes_first(stores):
    await stores.index.replace("one.md", "d", [chunk("dentist dentist dentist", "one.md")])
    await stores.index.replace("two.md", "d", [chunk("dentist on tuesday in berlin", "two.md")])
    assert (await paths(stores.index, "dentist tuesday berlin"))[0] == "two.md"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        pytest.param("我在北京工作", "北京", id="chinese inside a run"),
        pytest.param("我在北京工作", "作", id="one last letter"),
        pytest.param("明日は東京へ行きます", "東京", id="japanese"),
        pytest.param("カメラを買った", "カメラ", id="katakana"),
        pytest.param("서울에서 만나자", "서울", id="korean with a particle"),
        pytest.param("Café zum Löwen", "cafe lowen", id="diacritics"),
        pytest.param("Привет, Москва", "МОСКВА", id="cyrillic case"),
        pytest.param("the file state.db grew", "state.db", id="punctuation inside"),
        pytest.param("e\u0301cole", "école", id="decomposed"),
        pytest.param("call 0171-2345678", "2345678", id="numbers"),
    ],
)
async def test_words_of_many_scripts_are_found(index, text, query):
    await index.replace("other.md", "d", [chunk("quite another thing 上海", "other.md")])
    await index.replace(NOTE, "d", [chunk(text)])
    assert await paths(index, query) == [NOTE]


@pytest.mark.parametrize(
    "query",
    [
        *('"', "'", "a\x00b", "AND", "NOT tea", "tea OR", "NEAR(", "(tea", "tea*", "^tea", "-tea"),
        *(
            "text:tea",
            "col : x",
            "{a b}",
            "\\",
            "%",
            "_",
            "\ud800",
            "\U0010ffff",
            "tea; DROP TABLE",
        ),
        pytest.param("x" * 100_000, id="one long word"),
        pytest.param("tea " * 25_000, id="100 kB of one word"),
        pytest.param(" ".join(f"w{n}" for n in range(20_000)), id="20,000 words"),
        pytest.param("茶" * 100_000, id="a long run"),
        pytest.param('"' * 10_000, id="quotes alone"),
    ],
)
async def test_any_text_is_a_valid_query(index, query):
    await index.replace(NOTE, "d", [chunk("a cup of tea")])
    found = await index.search(query, owner=True, limit=5)
    assert found.reason in {"", "no_match", "empty_query"}
    assert (found.reason == "") == bool(found.hits)


@pytest.mark.parametrize("text", ["a\x00tea", "half \ud800 tea", "\ufeff tea", "🍵tea"])
async def test_any_text_can_be_indexed(index, text):
    await index.replace(NOTE, "d", [chunk(text)])
    await index.replace(NOTE, "d2", [chunk("gone")])
    assert await paths(index, "tea") == []
    assert await paths(index, "gone") == [NOTE]


async def test_common_words_do_not_hide_the_telling_one(index):
    filler = [chunk(f"what is the name of thing {n}", "f.md", n) for n in range(1, 300)]
    await index.replace("f.md", "d", filler)
    await index.replace(NOTE, "d", [chunk("Rex barks at the postman")])
    assert (await paths(index, "what is the name of Rex"))[0] == NOTE
    assert len(await paths(index, "what is the")) == 10


async def test_a_rebuild_answers_the_same(index):
    texts = [f"note {n} about tea and {'rain' if n % 3 else 'snow'}" for n in range(60)]
    chunks = [chunk(t, line=n + 1) for n, t in enumerate(texts)]
    await index.replace(NOTE, "d", chunks)
    before = await index.search("tea snow 7", owner=True, limit=20)
    await index.clear()
    await index.replace(NOTE, "d", chunks)
    assert await index.search("tea snow 7", owner=True, limit=20) == before


@pytest.mark.parametrize("damage", ["not a database", "zeros", "newer", "foreign"])
async def test_an_index_that_cannot_be_used_is_put_aside(tmp_path, damage):
    path = tmp_path / "index.db"
    async with Database.open(path, INDEX) as db:
        await SqliteIndex(db).replace(NOTE, "d", [chunk("tea " * 2000)])
        if damage in {"newer", "foreign"}:
            pragma = "user_version = 999" if damage == "newer" else "application_id = 5"
            await db.execute(f"PRAGMA {pragma}", ())
    if damage == "not a database":
        path.write_bytes(b"hello" * 1000)
    if damage == "zeros":
        content = path.read_bytes()
        path.write_bytes(content[:4096] + bytes(len(content) - 4096))
    old = path.read_bytes()
    async with Database.open(path, INDEX) as db:
        (problem,) = db.problems()
        assert problem.code == "index_rebuilt"
        index = SqliteIndex(db)
        assert (await index.search("tea", owner=True, limit=1)).reason == "nothing_indexed"
        await index.replace(NOTE, "d", [chunk("tea")])
    assert (tmp_path / "index.db.corrupt-1").read_bytes() == old
    async with Database.open(path, INDEX) as db:
        assert db.problems() == ()
        assert await paths(SqliteIndex(db), "tea") == [NOTE]


async def test_an_index_damaged_while_open_begins_anew(tmp_path):
    async with Database.open(tmp_path / "index.db", INDEX) as db:
        index = SqliteIndex(db)
        await index.replace(NOTE, "d", [chunk("tea")])
        await db.execute("UPDATE words_all_data SET block = x'ff' WHERE id > 10", ())
        found = await index.search("tea", owner=True, limit=5)
        assert (found.hits, found.reason) == ((), "indexing")
        assert [p.code for p in db.problems()] == ["index_rebuilt"]
        assert await index.digests(Source.NOTES) == {}
        await index.replace(NOTE, "d", [chunk("tea")])
        assert await paths(index, "tea") == [NOTE]
    assert (tmp_path / "index.db.corrupt-1").exists()
