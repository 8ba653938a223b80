"""What is forgotten stands in no file any more, whatever fails on the way, and nothing else is
touched.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from agentd.core import failpoints
from agentd.core.erasure import MASK, Erasure
from agentd.core.errors import Busy, InvalidRequest, NotFound, ProviderError, StorageError
from agentd.core.fact import ErasureReport, Evidence, ForgetRequest
from agentd.core.message import Text
from agentd.core.search import OWNER, SearchQuery
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import MAIN, SessionKey, StopReason, Turn, TurnRequest
from agentd.memory.facts.forgetting import ForgottenPlace
from agentd.storage.erasures import SqliteErasures
from agentd.testing import FakeClock
from tests.memory.facts.home import PLACES, Home, Marking, a_fact, marking, opened_home

CHAT = SessionKey("chat:one")
TEXT = "The user's hamster is called Quastel."
SAID = "Hello. My hamster is called Quastel. What now?"
QUOTE = "My hamster is called Quastel"
NOTE = "memory/2026-11-21.md"


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


MODEL = marking(r"(your|the) hamster is called quastel", r"quastel eats nuts", r"feed quastel")


async def plant(home: Home):
    """A fact in every place, and other things beside it."""
    seq = await home.say(SAID, "Noted: your hamster is called Quastel. Bye.")
    await home.say("The Quastel street is closed.", "Then take the bridge at Quastel street.", CHAT)
    await home.alert("Feed Quastel!")
    await home.write(NOTE, "# Day\n- Quastel eats nuts. Sun.\n- Quastel street: closed.\n")
    await home.write("gone.md", "The hamster is called Quastel, I hear\n")
    (home.root / "workspace/gone.md").unlink()
    home.type(SAID)
    await home.note(text=SAID)
    await home.indexer.sync()
    await home.index.settle()
    fact = a_fact(TEXT, "Quastel", home.clock.now())
    return fact, {fact.id: [await home.evidence(fact, seq, QUOTE)]}


async def forget(home: Home, model: Marking | None, also=(), **more) -> ErasureReport:
    fact, evidence = await plant(home)
    forgetting = home.forgetting(model, **more)
    await forgetting.begin([fact], evidence, also)
    return await forgetting.carry_out()


async def test_no_byte_of_it_is_left_and_everything_else_stays(home):
    report = await forget(home, MODEL)
    assert home.holding("hamster is called", "quastel eats", "feed quastel") == set()
    assert await home.said() == [f"Hello. {MASK}. What now?", f"Noted: {MASK}. Bye."]
    assert await home.said(CHAT) == [
        "The Quastel street is closed.",
        "Then take the bridge at Quastel street.",
    ]
    assert home.read(NOTE) == f"# Day\n- {MASK}. Sun.\n- Quastel street: closed.\n"
    assert {**report.places} == {
        "transcripts": 4,  # two rows, the end of the turn, the alert
        "notes": 1,
        "versions": 2,
        "log": 1,
        "chat history": 1,
    }
    assert [(one.n, one.where, one.text) for one in report.also] == [
        (1, f"{NOTE}:3", "Quastel street: closed."),
        (2, "sessions/chat:one.jsonl:1", "The Quastel street is closed."),
    ]
    assert (report.pending, report.backups) == ((), ())
    assert not await SqliteErasures(home.db).open()
    found = await home.index.search(SearchQuery("hello quastel what now nuts sun", 50), OWNER)
    texts = " ".join(hit.chunk.text for hit in found.hits)
    assert "street" in texts
    assert "hamster" not in texts
    assert await home.forgetting(MODEL).carry_out() == ErasureReport()


async def test_the_request_has_the_fact_and_the_candidates_with_their_places(home):
    model = marking()
    await forget(home, model)
    [asked] = model.asked
    assert f'<data source="facts to forget">\n[k3f9q2ma] {TEXT}\n</data>' in asked
    for line in (
        "sessions/main.jsonl:2] Noted: your hamster is called Quastel. Bye.",
        f"{NOTE}:2] - Quastel eats nuts. Sun.",
        "gone.md@1:1] The hamster is called Quastel, I hear",
        "alerts:1] Feed Quastel!",
        "sessions/chat:one.jsonl:2] Then take the bridge at Quastel street.",
    ):
        assert line in asked
    assert "sessions/chat:one.jsonl:1] The Quastel street is closed." in asked, "it may say it, too"
    assert "What now" not in asked, "what is known to say it is not asked again"


@pytest.mark.parametrize("place", PLACES)
async def test_a_place_that_is_left_out_is_noticed(home, place):
    await forget(home, MODEL, without=place)
    assert home.holding("hamster is called", "quastel eats", "feed quastel")


async def test_a_model_that_marks_everything_costs_what_it_marks_and_no_more(home):
    await forget(home, Marking(lambda text: [text]))
    assert await home.said() == [f"Hello. {MASK}. What now?", f"{MASK}."]
    assert (await home.said(CHAT))[0] == "The Quastel street is closed."
    await home.say("I had tea.", "Fine.")
    assert (await home.said())[-2:] == ["I had tea.", "Fine."]


async def test_without_a_model_copies_go_and_the_rest_is_told_and_asked_again(home, clock):
    fact, evidence = await plant(home)
    model = Marking(error=ProviderError("overloaded", retryable=True))
    forgetting = home.forgetting(model)
    await forgetting.begin([fact], evidence)
    report = await forgetting.carry_out()
    assert home.holding(QUOTE) == {"state.db", "state.db-wal"} & home.holding(QUOTE)
    assert await home.said() == [
        f"Hello. {MASK}. What now?",
        "Noted: your hamster is called Quastel. Bye.",
    ]
    assert f"{NOTE}:2" in report.pending
    assert "sessions/main.jsonl:2" in report.pending
    [problem] = forgetting.problems()
    assert problem.code == "erasure_pending"
    assert "overloaded" in problem.text
    assert "agentd memory forget" in problem.cure
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(forgetting.run())
        await settled(lambda: clock.sleeping == 1)
        await clock.advance(30)
        assert len(model.asked) == 1, "it rests before it asks again"
        model.error, model.says = None, MODEL.says
        await clock.advance(60)
        await settled(lambda: not forgetting._is_due)
        running.cancel()
    assert home.holding("hamster is called", "quastel eats", "feed quastel") == set()
    assert forgetting.problems() == ()


BESIDE = "My hamster is called Quastel and my wife Berta sings in a choir"


async def beside(home: Home):
    """A fact whose evidence says something else, too, with copies of it."""
    seq = await home.say(f"Hello. {BESIDE}.", "Fine.")
    home.type(f"Hello. {BESIDE}.")
    await home.note(text=BESIDE)
    await home.write(NOTE, f"- {BESIDE}.\n")
    fact = a_fact(TEXT, "Quastel", home.clock.now())
    return fact, {fact.id: [await home.evidence(fact, seq, BESIDE)]}


async def test_what_the_user_says_beside_it_stays_in_all_copies(home):
    fact, evidence = await beside(home)
    forgetting = home.forgetting(marking("my hamster is called quastel"))
    preview = await forgetting.preview([fact], evidence)
    await forgetting.begin([fact], evidence)
    report = await forgetting.carry_out()
    assert home.holding("quastel") == set()
    assert (await home.said())[0] == f"Hello. {MASK} and my wife Berta sings in a choir."
    assert home.read(NOTE) == f"- {MASK} and my wife Berta sings in a choir.\n"
    for name in ("chat_history", "logs/agentd.log"):
        assert "my wife Berta sings" in (home.root / "state" / name).read_text()
    assert (preview.besides, report.besides) == ((), ())


@pytest.mark.parametrize(
    ("model", "left"),
    [
        (None, f"My hamster is called {MASK} and my wife Berta sings in a choir"),
        (
            marking("nothing of it"),
            f"My hamster is called {MASK} and my wife Berta sings in a choir",
        ),
        (marking("my hamster is"), f"{MASK} called {MASK} and my wife Berta sings in a choir"),
    ],
)
async def test_where_the_value_is_not_marked_its_words_go_and_nothing_besides(home, model, left):
    fact, evidence = await beside(home)
    forgetting = home.forgetting(model)
    await forgetting.begin([fact], evidence)
    report = await forgetting.carry_out()
    assert home.holding(BESIDE) <= {"state.db", "state.db-wal"}  # as long as something is pending
    assert bool(report.pending) == (model is None)
    assert (await home.said())[0] == f"Hello. {left}."
    assert report.besides == ()


async def test_what_the_user_said_of_it_beside_something_else_goes_though_nobody_learnt_it(home):
    fact, evidence = await plant(home)
    told = "I row on Sundays and my hamster is called Quastel, like the town."
    seq = await home.say(told, "Fine.", CHAT)
    home.type(told)
    forgetting = home.forgetting(MODEL)
    await forgetting.begin([fact], evidence)
    report = await forgetting.carry_out()
    left = f"I row on Sundays and {MASK}, like the town."
    assert (await home.said(CHAT))[seq - 1] == left
    assert left in (home.root / "state/chat_history").read_text()
    assert all(one.where != f"sessions/chat:one.jsonl:{seq}" for one in report.also)
    assert (await home.said(CHAT))[0] == "The Quastel street is closed."


async def test_what_cannot_be_told_apart_from_it_is_gone_and_its_place_is_named(home):
    said = "He squeaks all night and my wife Berta sings in a choir"
    seq = await home.say(f"Hello. {said}.", "Fine.")
    fact = a_fact(TEXT, "Quastel", home.clock.now())
    forgetting = home.forgetting(marking("nothing of it"))
    await forgetting.begin([fact], {fact.id: [await home.evidence(fact, seq, said)]})
    report = await forgetting.carry_out()
    assert (await home.said())[0] == f"Hello. {MASK}."
    assert report.besides == ("sessions/main.jsonl:1",)
    assert "sessions/main.jsonl:1" in report.in_words(1)


@pytest.mark.parametrize(
    ("asked", "model", "left"),
    [
        ("Forget that my hamster is called Quastel. Rain?", MODEL, f"Forget that {MASK}. Rain?"),
        (
            "Forget my Quastel, and wake me at six.",
            MODEL,
            f"Forget my {MASK}, and wake me at six.",
        ),
        ("Quastel is to be forgotten. Rain?", None, f"{MASK} is to be forgotten. Rain?"),
        (
            "Forget what my hamster is called. Rain?",
            MODEL,
            "Forget what my hamster is called. Rain?",
        ),
    ],
)
async def test_the_request_to_forget_it_tells_it_no_more(home, asked, model, left):
    fact, evidence = await plant(home)
    seq = await home.say(asked, "Fine.")
    [row] = await home.sessions.rows(MAIN, seq, 1)
    home.type(asked)
    path = home.root / "state/chat_history"
    long_ago = "2020-01-01 09:00:00"
    path.write_text(
        f"# {long_ago}\n+{asked}\n\n# {row.at:%Y-%m-%d %H:%M:%S}\n+/forget "
        f"{asked}\n{path.read_text()}"
    )
    forgetting = home.forgetting(model)
    await forgetting.begin([fact], evidence, asked=[ForgetRequest(row.at, asked, MAIN, seq)])
    report = await forgetting.carry_out()
    assert (await home.said())[-2:] == [left, "Fine."]
    assert all(one.where != f"sessions/main.jsonl:{seq}" for one in report.also)
    typed = path.read_text().split("\n")
    assert (typed[1] == f"+{asked}") == (QUOTE.lower() not in asked.lower()), (
        "no request of today's"
    )
    assert typed[4].removeprefix("+").removeprefix("/forget ").removeprefix("/") == left


async def test_what_waits_for_a_turn_is_told_where_it_was_asked_for_once_it_is_done(home, clock):
    told: list[SessionKey] = []
    fact, evidence = await plant(home)
    await clock.advance(60)
    receipt = await home.sessions.receive(TurnRequest(MAIN, "Forget my hamster", "m9"))
    [row] = await home.sessions.begin(receipt.turn_id)
    forgetting = home.forgetting(MODEL, tell=told.append)
    await forgetting.begin([fact], evidence, asked=[ForgetRequest(row.at, row.text, MAIN, row.seq)])
    report = await forgetting.carry_out()
    assert report.pending == ("transcripts",)
    assert "erased there once this answer has ended" in report.in_words(1)
    assert forgetting.status() == {"erasing": ["transcripts"], "erased": None}
    assert told == []
    ended = Turn(MAIN, "m9", "Done.", StopReason.END_TURN)
    await home.sessions.finish(
        receipt.turn_id, ended, [NewRow(RowRole.ASSISTANT, (Text("Done."),))]
    )
    await forgetting.carry_out()
    assert told == [MAIN]
    assert forgetting.status() == {"erasing": [], "erased": clock.now().isoformat()}
    await forgetting.carry_out()
    assert told == [MAIN]


async def test_what_is_done_at_once_is_not_told_again(home):
    told: list[SessionKey] = []
    fact, evidence = await plant(home)
    forgetting = home.forgetting(MODEL, tell=told.append)
    asked = ForgetRequest(home.clock.now(), "Forget my hamster", MAIN)
    await forgetting.begin([fact], evidence, asked=[asked])
    assert (await forgetting.carry_out()).pending == ()
    assert told == []


async def test_mentions_with_the_same_words_are_one_and_go_together(home):
    for _ in range(3):
        await home.say("The Quastel street is closed.", "Take the bridge.", CHAT)
    fact, evidence = await plant(home)
    forgetting = home.forgetting(MODEL)
    [one] = (await forgetting.preview([fact], evidence)).also
    assert one.place == "sessions/chat:one.jsonl:1 and 3 places more"
    await forgetting.begin([fact], evidence, also=[1])
    assert (await forgetting.carry_out()).also[0].where == f"{NOTE}:3"
    assert await home.said(CHAT) == [
        f"{MASK}.",
        "Take the bridge.",
    ] * 3 + [f"{MASK}.", "Then take the bridge at Quastel street."]


@pytest.mark.parametrize("answer", ["", "You are welcome.", "[{", '{"n": 1, "sp'])
async def test_what_is_no_answer_leaves_it_pending(home, answer):
    class Odd(Marking):
        async def ask(self, system: str, text: str) -> str:
            return answer

    report = await forget(home, Odd())
    assert report.pending
    assert await SqliteErasures(home.db).open()


async def test_nothing_that_may_say_it_needs_no_model(home):
    seq = await home.say(SAID, "Fine.")
    fact = a_fact(TEXT, "Quastel", home.clock.now())
    forgetting = home.forgetting(None)
    await forgetting.begin([fact], {fact.id: [await home.evidence(fact, seq, QUOTE)]})
    report = await forgetting.carry_out()
    assert report.pending == ()
    assert home.holding("quastel") == set()


async def test_a_short_answer_goes_where_it_stands_in_forks_and_in_what_was_typed(home, clock):
    await home.say("Agnieszka called. Agnieszka is late.", "Who is that?")
    await home.say("hello", "What is your sister called?")
    seq = await home.say("Agnieszka", "A fine name.")
    home.type("Agnieszka is a name")
    path = home.root / "state/chat_history"
    path.write_text(f"{path.read_text()}\n# {clock.now().isoformat(sep=' ')}\n+Agnieszka\n")
    await home.sessions.fork(MAIN, CHAT)
    fact = a_fact("The user's sister is called Agnieszka.", "Agnieszka", clock.now())
    forgetting = home.forgetting(marking())
    await forgetting.begin([fact], {fact.id: [await home.evidence(fact, seq, "Agnieszka")]})
    report = await forgetting.carry_out()
    for session in (MAIN, CHAT):
        rows = await home.said(session)
        assert rows[0] == "Agnieszka called. Agnieszka is late."
        assert rows[4] == MASK
    assert path.read_text().count("Agnieszka") == 1
    assert path.read_text().endswith(f"+{MASK}\n")
    assert [one.text for one in report.also if "main" in f"{one.where}{one.others}"] == [
        "Agnieszka called.",
        "Agnieszka is late.",
    ]


async def test_the_users_own_lines_stay_unless_he_names_them(home):
    (home.root / "workspace/mine.md").write_text("one\n\n- Quastel, my hamster. And tea.\n")
    fact, evidence = await plant(home)
    forgetting = home.forgetting(MODEL)
    preview = await forgetting.preview([fact], evidence)
    assert home.holding(QUOTE), "nothing is done by looking"
    assert [(one.n, one.where, one.text) for one in preview.also] == [
        (1, "mine.md:3", "Quastel, my hamster."),
        (2, "sessions/chat:one.jsonl:1", "The Quastel street is closed."),
    ]
    assert preview.places["transcripts"] == 1
    assert preview.places["chat history"] == 1
    assert not await SqliteErasures(home.db).open()
    with pytest.raises(NotFound):
        await forgetting.begin([fact], evidence, also=[3])
    again = home.forgetting(MODEL)  # after a restart the numbers are the same
    await again.begin([fact], evidence, also=[1])
    report = await again.carry_out()
    assert home.read("mine.md") == f"one\n\n- {MASK}. And tea.\n"
    assert [one.where for one in report.also] == [f"{NOTE}:3", "sessions/chat:one.jsonl:1"]


async def test_a_row_that_is_all_that_is_known_is_shown_to_the_model(home):
    seq = await home.say("By the way, Quastel is my hamster's name. Tea?", "Fine.")
    fact = a_fact(TEXT, "Quastel", home.clock.now())
    model = marking("Quastel is my hamster's name")
    forgetting = home.forgetting(model)
    await forgetting.begin([fact], {fact.id: [Evidence(home.clock.now(), MAIN, seq)]})
    await forgetting.carry_out()
    assert await home.said() == [f"By the way, {MASK}. Tea?", "Fine."]


async def test_words_that_were_masked_before_are_no_evidence(home):
    seq = await home.say("I am Ann and I live in Ulm now.", "Fine.")
    first, second = a_fact("The user is Ann.", "Ann"), a_fact("The user lives in Ulm.", "Ulm")
    said = await home.evidence(second, seq, "I am Ann and I live in Ulm now")
    forgetting = home.forgetting(marking())
    await forgetting.begin([first], {first.id: [await home.evidence(first, seq, "I am Ann")]})
    await forgetting.carry_out()
    row = (await home.said())[0]
    said = Evidence(said.at, MAIN, seq, 0, len(row) - 1)  # as the store keeps it level
    await forgetting.begin([second], {second.id: [said]})
    [erasure] = (await SqliteErasures(home.db).open()).values()
    assert [mark.span for mark in erasure.marks] == [" and I live in Ulm now"]
    await forgetting.carry_out()
    assert await home.said() == [f"{MASK} and I live in {MASK} now.", "Fine."]


@pytest.mark.parametrize("count", range(1, len(PLACES) + 1))
async def test_a_crash_after_any_place_is_made_good_at_the_next_start(tmp_path, clock, count):
    async with opened_home(tmp_path / "home", clock) as home:
        failpoints.arm(f"erasure.place_done:{count}:raise")
        with pytest.raises(failpoints.FailpointError):
            await forget(home, MODEL)
        failpoints.arm("")
        assert home.holding(QUOTE), "the words to be erased are kept until all is done"
    await finished_by_a_start(tmp_path, clock)


@pytest.mark.parametrize(
    "point", ["erasure.begun", "erasure.done", "store.deleted", "file.replaced"]
)
async def test_a_crash_anywhere_else_is_made_good_at_the_next_start(tmp_path, clock, point):
    async with opened_home(tmp_path / "home", clock) as home:
        fact, evidence = await plant(home)
        failpoints.arm(f"{point}:1:raise")
        forgetting = home.forgetting(MODEL)
        with suppress(failpoints.FailpointError):  # one that a single place meets ends there
            await forgetting.begin([fact], evidence)
            await forgetting.carry_out()
        failpoints.arm("")
        assert await SqliteErasures(home.db).open(), "there is something to be made good"
    await finished_by_a_start(tmp_path, clock)


async def finished_by_a_start(tmp_path, clock):
    async with opened_home(tmp_path / "home", clock) as home, asyncio.TaskGroup() as tasks:
        forgetting = home.forgetting(MODEL)
        running = tasks.create_task(forgetting.run())
        await settled(lambda: not forgetting._is_due)
        running.cancel()
        assert home.holding("hamster is called", "quastel eats", "feed quastel") == set()
        assert await home.said() == [f"Hello. {MASK}. What now?", f"Noted: {MASK}. Bye."]


async def test_a_turn_that_goes_on_is_looked_at_again_when_it_ends(home):
    fact, evidence = await plant(home)
    receipt = await home.sessions.receive(TurnRequest(MAIN, "forget my hamster", "busy"))
    await home.sessions.begin(receipt.turn_id)
    forgetting = home.forgetting(marking("hamster is called quastel", "your quastel"))
    await forgetting.begin([fact], evidence)
    assert (await forgetting.carry_out()).pending == ("transcripts",)
    assert forgetting.problems() == ()
    from_it = "I have forgotten your Quastel."
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(forgetting.run())
        ended = Turn(MAIN, "busy", from_it, StopReason.END_TURN)
        last = NewRow(RowRole.ASSISTANT, (Text(from_it),))
        await home.sessions.finish(receipt.turn_id, ended, [last])
        forgetting.touch(MAIN)
        await settled(lambda: not forgetting._is_due)
        running.cancel()
    assert (await home.said())[-1] == f"I have forgotten {MASK}."


class Failing:
    """A place that fails some times."""

    def __init__(self, name: str, *errors: Exception) -> None:
        self.name = name
        self.errors = list(errors)
        self.calls = 0

    async def erase(self, erasure: Erasure) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return 2


async def test_what_fails_is_told_and_tried_again_and_then_the_others_too(home, clock):
    failing = Failing("notes", StorageError("no room", cure="make room"), RuntimeError("odd"))
    other = Failing("log")
    await home.say("hello", "hello")
    forgetting = home.forgetting(None, notes=failing, log=other)
    report = await forgetting.erase_text("Quastel")
    assert (report.places, report.pending) == ({"log": 2}, ("notes",))
    [problem] = forgetting.problems()
    assert problem.code == "erasure_pending"
    assert "notes: no room" in problem.text
    assert problem.cure == "make room"
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(forgetting.run())
        for calls in (2, 3):
            await settled(lambda: clock.sleeping == 1)
            await clock.advance(5)  # to the next try, and no further
            await settled(lambda calls=calls: failing.calls == calls)
        await settled(lambda: not forgetting._is_due)
        running.cancel()
    assert failing.calls == 3
    assert other.calls == 2
    assert not await SqliteErasures(home.db).open()
    assert forgetting.problems() == ()


async def test_what_is_begun_while_a_failed_place_is_tried_again_is_erased_there_too(home, clock):
    erased = []

    async def erase(erasure: Erasure) -> int:
        erased.append(erasure.sentences)
        if len(erased) == 1:
            raise StorageError("no room", cure="make room")
        if len(erased) == 2:
            await SqliteErasures(home.db).begin(Erasure(sentences=("Wilhelmine",)))
        return 1

    await home.say("hello", "hello")
    forgetting = home.forgetting(None, notes=ForgottenPlace("notes", erase))
    await forgetting.erase_text("Quastel")
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(forgetting.run())
        await settled(lambda: clock.sleeping == 1)
        await clock.advance(5)
        await settled(lambda: not forgetting._is_due)
        running.cancel()
    assert erased == [("Quastel",), ("Quastel",), ("Quastel", "Wilhelmine")]


async def test_a_text_goes_with_its_whole_sentences(home):
    await plant(home)
    report = await home.forgetting(None).erase_text("hamster is called quastel")
    assert await home.said() == [f"Hello. {MASK} What now?", f"{MASK} Bye."]
    assert "- Quastel eats nuts. Sun." in home.read(NOTE)
    assert report.pending == ()
    assert home.holding("hamster is called") == set()


async def test_the_sentences_of_a_text_are_shown_before_they_go(home):
    await plant(home)
    before, forgetting = await home.said(), home.forgetting(None)
    shown = await forgetting.preview_text("hamster is called quastel")
    assert {one.text for one in shown.goes} >= {
        "My hamster is called Quastel.",
        "Noted: your hamster is called Quastel.",
    }
    assert "What now?" not in str(shown.goes)
    assert await home.said() == before
    report = await forgetting.erase_text("hamster is called quastel")
    assert {place for place, count in report.places.items() if count} >= set(shown.places)
    assert (await forgetting.preview_text("hamster is called quastel")).goes == ()


@pytest.mark.parametrize("text", ["", " ", "a", "!?", "th"])
async def test_what_says_too_little_is_not_erased(home, text):
    with pytest.raises(InvalidRequest):
        await home.forgetting(None).erase_text(text)
    with pytest.raises(InvalidRequest):
        await home.forgetting(None).preview_text(text)


async def test_a_word_that_stands_in_every_other_text_is_not_erased(home):
    for n in range(30):
        await home.say(f"I saw a dog, number {n}.", "Nice.")
    with pytest.raises(InvalidRequest, match="too much"):
        await home.forgetting(None).erase_text("dog")
    await home.forgetting(None).erase_text("a dog, number 7")
    assert (await home.said())[14] == MASK


async def test_copies_out_of_reach_are_named(home):
    fact, evidence = await plant(home)
    (home.root / "state.db.before-20261122T000000").touch()
    (home.root / "monday.0c").write_text(f"0c\n{TEXT}\n")
    (home.root / "other.0c").write_text("0c\nnothing of it\n")
    forgetting = home.forgetting(MODEL)
    named = tuple(str(home.root / n) for n in ("monday.0c", "state.db.before-20261122T000000"))
    assert (await forgetting.preview([fact], evidence)).backups == named
    await forgetting.begin([fact], evidence)
    assert (await forgetting.carry_out()).backups == named


async def test_nothing_begun_is_nothing_done(home):
    place = Failing("log")
    await home.say("hello", "hello")
    assert await home.forgetting(None, log=place).carry_out() == ErasureReport()
    assert place.calls == 0


async def test_a_turn_that_ends_while_its_place_is_looked_at_is_not_missed(home, clock):
    class Late(Failing):
        async def erase(self, erasure: Erasure) -> int:
            forgetting.touch(MAIN)
            return await super().erase(erasure)

    late = Late("log", Busy("a turn goes on"))
    await home.say("hello", "hello")
    forgetting = home.forgetting(None, log=late)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(forgetting.run())
        await settled(lambda: clock.sleeping == 1)
        assert (await forgetting.erase_text("Quastel")).pending == ("log",)
        await settled(lambda: not forgetting._is_due)
        running.cancel()
    assert late.calls == 2, "no time has passed"


async def test_what_is_begun_while_another_is_carried_out_is_carried_out_too(home, clock):
    """Also if its caller, a client, is gone by then."""
    entered, leave, erased = asyncio.Event(), asyncio.Event(), []

    async def erase(erasure: Erasure) -> int:
        entered.set()
        await leave.wait()
        erased.append(erasure.sentences)
        return 1

    await home.say("hello", "hello")
    forgetting = home.forgetting(None, log=ForgottenPlace("log", erase))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(forgetting.run())
        await settled(lambda: clock.sleeping == 1)
        first = tasks.create_task(forgetting.erase_text("Quastel"))
        await entered.wait()
        second = tasks.create_task(forgetting.erase_text("Wilhelmine"))
        await settled(lambda: forgetting._lock._waiters)
        second.cancel()
        leave.set()
        await first
        assert forgetting.status()["erased"] is not None
        assert erased == [("Quastel",)]
        await clock.advance(300)
        await settled(lambda: not forgetting._is_due)
        running.cancel()
    assert erased == [("Quastel",), ("Wilhelmine",)]


async def test_what_is_begun_while_a_model_marks_another_is_marked_in_its_turn(home):
    model = marking(r"(your|the) hamster is called quastel")

    class Meanwhile(Marking):
        async def ask(self, system: str, text: str) -> str:
            if not self.asked:
                self.asked.append(text)
                await forgetting.begin([cat], {})
            return await model.ask(system, text)

    cat = a_fact("The user's cat is called Wilhelmine.", "Wilhelmine", fact_id="aaaabbbb")
    await home.write("memory/cats.md", "The cat Wilhelmine sleeps.\n")
    fact, evidence = await plant(home)
    forgetting = home.forgetting(Meanwhile())
    await forgetting.begin([fact], evidence)
    await forgetting.carry_out()
    [left] = (await SqliteErasures(home.db).open()).values()
    assert left.ids == (cat.id,)
    asked = len(model.asked)
    await forgetting.carry_out()
    assert any("Wilhelmine" in text for text in model.asked[asked:])
    assert not await SqliteErasures(home.db).open()


async def test_a_turn_that_goes_on_is_no_failure(home):
    await home.say("hello", "hello")
    forgetting = home.forgetting(None, log=Failing("log", Busy("a turn goes on")))
    assert (await forgetting.erase_text("Quastel")).pending == ("log",)
    assert forgetting.problems() == ()


async def settled(condition) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)
