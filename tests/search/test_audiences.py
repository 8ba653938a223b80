"""What a session must not find does not exist for it: not in hits, scores, counts or reasons."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from datetime import date

import pytest

from agentd.core.search import OWNER, PUBLIC, Audience, Chunk, SearchQuery, Source, audience_of
from agentd.core.turn import MAIN, SessionKey, SessionKind
from agentd.memory.index.search import words
from agentd.memory.index.search.audiences import KEPT, Mirrors
from agentd.memory.index.search.entries import entry
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.index.search.patient_embedder import patient
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import HashEmbedder, MemoryChunks, MemoryIndexDouble

SESSIONS = ("main", "group:a", "group:b", "isolated:a")
AUDIENCES = (PUBLIC, *(Audience(key) for key in SESSIONS[1:]), Audience("group:new"))
SAID = (
    *("pin", "boiler", "kettle", "tea", "dentist", "berlin", "friday", "code", "door", "garden"),
    *("Anna", "Bo", "4417", "7715"),
)


def invented(seed: int) -> dict[str, list[Chunk]]:
    """Files of all scopes in a random order, which say about the same."""
    dice = random.Random(seed)
    paths = {f"sessions/{key}.jsonl": key for key in SESSIONS}
    paths |= {f"projects/{n}.md": "" for n in range(4)} | {"MEMORY.md": "main", "USER.md": "main"}
    files = {}
    for path in dice.sample(sorted(paths), len(paths)):
        talk = path.startswith("sessions/")
        source = Source.SESSIONS if talk else Source.NOTES
        files[path] = [
            Chunk(
                path,
                line,
                line,
                " ".join(dice.choices(SAID, k=dice.randint(1, 9))),
                source,
                paths[path],
                date(2026, 11, dice.randint(1, 20)) if talk else None,
                dice.choice(("Anna", "assistant")) if talk else "",
            )
            for line in range(1, dice.randint(2, 40))
        ]
    return files


@asynccontextmanager
async def an_index(kind, folder, clock):
    """An empty index; "words" is one whose mirrors are never ready."""
    if kind == "double":
        yield MemoryIndexDouble()
        return
    if kind == "live on a double":
        async with LiveIndex.open(MemoryChunks(), clock, patient([HashEmbedder()], clock)) as index:
            yield index
        return
    folder.mkdir()
    embedders = [HashEmbedder()] if kind == "vectors" else []
    async with Database.open(folder / "index.db", INDEX, synchronous="NORMAL") as db:
        patience = 0.0 if kind == "words" else 10.0
        async with LiveIndex.open(
            SqliteChunks(db), clock, patient(embedders, clock), patience=patience
        ) as index:
            yield index


async def fill(index, files, audience):
    """What exists for an audience, and changes of it."""
    for path, chunks in files.items():
        seen = [chunk for chunk in chunks if audience.sees(chunk.scope)]
        if seen:
            await index.replace(path, "d", seen[::2])
    for path, chunks in files.items():
        if seen := [chunk for chunk in chunks if audience.sees(chunk.scope)]:
            await index.extend(path, "d2", seen[1::2])
    gone = [path for path in files if path.startswith(("projects/0", "sessions/group:b"))]
    await index.remove(gone)
    await index.settle()


async def answers(index, audience):
    queries = ["pin", "kettle 4417", "Anna dentist friday", "unheard of"]
    limits = ({"limit": 20}, {"limit": 5, "max_tokens": 20}, {"min_score": 0.4})
    some = ({"sources": frozenset({source})} for source in Source)
    return [
        await index.search(SearchQuery(query, **more), audience)
        for more in (*limits, *some)
        for query in queries
    ]


@pytest.mark.parametrize("kind", ["live", "vectors", "words", "live on a double", "double"])
@pytest.mark.parametrize("seed", range(2))
async def test_an_audience_finds_exactly_what_it_would_find_if_there_were_no_more(
    tmp_path, clock, kind, seed
):
    files = invented(seed)
    async with an_index(kind, tmp_path / "all", clock) as whole:
        await fill(whole, files, OWNER)
        everything = await answers(whole, OWNER)
        for number, audience in enumerate(AUDIENCES):
            async with an_index(kind, tmp_path / str(number), clock) as alone:
                await fill(alone, files, audience)
                found, wanted = await answers(whole, audience), await answers(alone, audience)
                assert found == wanted
                assert everything != wanted  # so would it be if the filter were broken
                seen = {hit.chunk.scope for one in found for hit in one.hits}
                assert seen <= {"", audience.own}
                assert audience.own not in SESSIONS or audience.own == "group:b" or len(seen) == 2


def test_the_owner_finds_everything_and_a_turn_of_another_kind_none_of_his():
    assert audience_of(MAIN, SessionKind.OWNER) == OWNER
    assert audience_of(SessionKey("group:a"), SessionKind.GROUP) == Audience("group:a")
    assert audience_of(SessionKey("cron"), SessionKind.ISOLATED) == Audience("cron")
    for key in ("main", "chat:x", "heartbeat:main"):
        assert audience_of(SessionKey(key), SessionKind.ISOLATED) == PUBLIC
    assert OWNER.sees("group:a")
    assert not PUBLIC.sees("main")


async def test_of_sessions_mirrors_those_used_last_are_kept(store, chunk):
    keys = [f"group:{n}" for n in range(KEPT + 3)]
    for key in keys:
        path = f"sessions/{key}.jsonl"
        own = chunk(f"tea of {key}", path, source=Source.SESSIONS, scope=key)
        await store.replace(path, "d", [entry(own)])
    async with Mirrors.open(store, []) as mirrors:
        await mirrors.ready(OWNER)
        await mirrors.ready(PUBLIC)
        for key in keys:
            await mirrors.ready(Audience(key))
            await mirrors.ready(Audience(keys[0]))
        kept = {audience.own for audience in mirrors.held}
        assert kept == {None, "", keys[0], *keys[1 - KEPT :]}


async def test_a_session_that_has_said_nothing_shares_the_mirror_of_the_public(store, chunk):
    async with Mirrors.open(store, []) as mirrors:
        own = Audience("group:a")
        assert await mirrors.serving(own) == PUBLIC
        path = "sessions/group:a.jsonl"
        said = chunk("tea", path, source=Source.SESSIONS, scope="group:a")
        await store.replace(path, "d", [entry(said)])
        assert await mirrors.serving(own) == own
        assert await mirrors.serving(OWNER) == OWNER


async def test_keywords_of_the_database_count_what_is_shared_and_ones_own(store, chunk):
    path = "sessions/group:a.jsonl"
    said = chunk("the kettle is blue", path, source=Source.SESSIONS, scope="group:a")
    await store.replace(path, "d", [entry(said)])
    await store.replace("g.md", "d", [entry(chunk("a kettle", "g.md"))])
    terms = words.terms("blue kettle")
    own = await store.keyword(terms, Audience("group:a"), limit=5)
    assert [hit.chunk.path for hit in own.hits] == [path, "g.md"]
    other = await store.keyword(terms, Audience("group:b"), limit=5)
    assert [hit.chunk.path for hit in other.hits] == ["g.md"]
    only = frozenset({Source.SESSIONS})
    assert (await store.keyword(terms, PUBLIC, limit=5, sources=only)).reason == "no_match"
    assert (await store.keyword(["blue"], PUBLIC, limit=5)).reason == "no_match"
