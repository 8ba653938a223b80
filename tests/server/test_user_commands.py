"""Slash commands of other parts: notes and the heartbeat, without a model."""

from datetime import UTC, datetime

import pytest

from agentd.core.beat import Beat, HeartbeatStatus, Outcome, Reason
from agentd.core.compaction import CompactionReport
from agentd.core.errors import InvalidRequest
from agentd.core.search import Chunk, Hit, SearchResult, Source
from agentd.core.turn import SessionKey
from agentd.interfaces.acp.acp_schema import PromptCall
from agentd.interfaces.acp.declared import typed
from agentd.interfaces.acp.peer import ClientRole
from agentd.interfaces.acp.slash_commands import Commands
from agentd.interfaces.commands.conversation import CONVERSATION, ConversationCommands
from agentd.interfaces.commands.heartbeat import HEARTBEAT, HeartbeatCommands
from agentd.interfaces.commands.memory import IN_NOTES, NoteLineFinder
from agentd.interfaces.commands.plain import TimeFormatter
from agentd.testing import FakeClock, MemoryBeats, MemorySessions

MAIN, GROUP = SessionKey("main"), SessionKey("group:family")


class Notes:
    """A recall that finds these chunks, whatever is asked."""

    def __init__(self, *chunks: Chunk) -> None:
        self.chunks = chunks
        self.sources = None

    async def search(self, query, reader):
        self.sources = query.sources
        return SearchResult(tuple(Hit(chunk, 1.0) for chunk in self.chunks), "")


class Heartbeat:
    """A heartbeat that stands so."""

    def __init__(self, standing) -> None:
        self.standing = standing
        self.forced = []

    async def run(self, *, force):
        self.forced.append(force)
        return Beat(1, FakeClock().now(), None, Outcome.SKIPPED, Reason.NOTHING_DUE)

    async def status(self):
        return self.standing


def heartbeat_of(heartbeat):
    clock = FakeClock(zone="Europe/Berlin")
    return typed(HEARTBEAT, HeartbeatCommands(heartbeat, MemoryBeats(clock), clock))


def conversation(turns, store):
    return Commands(typed(CONVERSATION, ConversationCommands(turns, turns, store, None)))


def forget_in(notes):
    (forget,) = typed(IN_NOTES, NoteLineFinder(notes))
    return forget


async def test_forget_names_the_lines_and_changes_nothing():
    text = "- tea\n- the Boiler code\n- milk"
    notes = Notes(Chunk("memory/a.md", 4, 6, text, Source.NOTES, scope="main"))
    forget = forget_in(notes)
    said = await forget.act(MAIN, "boiler code")
    assert "memory/a.md:5: - the Boiler code" in said
    assert said.startswith("Nothing was changed.")
    assert "`agentd memory forget`" in said
    assert "milk" not in said
    assert notes.sources == {Source.NOTES}
    assert "No line" in await forget.act(MAIN, "boiler key")


@pytest.mark.parametrize(("session", "text"), [(MAIN, " "), (GROUP, "tea")])
async def test_notes_need_words_and_their_owners_session(session, text):
    notes = Notes()
    with pytest.raises(InvalidRequest):
        await forget_in(notes).act(session, text)
    assert notes.sources is None


async def test_the_heartbeat_tells_how_it_stands_and_beats_when_told():
    last = Beat(7, FakeClock().now(), None, Outcome.ALERT, Reason.ALERT, "water!")
    due = datetime(2026, 11, 22, 2, 32, 48, tzinfo=UTC)
    heartbeat = Heartbeat(HeartbeatStatus(is_on=True, next_due=due, last=last))
    (command,) = heartbeat_of(heartbeat)
    assert await command.act(MAIN, "") == (
        "The heartbeat is due "
        f"{TimeFormatter(FakeClock(zone='Europe/Berlin')).short(due.isoformat())}; last time: "
        "alert: water!"
    )
    assert await command.act(MAIN, "run") == "The heartbeat: skipped (nothing_due)"
    assert heartbeat.forced == [False]
    for session, text in ((MAIN, "now"), (GROUP, "run")):
        with pytest.raises(InvalidRequest):
            await command.act(session, text)
    (off,) = heartbeat_of(Heartbeat(HeartbeatStatus(is_on=False, next_due=None)))
    assert await off.act(MAIN, "") == "The heartbeat is off."


class Rooms:
    """Sessions in which every request for room ends with this report."""

    def __init__(self, report: CompactionReport) -> None:
        self.report = report

    async def flush(self, session, wish=""):
        self.wish = wish
        return self.report

    compact = flush

    def queued(self, session):
        return 0


@pytest.mark.parametrize(
    ("name", "report", "told"),
    [
        (
            "flush",
            CompactionReport(False, False, "below_threshold", 1969, 1969),
            "Nothing was done. All that was said is saved already. 1,969 tokens in the context.",
        ),
        (
            "flush",
            CompactionReport(False, False, "flush", 10, 10),
            (
                "Nothing was done. Nothing could be saved; `agentd logs` says why. 10 "
                "tokens in the context."
            ),
        ),
        (
            "flush",
            CompactionReport(True, False, "flush", 2344, 2344),
            "What matters was saved to memory. 2,344 tokens in the context.",
        ),
        (
            "compact",
            CompactionReport(True, False, "summary_refused", 9000, 9000),
            (
                "What matters was saved to memory. The context stays as it is, at 9,000 tokens. "
                "The reason is summary_refused; `agentd logs` says more."
            ),
        ),
        (
            "compact",
            CompactionReport(True, False, "nothing_to_compact", 2006, 2006),
            (
                "What matters was saved to memory. The context stays as it is, at 2,006 tokens. "
                "Too little was said to shorten it."
            ),
        ),
        (
            "compact",
            CompactionReport(True, True, "manual", 9000, 1),
            (
                "What matters was saved to memory. The context is shorter: 9,000 "
                "tokens before, 1 after."
            ),
        ),
        (
            "compact",
            CompactionReport(False, False, "provider_error", 1, 1),
            (
                "Nothing was done. The reason is provider_error; `agentd logs` says more. 1 "
                "token in the context."
            ),
        ),
    ],
)
async def test_making_room_is_told_in_words(name, report, told):
    own = conversation(Rooms(report), MemorySessions(FakeClock()))
    act, rest = own.find(PromptCall(MAIN, f"/{name}"), ClientRole())
    assert await act.act(MAIN, rest) == told


async def test_a_new_context_is_told_without_figures():
    class Fresh(Rooms):
        async def start_over(self, session):
            return self.report

    for is_saved, told in ((True, " What matters was saved to memory."), (False, "")):
        report = CompactionReport(is_saved, True, "new", 2598, 2088)
        own = conversation(Fresh(report), MemorySessions(FakeClock()))
        act, rest = own.find(PromptCall(MAIN, "/new"), ClientRole())
        assert await act.act(MAIN, rest) == f"A new context begins.{told}"


async def test_what_stands_behind_compact_is_what_the_summary_should_keep():
    rooms = Rooms(CompactionReport(True, True, "manual", 9000, 1))
    own = conversation(rooms, MemorySessions(FakeClock()))
    act, rest = own.find(PromptCall(MAIN, "/compact keep the names of the birds "), ClientRole())
    await act.act(MAIN, rest)
    assert rooms.wish == "keep the names of the birds"


async def test_the_status_of_a_session_counts_in_words():
    store = MemorySessions(FakeClock())
    await store.create(MAIN)
    own = conversation(Rooms(CompactionReport(False, False, "", 0, 0)), store)
    status, _ = own.find(PromptCall(MAIN, "/status"), ClientRole())
    told = await status.act(MAIN, "")
    assert told == "Session main: 0 turns, 0 rows, 0 tokens in the context, 0 waiting."
