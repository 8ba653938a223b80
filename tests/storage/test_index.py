"""The contract of ChunkStore, over both implementations, and what the one on the disk adds to
it.
"""

from __future__ import annotations

from datetime import date

import pytest

from agentd.core.errors import StorageCorrupt
from agentd.core.search import MOVES, OWNER, PUBLIC, Audience, Chunk, LinePatch, Source
from agentd.memory.index.search import words
from agentd.memory.index.search.entries import entry
from agentd.storage import index as module
from agentd.storage.index import SqliteChunks
from agentd.storage.index_rows import PARTS
from agentd.storage.migrations import INDEX, Schema
from agentd.storage.sqlite import Database
from agentd.testing import MemoryChunks

NOTE = "memory/2026-11-21.md"


def chunk(text, path=NOTE, line=1, source=Source.NOTES, scope="", **more):
    return Chunk(path, line, line + 2, text, source, scope, date(2026, 11, 21), **more)


def entries(*texts, **more):
    return [entry(chunk(text, line=3 * n + 1, **more)) for n, text in enumerate(texts)]


async def test_from_a_line_on_chunks_are_others_and_those_before_it_stay(store):
    await store.replace(NOTE, "d", entries("a", "b", "c"))
    own = [entry(chunk(text, line=line)) for text, line in (("c", 7), ("d", 10))]
    assert await store.replace(NOTE, "d2", own, since=7) == []
    assert await stored(store) == ["a", "b", "c", "d"]
    assert await store.replace(NOTE, "d3", own[1:], since=4) == [2, 3]
    assert await stored(store) == ["a", "d"]


async def paths(store, query, audience=OWNER, **more):
    found = await store.keyword(words.terms(query), audience, limit=10, **more)
    return [h.chunk.path for h in found.hits]


async def stored(store, audience=OWNER):
    return [row.chunk.text for row in await store.load(0, 100, audience)]


@pytest.fixture(params=["sqlite", "memory"])
def store(request):
    if request.param == "memory":
        return MemoryChunks()
    return request.getfixturevalue("sqlite")


@pytest.fixture
async def sqlite(index_db):
    return SqliteChunks(index_db)


async def test_a_chunk_comes_back_as_it_was(store):
    whole = chunk("tea", speaker="Anna", context="Kitchen", importance=0.5, scope="main")
    await store.replace(NOTE, "d", [entry(whole)])
    (row,) = await store.load(0, 10, OWNER)
    assert row.chunk == whole
    assert await store.load(0, 10, PUBLIC) == []


async def test_ids_grow_and_are_never_used_twice(store):
    assert await store.replace(NOTE, "d", entries("a", "b")) == []
    gone = await store.replace(NOTE, "d2", entries("c"))
    assert gone == [1, 2]
    await store.extend(NOTE, "d3", entries("d"))
    assert await store.ids() == [3, 4]
    assert await store.remove([NOTE, "never there"]) == [3, 4]
    await store.extend(NOTE, "d", entries("e"))
    assert await store.ids() == [5]


async def test_chunks_that_are_the_same_keep_their_ids(store):
    await store.replace(NOTE, "d", entries("a", "b", "c"))
    assert await store.replace(NOTE, "d2", entries("a", "B", "c", "d")) == [2]
    assert await store.ids() == [1, 3, 4, 5]
    assert await stored(store) == ["a", "c", "B", "d"]
    assert await store.digests(Source.NOTES) == {NOTE: "d2"}
    assert await paths(store, "b") == [NOTE]
    assert await store.replace(NOTE, "d3", entries("d", "a")) == [1, 3, 4, 5]


async def test_chunks_of_the_same_lines_stay_in_order(store):
    long = [entry(chunk(text)) for text in ("first", "second", "third")]
    await store.replace(NOTE, "d", long)
    changed = [long[0], entry(chunk("another")), long[2]]
    assert await store.replace(NOTE, "d2", changed) == [1, 2, 3]
    assert await stored(store) == ["first", "another", "third"]
    assert await store.replace(NOTE, "d3", changed) == []


async def test_outdated_files_keep_their_chunks_and_lose_their_digests(store):
    await store.replace(NOTE, "d", entries("a"))
    await store.outdate()
    assert await store.digests(Source.NOTES) == {NOTE: ""}
    assert await stored(store) == ["a"]


async def test_chunks_are_loaded_in_slices(store):
    await store.replace(NOTE, "d", entries("a", "b", "c"))
    first = await store.load(0, 2, OWNER)
    rest = await store.load(first[-1].id, 2, OWNER)
    assert [row.chunk.text for row in [*first, *rest]] == ["a", "b", "c"]


async def test_texts_without_a_vector_are_pending_until_they_have_one(store):
    await store.replace(NOTE, "d", entries("a", "b", "a"))
    batch = await store.pending("m", 0, 10)
    assert [row.chunk.text for row in batch] == ["a", "b", "a"]
    assert await store.count_pending("m", 0, 10) == 3
    assert await store.count_pending("m", 0, 2) == 2
    assert await store.put_vectors("m", {batch[0].digest: b"vv"}) == [(1, b"vv"), (3, b"vv")]
    assert [row.id for row in await store.pending("m", 0, 10)] == [2]
    assert await store.pending("m", 2, 10) == []
    assert await store.count_pending("other model", 0, 10) == 3
    assert await store.vectors("m", 0, 2, OWNER) == [(1, b"vv")]
    assert await store.vectors("m", 1, 3, OWNER) == [(3, b"vv")]
    assert await store.vectors("other model", 0, 3, OWNER) == []


async def test_a_vector_of_a_text_that_is_gone_is_not_stored(store):
    await store.replace(NOTE, "d", entries("secret"))
    (row,) = await store.pending("m", 0, 10)
    await store.erase([NOTE])
    assert await store.put_vectors("m", {row.digest: b"vv"}) == []
    await store.replace(NOTE, "d", entries("secret"))
    assert await store.count_pending("m", 0, 10) == 1


async def test_vectors_outlive_their_chunks_unless_these_are_erased(store):
    await store.replace(NOTE, "d", entries("a", "b"))
    for row in await store.pending("m", 0, 10):
        await store.put_vectors("m", {row.digest: b"vv"})
    await store.remove([NOTE])
    await store.extend("b.md", "d", entries("b", path="b.md"))
    assert await store.count_pending("m", 0, 10) == 0
    await store.erase(["never there"])
    await store.extend("c.md", "d", entries("a", path="c.md"))
    assert [row.chunk.path for row in await store.pending("m", 0, 10)] == ["c.md"]


async def test_vectors_that_no_chunk_needs_are_dropped_when_they_are_many(sqlite, index_db):
    store = sqlite
    await store.replace(NOTE, "d", entries("kept"))
    (row,) = await store.pending("m", 0, 10)
    await store.put_vectors("m", {row.digest: b"vv"})

    def fill(conn):
        rows = ((n.to_bytes(4), b"vv") for n in range(module.CACHED + 7))
        conn.executemany("INSERT INTO embeddings (model_id, digest, vector) VALUES (1, ?, ?)", rows)

    await index_db.write(fill)
    await store.prune()
    left = await index_db.read(
        lambda conn: [row[0] for row in conn.execute("SELECT digest FROM embeddings ORDER BY id")]
    )
    assert len(left) == module.CACHED + 1
    assert left[:2] == [row.digest, (7).to_bytes(4)]


async def test_notes_about_the_index_are_kept(store):
    assert await store.meta("chunker") == ""
    await store.set_meta("chunker", "lines")
    await store.set_meta("chunker", "words")
    assert await store.meta("chunker") == "words"


async def test_what_is_the_owners_alone_does_not_exist_for_others(store):
    mine = {"path": "MEMORY.md", "scope": "main"}
    await store.replace("MEMORY.md", "d", entries("the pin is 4711", **mine))
    found = await store.keyword(["pin"], PUBLIC, limit=5)
    assert (found.hits, found.reason) == ((), "nothing_indexed")
    await store.replace("g.md", "d", entries("a pin board", path="g.md"))
    before = await store.keyword(["pin"], PUBLIC, limit=5)
    await store.extend("MEMORY.md", "d2", entries(*(f"pin {n}" for n in range(80)), **mine))
    assert await store.keyword(["pin"], PUBLIC, limit=5) == before
    await store.remove(["MEMORY.md"])
    assert await store.keyword(["pin"], PUBLIC, limit=5) == before


async def test_a_session_has_what_is_shared_and_its_own(store):
    path = "sessions/group:a.jsonl"
    assert not await store.has("group:a")
    own = entries("tea of a group", path=path, source=Source.SESSIONS, scope="group:a")
    await store.replace(path, "d", own)
    await store.replace("g.md", "d", entries("tea for all", path="g.md"))
    await store.replace("MEMORY.md", "d", entries("tea", path="MEMORY.md", scope="main"))
    (row,) = await store.pending("m", 0, 1)
    await store.put_vectors("m", {row.digest: b"vv"})
    assert await store.has("group:a")
    group, other = Audience("group:a"), Audience("group:b")
    assert await stored(store, group) == ["tea of a group", "tea for all"]
    assert await stored(store, other) == await stored(store, PUBLIC) == ["tea for all"]
    assert await store.vectors("m", 0, 9, group) == [(1, b"vv")]
    assert await store.vectors("m", 0, 9, other) == []
    assert set(await paths(store, "tea", group)) == {path, "g.md"}
    assert await paths(store, "tea", other) == ["g.md"]
    assert len(await paths(store, "tea")) == 3


async def test_sources_narrow_the_search(store):
    path = "sessions/main.jsonl"
    await store.replace(NOTE, "d", entries("tea"))
    await store.replace(path, "d", entries("tea", path=path, source=Source.SESSIONS))
    only = frozenset({Source.SESSIONS})
    assert await paths(store, "tea", sources=only) == [path]
    assert len(await paths(store, "tea")) == 2
    assert await paths(store, "tea", sources=frozenset()) == []


async def test_equal_scores_are_ordered_by_path_and_line(store):
    for path in ("b.md", "a.md", "c.md"):
        await store.replace(path, "d", entries("alike words", "alike words", path=path))
    found = await store.keyword(words.terms("alike"), OWNER, limit=5)
    places = [(h.chunk.path, h.chunk.start_line) for h in found.hits]
    assert places == [("a.md", 1), ("a.md", 4), ("b.md", 1), ("b.md", 4), ("c.md", 1)]


async def test_common_words_do_not_hide_the_telling_one(store):
    filler = (f"the name of thing number {n} is known" for n in range(300))
    await store.replace("f.md", "d", entries(*filler, path="f.md"))
    await store.replace(NOTE, "d", entries("Rex barks at the postman"))
    assert (await paths(store, "what name and number is known of Rex"))[0] == NOTE


async def test_words_that_nothing_holds_find_nothing(store):
    assert (await store.keyword(["tea"], OWNER, limit=5)).reason == "nothing_indexed"
    await store.replace(NOTE, "d", entries("tea"))
    for terms in (["coffee"], [], ["\x00"]):
        found = await store.keyword(terms, OWNER, limit=5)
        assert (found.hits, found.reason) == ((), "no_match")


@pytest.mark.parametrize("damage", ["not a database", "zeros", "newer", "foreign"])
async def test_an_index_that_cannot_be_used_is_put_aside(tmp_path, damage):
    path = tmp_path / "index.db"
    async with Database.open(path, INDEX) as db:
        await SqliteChunks(db).replace(NOTE, "d", entries("tea " * 2000))
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
        store = SqliteChunks(db)
        assert (await store.keyword(["tea"], OWNER, limit=1)).reason == "nothing_indexed"
        await store.replace(NOTE, "d", entries("tea"))
    assert (tmp_path / "index.db.corrupt-1").read_bytes() == old
    async with Database.open(path, INDEX) as db:
        assert db.problems() == ()
        assert await paths(SqliteChunks(db), "tea") == [NOTE]


async def test_an_index_that_lacks_a_table_is_put_aside_where_it_is_asked_for(tmp_path):
    async with Database.open(tmp_path / "index.db", INDEX) as db:
        store = SqliteChunks(db)
        await store.replace(NOTE, "d", entries("tea"))
        await db.execute("ALTER TABLE files RENAME TO others", ())
        with pytest.raises(StorageCorrupt):
            await store.digests(Source.NOTES)
        assert db.begun_anew == 1
        assert await store.digests(Source.NOTES) == {}
        await store.replace(NOTE, "d", entries("tea"))
        assert await paths(store, "tea") == [NOTE]
    assert (tmp_path / "index.db.corrupt-1").exists()


async def test_chunks_of_before_there_were_scopes_get_theirs(tmp_path):
    before = Schema(INDEX.name, INDEX.application_id, INDEX.steps[:2], derived=True)
    held = {
        "a.md": (0, "notes", "tea shared"),
        "MEMORY.md": (1, "notes", "tea private"),
        "sessions/main.jsonl": (1, "sessions", "tea of the owner"),
        "sessions/group:a.jsonl": (0, "sessions", "tea of a group"),
    }

    def write(conn):
        for number, (path, (owner_only, source, text)) in enumerate(held.items(), 1):
            conn.execute("INSERT INTO files VALUES (?, ?, ?, 'd')", (number, path, source))
            row = (number, number, owner_only, 3, 4, None, "", "", 1.0, text, text, b"", b"")
            conn.execute(f"INSERT INTO chunks VALUES ({', '.join('?' * len(row))})", row)
        for table in ("words_all", "words_shared"):
            where = "" if table == "words_all" else " WHERE owner_only = 0"
            fill = f"INSERT INTO {table} (rowid, terms) SELECT id, terms FROM chunks{where}"
            conn.execute(fill)

    async with Database.open(tmp_path / "index.db", before) as db:
        await db.write(write)
    async with Database.open(tmp_path / "index.db", INDEX) as db:
        store = SqliteChunks(db)
        rows = await store.load(0, 10, OWNER)
        assert [row.chunk.scope for row in rows] == ["", "main", "main", "group:a"]
        assert [(row.chunk.start_line, row.chunk.end_line) for row in rows] == [(3, 4)] * 4
        assert await paths(store, "tea", PUBLIC) == ["a.md"]
        assert set(await paths(store, "tea", Audience("group:a"))) == {
            "a.md",
            "sessions/group:a.jsonl",
        }
        assert len(await paths(store, "tea")) == 4
        assert await store.remove(list(held)) == [1, 2, 3, 4]
        assert await paths(store, "tea", PUBLIC) == []


async def lines(store, path=NOTE):
    """What stands where, by id."""
    held = {row.id: row.chunk for row in await store.load(0, 100, OWNER)}
    told = await store.lines(path)
    assert [(n, held[n].start_line, held[n].end_line) for n, _, _ in told] == list(told)
    return {number: (held[number].text, first) for number, first, _ in told}


async def test_only_the_terms_beside_those_of_a_deleted_chunk_are_written_anew(index_db):
    store = SqliteChunks(index_db)
    own = [entry(chunk(f"{n} zebrafinch" if n == 99 else f"{n}", line=n)) for n in range(1, 101)]
    await store.replace(NOTE, "d", own)
    await store.patch(NOTE, "d2", [LinePatch(100, 101, 0, ())])
    await store.erase(())

    def kept(conn):
        query = "SELECT id, block FROM words_PART_data ORDER BY id"
        return [list(map(tuple, conn.execute(query.replace("PART", part)))) for part in PARTS]

    before = await index_db.read(kept)
    assert b"zebrafinch" in b"".join(block for part in before for _, block in part)
    await store.patch(NOTE, "d3", [LinePatch(99, 100, 0, ())])
    await store.replace("other.md", "d", entries("z", path="other.md"))
    await store.erase(())
    after = await index_db.read(kept)
    assert b"zebrafinch" not in b"".join(block for part in after for _, block in part)
    changed = [n for n, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert changed == [99 % 8, 101 % 8]


async def test_what_moves_is_not_written_anew(index_db):
    store = SqliteChunks(index_db)
    own = [entry(chunk(f"{n} " + "word " * 200, line=n)) for n in range(1, 1_001)]
    await store.replace(NOTE, "d", own)
    await index_db.erase(lambda _: None)  # leaves an empty log
    log = index_db.path.with_name(f"{index_db.path.name}-wal")
    await store.patch(NOTE, "d2", [LinePatch(1, 1, 1, ())])
    assert 0 < log.stat().st_size < 1_000_000 / 5


async def test_what_stands_behind_lines_that_change_moves_with_its_lines(store):
    texts = ("apple", "bramble", "cedar", "daisy", "elder")
    own = [entry(chunk(text, line=n)) for n, text in enumerate(texts, 1)]
    await store.replace(NOTE, "d", own)
    await store.replace("other.md", "d", entries("z", path="other.md"))
    new = tuple(entry(chunk(text, line=line)) for text, line in (("xylem", 4), ("yarrow", 5)))
    patches = [LinePatch(2, 3, 0, ()), LinePatch(5, 5, 2, new)]
    assert await store.patch(NOTE, "d2", patches) == [2]
    assert await lines(store) == {
        1: ("apple", 1), 3: ("cedar", 2), 4: ("daisy", 3), 7: ("xylem", 4), 8: ("yarrow", 5), 5: ("elder", 6),
    }  # fmt: skip
    assert await lines(store, "other.md") == {6: ("z", 1)}
    assert (await store.digests(Source.NOTES))[NOTE] == "d2"
    assert await paths(store, "bramble") == []
    assert await paths(store, "yarrow") == [NOTE]
    before = await store.meta(MOVES)
    await store.patch(NOTE, "d2", [LinePatch(7, 7, 1, (entry(chunk("zinnia", line=7)),))])
    assert await store.meta(MOVES) == before, "nothing stands behind appended lines"
    await store.patch(NOTE, "d2", [LinePatch(7, 8, 0, ())])
    assert await store.patch(NOTE, "d3", [LinePatch(1, 2, 0, ())]) == [1]
    assert await store.meta(MOVES) not in ("", before)
    assert [text for text, _ in (await lines(store)).values()] == [
        "cedar",
        "daisy",
        "elder",
        "xylem",
        "yarrow",
    ]
