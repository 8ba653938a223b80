"""What is forgotten stands in no file any more, whatever fails on the way."""

from __future__ import annotations

import asyncio
import io
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import structlog
from prompt_toolkit.history import FileHistory

from agentd import failpoints
from agentd.domain.alert import NewAlert
from agentd.domain.erasure import MASK, Needles
from agentd.domain.fact import (
    Category,
    ErasureReport,
    Fact,
    FactSource,
    Provenance,
    Sighting,
    Triple,
)
from agentd.domain.memory import OWNER
from agentd.domain.message import Text
from agentd.domain.search import SearchQuery
from agentd.domain.tool import FileAction
from agentd.domain.transcript import NewRow, RowRole
from agentd.domain.turn import MAIN, Kind, SessionKey, StopReason, Turn, TurnRequest
from agentd.domain.workspace import Author, Reader
from agentd.errors import Busy, InvalidRequest, StorageError
from agentd.facts.forgetting import Forgetting, Place
from agentd.graph.keeper import GraphKeeper
from agentd.logs import LogSettings, OpenLog, open_log
from agentd.memory.indexer import Indexer
from agentd.search.live import LiveIndex
from agentd.storage.copies import Copies
from agentd.storage.facts import SqliteFacts
from agentd.storage.graph import SqliteGraph
from agentd.storage.index import SqliteChunks
from agentd.storage.masking import Masking
from agentd.storage.migrations import INDEX, STATE
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.sessions import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.storage.typed import TypedWords
from agentd.testing import FakeClock, HashEmbedder, MemoryFactStore
from agentd.workspace.files import Files
from agentd.workspace.scrub import NoteEraser, VersionEraser
from agentd.workspace.settings import WorkspaceSettings

WORD = "Quastel"
SAID = f"Hello. My hamster is called {WORD}. What now?"
TEXT = f"The user's hamster is called {WORD}."
NEEDLES = Needles((), ((WORD, ()),))
CHAT = SessionKey("chat:one")
PLACES = ("transcripts", "notes", "versions", "graph", "index", "typed", "log")

log = structlog.get_logger()


@dataclass
class Home:
    """A home with everything that keeps words, and what erases them."""

    root: Path
    clock: FakeClock
    db: Database
    facts: SqliteFacts
    sessions: SqliteSessions
    outbox: SqliteOutbox
    files: Files
    graph: GraphKeeper
    index: LiveIndex
    indexer: Indexer
    embedder: HashEmbedder
    opened: OpenLog

    def holding(self, what: bytes = WORD.lower().encode()) -> list[str]:
        """The files that hold it."""
        paths = [path for path in self.root.rglob("*") if path.is_file()]
        assert len(paths) > 5
        return [path.name for path in paths if what in path.read_bytes().lower()]

    def forgetting(self, without: str = "", **instead) -> Forgetting:
        """As after a start; `without` one place."""
        state, ws = self.root / "state", self.root / "workspace"
        notes = NoteEraser(self.files, ws, state / "versions")

        async def again(_: Needles) -> int:
            await self.indexer.sync()
            await self.index.erase(())
            return 0

        async def in_log(needles: Needles) -> int:
            return await asyncio.to_thread(self.opened.erase, needles)

        places = [
            Masking(self.db, self.indexer.without),
            notes,
            VersionEraser(self.files, state / "versions"),
            self.graph,
            Place("index", again),
            Place("typed", TypedWords(state / "chat_history").erase_words),
            Place("log", in_log),
        ]
        assert tuple(place.name for place in places) == PLACES
        kept = [instead.get(place.name, place) for place in places if place.name != without]
        copies = Copies([self.root], [self.db.path])
        return Forgetting(
            self.facts, kept, self.clock, said=self.said, kept=notes.kept, copies=copies.list
        )

    async def said(self, session: SessionKey, seq: int) -> str:
        return "".join(row.text for row in await self.sessions.rows(session, seq, 1))

    async def talk(self, text: str, answer: str, session: SessionKey = MAIN) -> None:
        receipt = await self.sessions.receive(TurnRequest(session, text, f"id {len(text)}"))
        await self.sessions.begin(receipt.turn_id)
        ended = Turn(session, receipt.message_id, receipt.seq, answer, StopReason.END_TURN)
        row = NewRow(RowRole.ASSISTANT, (Text(answer),))
        await self.sessions.finish(receipt.turn_id, ended, [row])

    async def write(self, path: str, text: str) -> None:
        async with self.files.lock(path):
            intent = await self.files.plan(path, FileAction.APPEND, text.encode())
            await self.files.apply(intent, Reader(MAIN, Kind.MAIN), Author("flush"))

    async def plant(self) -> Fact:
        """The word in every place."""
        await self.talk(SAID, f"Noted: {WORD}. Bye.")
        await self.talk("And now?", "Nothing.", CHAT)
        await self.outbox.put(NewAlert(f"Feed {WORD}!", "heartbeat", "main", ("main",)))
        await self.write("memory/2026-11-21.md", f"# Day\n- {WORD} eats nuts.\n- Sun.\n")
        await self.write("memory/2026-11-21.md", "- Rain.\n")
        await self.write("gone.md", f"{WORD} was here\n")
        (self.root / "workspace/gone.md").unlink()
        FileHistory(str(self.root / "state/chat_history")).store_string(SAID)
        log.info("odd_event", text=SAID)
        while "odd_event" not in (self.root / "state/logs/agentd.log").read_text():
            await asyncio.sleep(0)
        await self.indexer.sync()
        await self.index.settle()
        at = self.clock.now()
        fact = Fact(
            "k3f9q2ma", TEXT, Category.PERSONAL, FactSource.EXTRACTED, 0.6, at, at,
            origin=Provenance(MAIN, 1), triple=Triple("user", "hamster name", WORD),
        )  # fmt: skip
        await self.facts.save([fact])
        self.graph.touch()
        await self.graph.level()
        return fact

    async def forget(self, fact: Fact, forgetting: Forgetting) -> ErasureReport:
        """As the book does it."""
        await forgetting.begin([fact])
        await self.facts.bury([fact.id], [b"hash"], self.clock.now())
        self.graph.touch()
        return await forgetting.carry_out()

    async def found(self, text: str) -> list[str]:
        found = await self.index.search(SearchQuery(text, 50), OWNER)
        return [hit.chunk.text for hit in found.hits]


@asynccontextmanager
async def opened_home(root: Path, clock: FakeClock):
    (root / "workspace").mkdir(parents=True, exist_ok=True)
    state = root / "state"
    embedder = HashEmbedder()
    with open_log(LogSettings(), state, clock, {}, io.StringIO()) as opened:
        async with (
            Database.open(state / "state.db", STATE) as db,
            Database.open(state / "index.db", INDEX, synchronous="NORMAL") as index_db,
            LiveIndex.open(SqliteChunks(index_db), clock, [embedder]) as index,
        ):
            sessions = SqliteSessions(db, clock)
            settings = WorkspaceSettings()
            files = Files(root / "workspace", settings, clock, {}, state / "versions")
            indexer = Indexer(index, files, sessions, clock)
            outbox = SqliteOutbox(db, clock)
            facts = SqliteFacts(db)
            chunks, tables = SqliteChunks(index_db), SqliteGraph(index_db)
            graph = GraphKeeper(files, tables, chunks, clock, facts.facts)
            kept = (facts, sessions, outbox, files, graph, index, indexer)
            yield Home(root, clock, db, *kept, embedder, opened)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def home(tmp_path, clock):
    async with opened_home(tmp_path / "home", clock) as home:
        yield home


@pytest.fixture(autouse=True)
def disarmed():
    yield
    failpoints.arm("")


async def test_no_byte_is_left_anywhere_and_everything_else_stays(home):
    fact = await home.plant()
    before = home.holding()
    files = {"state.db-wal", "index.db-wal", "chat_history", "agentd.log"}
    files |= {"2026-11-21.md", "2026-11-21.0"}
    assert files < {*before}
    report = await home.forget(fact, home.forgetting())
    assert home.holding() == []
    once = dict.fromkeys(("notes", "graph", "typed", "log"), 1)
    assert report.places == {"transcripts": 4, "versions": 3, **once}
    assert (report.kept, report.backups, report.pending) == ((), (), ())
    note = (home.root / "workspace/memory/2026-11-21.md").read_text()
    assert note == f"# Day\n- {MASK}\n- Sun.\n- Rain.\n"
    rows = await home.sessions.rows(MAIN, 1, 9)
    assert [row.text for row in rows] == [f"Hello. {MASK} What now?", f"{MASK} Bye."]
    assert [row.text for row in await home.sessions.rows(CHAT, 1, 9)] == ["And now?", "Nothing."]
    assert await home.facts.erasures() == {}
    texts = await home.found("hello rain nothing now")
    assert any("Rain" in text for text in texts)
    assert any("Nothing" in text for text in texts)
    assert not any(WORD in text for text in texts)
    assert await home.forgetting().carry_out() == ErasureReport({})


@pytest.mark.parametrize("place", PLACES)
async def test_a_place_that_is_left_out_is_noticed(home, place):
    fact = await home.plant()
    await home.forget(fact, home.forgetting(without=place))
    assert home.holding()


async def test_no_vector_of_it_is_left(home):
    await home.write("a.md", f"{WORD}\n")
    await home.indexer.sync()
    await home.index.settle()
    path = home.root / "state/index.db"
    stored = await home.index._store.vectors(home.embedder.model, 0, 99, OWNER)
    vectors = [vector for _, vector in stored]
    assert len(vectors) == 1
    in_files = [path, path.with_name("index.db-wal")]
    assert any(vectors[0] in file.read_bytes() for file in in_files)
    await home.forgetting().erase_text(WORD)
    assert not any(vectors[0] in file.read_bytes() for file in in_files)


@pytest.mark.parametrize("count", range(1, len(PLACES) + 1))
async def test_a_crash_after_any_place_is_made_good_at_the_next_start(tmp_path, clock, count):
    async with opened_home(tmp_path / "home", clock) as home:
        fact = await home.plant()
        failpoints.arm(f"erasure.place_done:{count}:raise")
        with pytest.raises(failpoints.FailpointError):
            await home.forget(fact, home.forgetting())
        failpoints.arm("")
        assert home.holding(), "the words to be erased are kept until all is done"
    await finished_by_a_start(tmp_path, clock)


@pytest.mark.parametrize("point", ["erasure.done", "store.deleted", "file.replaced"])
async def test_a_crash_anywhere_else_is_made_good_at_the_next_start(tmp_path, clock, point):
    async with opened_home(tmp_path / "home", clock) as home:
        fact = await home.plant()
        failpoints.arm(f"{point}:1:raise")
        with suppress(failpoints.FailpointError):
            await home.forget(fact, home.forgetting())
        failpoints.arm("")
    await finished_by_a_start(tmp_path, clock)


async def finished_by_a_start(tmp_path, clock):
    async with opened_home(tmp_path / "home", clock) as home, asyncio.TaskGroup() as tasks:
        forgetting = home.forgetting()
        running = tasks.create_task(forgetting.run())
        async with asyncio.timeout(20):
            while forgetting._is_due:
                await asyncio.sleep(0.01)
        running.cancel()
        assert home.holding() == []


async def test_the_users_own_lines_and_backups_are_named(home):
    fact = await home.plant()
    (home.root / "workspace/mine.md").write_text(f"one\nmy {WORD}\n")
    (home.root / "state.db.before-20261122T000000").touch()
    report = await home.forget(fact, home.forgetting())
    assert report.kept == ("mine.md:2",)
    assert report.backups == (str(home.root / "state.db.before-20261122T000000"),)
    assert {*home.holding()} - {"index.db", "index.db-wal"} == {"mine.md"}


async def test_every_saying_is_recognised(home):
    fact = await home.plant()
    told = f"By the way, {WORD}: the hamster likes to be called so by everybody here."
    await home.talk(told, "Yes.")
    rival = replace(fact, id="other", text=f"{WORD} is a street.", triple=None, origin=Provenance())
    await home.facts.save(
        [rival], sightings=[Sighting(fact.id, home.clock.now(), Provenance(MAIN, 3))]
    )
    await home.forgetting().begin([fact])
    [needles] = (await home.facts.erasures()).values()
    assert f"My hamster is called {WORD}." in needles.phrases
    assert told in needles.phrases
    assert not needles.stand_in(f"{WORD} is long")


class Failing:
    """A place that fails some times."""

    name = "notes"

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def erase(self, needles: Needles) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return 2


@pytest.fixture
def store():
    return MemoryFactStore()


def simple(store, clock, *places):
    async def nothing(*_: object) -> tuple[str, ...]:
        return ()

    async def silence(*_: object) -> str:
        return ""

    return Forgetting(store, places, clock, said=silence, kept=nothing, copies=nothing)


async def test_what_fails_is_told_and_tried_again_and_then_the_others_too(store, clock):
    failing = Failing(StorageError("no room", cure="make room"), RuntimeError("odd"))
    other = Failing()
    other.name = "log"
    forgetting = simple(store, clock, failing, other)
    report = await forgetting.erase_text(WORD)
    assert report == ErasureReport({"log": 2}, pending=("notes",))
    [problem] = forgetting.problems()
    assert problem.code == "erasure_pending"
    assert "notes: no room" in problem.text
    assert problem.cure == "make room"
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(forgetting.run())
        await settled(lambda: failing.calls == 2)
        assert await store.erasures()
        await clock.advance(30)
        await settled(lambda: other.calls == 2)
        running.cancel()
    assert failing.calls == 3
    assert not await store.erasures()
    assert forgetting.problems() == ()


async def test_a_turn_that_goes_on_is_no_problem_and_its_end_is_heard(store, clock):
    failing = Failing(Busy("a turn goes on"))
    forgetting = simple(store, clock, failing)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(forgetting.run())
        await settled(lambda: not forgetting._wake.is_set())
        assert (await forgetting.erase_text(WORD)).pending == ("notes",)
        assert forgetting.problems() == ()
        forgetting.touch(MAIN)
        await settled(lambda: failing.calls == 2)
        running.cancel()
    assert not await store.erasures()


async def settled(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("text", ["", " ", "a", "!?", "May", "th", "Hund"])
async def test_what_says_too_little_is_not_erased(store, clock, text):
    forgetting = simple(store, clock)
    with pytest.raises(InvalidRequest):
        await forgetting.erase_text(text)
    assert not await store.erasures()


async def test_a_survey_that_fails_keeps_nobody_from_forgetting(store, clock):
    async def broken(*_: object) -> tuple[str, ...]:
        raise OSError

    async def silence(*_: object) -> str:
        return ""

    forgetting = Forgetting(
        store, [Failing()], clock, said=silence, kept=broken, copies=partial(broken)
    )
    assert await forgetting.erase_text(WORD) == ErasureReport({"notes": 2})
    assert not await store.erasures()


async def test_nothing_begun_is_nothing_done(store, clock):
    place = Failing()
    assert await simple(store, clock, place).carry_out() == ErasureReport({})
    assert place.calls == 0
