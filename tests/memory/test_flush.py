from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from agentd.core.compaction import Answer, CompactionPlan, Trigger
from agentd.core.errors import ContextOverflow, ProviderError, ShuttingDown
from agentd.core.transcript import Coverage
from agentd.core.turn import SessionKey, Usage
from agentd.memory.flush import MemoryFlush, flush_prompt
from agentd.memory.settings import MemoryFlushSettings
from agentd.testing import FakeClock

SILENT = Answer("NO_REPLY", 0, Usage())
WROTE = Answer("done", 1, Usage())
CHATTY = Answer("I would save that you like tea.", 0, Usage())
CLAIMS = Answer("I have saved that you like tea. NO_REPLY", 0, Usage())
EXPLAINS = Answer("NO_REPLY — though you do like tea.", 0, Usage())
REFUSED = Answer("NO_REPLY", 0, Usage(), failed=1)
DOWN = ProviderError("down", kind="overloaded")
HANGS = object()


class Model:
    """Answers flush questions from a list, then with the last answer again."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.questions = []

    async def __call__(self, question):
        self.questions.append(question)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is HANGS:
            await asyncio.Event().wait()
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture
def flush(store):
    def make(budget: int = 10_000, zone: str = "UTC", **settings: object) -> MemoryFlush:
        given = MemoryFlushSettings(**{"timeout": timedelta(milliseconds=30), **settings})
        return MemoryFlush(store, given, FakeClock(zone=zone), lambda: budget)

    return make


@pytest.fixture
def planned(row):
    def make(count: int = 4, failures: int = 0, last_try: bool = False, first: int = 1):
        rows = tuple(
            row(n, "user" if n % 2 else "assistant", f"words {n}")
            for n in range(first, first + count)
        )
        return CompactionPlan(
            *(SessionKey("main"), Trigger.THRESHOLD, 0, rows, (), 1, "before"), failures, last_try
        )

    return make


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (SILENT, "no_reply"),
        (Answer("**no_reply.**", 0, Usage()), "no_reply"),
        (WROTE, "stored"),
        (Answer("", 2, Usage()), "stored"),
        (Answer("done", 1, Usage(), failed=1), "stored"),
    ],
)
async def test_a_good_answer_covers_the_rows(flush, planned, store, answer, reason):
    model = Model(answer)
    await flush().before_compaction(planned(), model)
    assert store.covered == [Coverage(1, 4, True, reason)]
    (question,) = model.questions
    assert question.key == "flush:main:1-4"
    assert question.tools == {"memory_read", "memory_search", "memory_write"}
    assert [r.seq for r in question.rows] == [1, 2, 3, 4]
    assert question.summary == "before"


@pytest.mark.parametrize(
    "answer",
    [
        CHATTY,
        CLAIMS,
        EXPLAINS,
        REFUSED,
        Answer("", 0, Usage()),
        DOWN,
        ContextOverflow("big"),
        HANGS,
    ],
)
async def test_a_bad_answer_is_one_failure_and_covers_nothing(flush, planned, store, answer):
    model = Model(answer)
    await flush().before_compaction(planned(), model)
    assert store.covered == []
    assert store.failures == 1
    assert len(model.questions) == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (CHATTY, "wrote_nothing"),
        (REFUSED, "write_failed"),
        (DOWN, "provider_overloaded"),
        (HANGS, "timeout"),
    ],
)
async def test_the_third_failure_is_recorded_and_lets_go(flush, planned, store, answer, reason):
    store.failures = 2
    model = Model(answer)
    await flush().before_compaction(planned(failures=2), model)
    assert store.covered == [Coverage(1, 4, False, reason)]
    assert [q.key for q in model.questions] == ["flush:main:1-4#3"]


@pytest.mark.parametrize(("failures", "tries"), [(0, 3), (1, 2), (2, 1), (3, 0)])
async def test_the_last_chance_uses_up_what_tries_are_left(flush, planned, store, failures, tries):
    store.failures = failures
    model = Model(DOWN)
    await flush().before_compaction(planned(failures=failures, last_try=True), model)
    assert len(model.questions) == tries
    assert len({q.key for q in model.questions}) == tries
    assert [c.ok for c in store.covered] == [False]


async def test_the_last_chance_takes_a_late_success(flush, planned, store):
    await flush().before_compaction(planned(last_try=True), Model(DOWN, CHATTY, WROTE))
    assert store.covered == [Coverage(1, 4, True, "stored")]


async def test_a_part_that_was_saved_is_not_asked_about_again(flush, planned, store):
    model = Model(WROTE, DOWN)
    await flush(budget=15).before_compaction(planned(), model)
    assert len(store.covered) == 1
    done = store.covered[0]
    assert done.ok
    rest = planned(4 - done.last, failures=store.failures, first=done.last + 1)
    await flush(budget=10_000).before_compaction(rest, Model(WROTE))
    assert [(c.first, c.last, c.ok) for c in store.covered] == [
        (1, done.last, True),
        (done.last + 1, 4, True),
    ]


async def test_a_flush_that_was_cut_goes_on_with_its_own_rows_before_newer_ones(
    flush, planned, store
):
    store.asked = ["flush:main:1-2", "flush:main:3-9", "flush:other:1-3"]
    model = Model(WROTE)
    await flush().before_compaction(planned(), model)
    assert [q.key for q in model.questions] == ["flush:main:1-2", "flush:main:3-4"]
    assert [(c.first, c.last, c.ok) for c in store.covered] == [(1, 2, True), (3, 4, True)]


async def test_a_piece_that_was_cut_is_asked_about_again(flush, planned, row, store):
    text = " ".join(f"word{n}" for n in range(400))
    rows = (row(1, "user", text), row(2, "assistant", "so long"))
    model = Model(WROTE)
    store.asked = ["flush:main:1-1.2"]
    plan = replace(planned(), uncovered=rows)
    await flush(budget=100).before_compaction(plan, model)
    assert [q.key for q in model.questions][:2] == ["flush:main:1-1.1", "flush:main:1-1.2"]
    assert [(c.first, c.last) for c in store.covered] == [(1, 1), (2, 2)]


async def test_no_question_begins_with_the_models_own_words(flush, planned, store):
    model = Model(WROTE)
    plan = replace(planned(), summary="")
    await flush(budget=1).before_compaction(plan, model)
    openings = {str(q.rows[0].role): bool(q.summary) for q in model.questions}
    assert openings == {"user": False, "assistant": True}


async def test_a_row_too_large_for_any_part_is_covered_after_its_last_piece(
    flush, planned, row, store
):
    text = " ".join(f"word{n}" for n in range(400))
    plan = planned()
    large = CompactionPlan(plan.session, plan.trigger, 0, (row(1, "user", text),), (), 1, "")
    model = Model(WROTE)
    await flush(budget=300).before_compaction(large, model)
    assert len(model.questions) > 1
    assert "".join(r.text for q in model.questions for r in q.rows) == text
    assert len({q.key for q in model.questions}) == len(model.questions)
    assert store.covered == [Coverage(1, 1, True, "stored")]


@pytest.mark.parametrize(("last_try", "covered"), [(False, 0), (True, 1)])
async def test_a_disabled_flush_asks_nothing_and_never_blocks(
    flush, planned, store, last_try, covered
):
    model = Model(WROTE)
    await flush(enabled=False).before_compaction(planned(last_try=last_try), model)
    assert model.questions == []
    assert [(c.ok, c.reason) for c in store.covered] == [(False, "disabled")] * covered


@pytest.mark.parametrize(("last_try", "covered"), [(False, 0), (True, 1)])
async def test_what_is_said_in_a_group_is_not_written_into_the_owners_notes(
    flush, planned, store, last_try, covered
):
    model = Model(WROTE)
    plan = replace(planned(last_try=last_try), session=SessionKey("group:a"))
    await flush().before_compaction(plan, model)
    assert model.questions == []
    assert [(c.ok, c.reason) for c in store.covered] == [(False, "no_memory")] * covered


async def test_nothing_uncovered_is_nothing_to_do(flush, planned, store):
    model = Model(WROTE)
    await flush().before_compaction(planned(0, last_try=True), model)
    assert (model.questions, store.covered) == ([], [])


@pytest.mark.parametrize("stop", [ShuttingDown(), asyncio.CancelledError()])
async def test_a_stop_is_no_failure(flush, planned, store, stop):
    with pytest.raises(type(stop)):
        await flush().before_compaction(planned(last_try=True), Model(stop))
    assert (store.failures, store.covered) == (0, [])


def prompts(zone: str = "Pacific/Kiritimati", **settings: str) -> tuple[str, str]:
    clock = FakeClock(zone=zone)
    given = MemoryFlushSettings(**settings)
    return flush_prompt(given, clock.now().astimezone(clock.zone), str(clock.zone))


@pytest.mark.parametrize(
    "settings", [{}, {"system_prompt": "Day YYYY-MM-DD.", "user_prompt": "Go"}]
)
def test_both_prompts_carry_the_owners_date_and_time(settings):
    system, user = prompts(**settings)
    assert "YYYY" not in system + user
    assert "2026-11-22" in system
    assert "2026-11-22" in user
    assert user.endswith("Current time: 02:00 Pacific/Kiritimati")


def test_a_custom_prompt_gets_the_rules_it_lacks_and_no_others():
    _, user = prompts(system_prompt="Save.", user_prompt="Now.")
    assert "appending to today's note" in user
    assert "NO_REPLY" in user
    own = "Append to memory/YYYY-MM-DD.md or say NO_REPLY."
    _, user = prompts(system_prompt="Save.", user_prompt=own)
    assert user.split("\n")[:-1] == ["Append to memory/2026-11-22.md or say NO_REPLY."]


async def test_the_note_is_where_the_daily_notes_are(store, planned):
    clock, model = FakeClock(), Model(SILENT)
    hook = MemoryFlush(store, MemoryFlushSettings(), clock, lambda: 10_000, "notes/days")
    await hook.before_compaction(planned(), model)
    (question,) = model.questions
    assert str(question).count("notes/days/2026-11-21.md") == 2
    assert "memory/2026" not in str(question)
