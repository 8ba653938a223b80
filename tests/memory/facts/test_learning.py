"""When conversations are read for facts, what a failure costs, and how changes are told."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agentd.core.errors import ProviderError, ShuttingDown, StorageError
from agentd.core.fact import Evidence
from agentd.core.message import Text
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import MAIN, SessionKey
from agentd.memory.facts.learning import TAG, TRIES
from agentd.testing import ScriptedProvider
from tests.locks import locks
from tests.memory.facts.books import CHAT, MAX, REX, TEA
from tests.memory.facts.talks import answer, never, plan

DOG, DRINK = "My dog is called Rex.", "I like green tea."
LEARNT = f"my dog is called rex → {REX}"
DOWN = ProviderError("Overloaded.", kind="overloaded", retryable=True)
WRONG = ProviderError("The request is wrong.", kind="bad_request")


# When


async def test_a_session_is_read_once_it_has_rested(talk):
    home = talk(answer(LEARNT))
    async with home.running():
        await home.say(DOG)
        await home.pass_(290)
        assert home.provider.prompts == []
        await home.pass_(40)
    assert await home.texts() == [REX]
    assert home.learning.waiting == 0


async def test_talk_that_goes_on_is_read_in_one_go_when_it_rests(talk):
    home = talk()
    async with home.running():
        for text in (DOG, DRINK, "And my cat is Tom."):
            await home.say(text)
            await home.pass_(200)
        assert home.provider.prompts == []
        await home.pass_(330)
    assert len(home.provider.prompts) == 1
    assert all(text in home.shown() for text in (DOG, DRINK, "Tom"))


async def test_what_was_read_is_not_read_again_after_a_restart_either(talk):
    home = talk()
    await home.say(DOG)
    await home.learning.read(MAIN)
    await home.learning.read(MAIN)
    await home.say(DRINK)
    await home.started().read(MAIN)
    assert len(home.provider.prompts) == 2
    assert DRINK in home.shown()
    assert DOG not in home.shown()


async def test_nothing_is_kept_of_sessions_that_were_read(talk):
    home = talk()
    before = locks()
    for number in range(20):
        session = SessionKey(f"chat:{number}")
        await home.say(DOG, session)
        await home.learning.read(session)
    assert locks() <= before


async def test_a_session_that_a_stop_left_unread_is_read_after_the_next_start(talk):
    home = talk()
    await home.say(DOG)
    home.started()
    async with home.running():
        await home.pass_(330)
    assert DOG in home.shown()


async def test_a_session_that_rested_while_the_daemon_was_down_is_read_at_once(talk):
    home = talk()
    await home.say(DOG)
    home.started()
    home.clock.jump(timedelta(hours=3))
    async with home.running():
        pass
    assert DOG in home.shown()


async def test_a_clock_that_was_set_back_does_not_keep_a_session_from_being_read(talk):
    home = talk()
    await home.say(DOG)
    home.started()
    home.clock.jump(-timedelta(days=30))
    async with home.running():
        await home.pass_(330)
    assert DOG in home.shown()


async def test_a_session_that_is_left_is_read_at_once(talk):
    home = talk()
    async with home.running():
        await home.say(DOG)
        home.learning.finish(MAIN)
        await home.settle()
        assert DOG in home.shown()


async def test_a_session_that_is_left_while_another_is_read_is_read_at_once_too(talk):
    class Leaving(ScriptedProvider):
        async def stream(self, prompt):
            if not self.prompts:
                home.learning.finish(CHAT)
            async for event in super().stream(prompt):
                yield event

    home = talk(provider=Leaving(default="[]"))
    async with home.running():
        await home.say(DRINK, CHAT)
        await home.say(DOG)
        home.learning.finish(MAIN)
        await home.settle()
        assert [DOG in home.shown(0), DRINK in home.shown()] == [True, True]


async def test_imported_conversations_are_found(talk):
    home = talk()
    rows = [(NewRow(RowRole.USER, (Text(DOG),)), home.clock.now())]
    await home.sessions.add_rows(CHAT, rows)
    home.clock.jump(timedelta(hours=1))
    async with home.running():
        pass
    assert DOG in home.shown()


async def test_what_is_asked_about_is_read_at_once_in_all_sessions(talk):
    home = talk()
    await home.say(DOG)
    await home.say(DRINK, CHAT)
    await home.learning.catch_up()
    await home.learning.catch_up()
    assert len(home.provider.prompts) == 2
    assert (await home.mark(), await home.mark(CHAT)) == (2, 2)


@pytest.mark.parametrize("key", ["group:family", "isolated:task"])
async def test_sessions_of_others_are_never_read(talk, key):
    home = talk(idle="1s")
    session = SessionKey(key)
    async with home.running():
        await home.say(DOG, session)
        home.learning.finish(session)
        await home.learning.before_compaction(plan(session), never)
        await home.learning.read(session)
        await home.learning.catch_up()
        await home.pass_(4000)
    assert home.provider.prompts == []


async def test_nothing_at_all_happens_when_facts_are_off(talk):
    home = talk(enabled=False, idle="1s")
    async with home.running():
        await home.say(DOG)
        home.learning.finish(MAIN)
        await home.learning.before_compaction(plan(), never)
        await home.learning.read(MAIN)
        assert home.clock.sleeping == 0
    assert (home.provider.prompts, await home.mark()) == ([], 0)


# Told


async def test_what_was_learnt_is_told_once_to_who_watches_and_to_who_comes_later(talk):
    home = talk(answer(LEARNT, f"I like green tea → {TEA}"))
    await home.say(f"{DOG} {DRINK}")
    await home.learning.read(MAIN)
    await home.learning.read(MAIN)
    [event] = home.told
    assert event.session == MAIN
    assert event.text == f"remembered: {REX} {TEA} (/undo takes it back)"
    assert event.changes[0] == {"change": 1, "op": "add", "id": "f001", "text": REX, "old": []}
    [notice] = await home.notices()
    assert (notice.text, notice.tag) == (event.text, TAG)
    assert TAG == "facts"


async def test_a_change_and_an_end_are_told_with_what_was_before(talk):
    home = talk()
    [dog, tea] = await home.add(MAX, TEA)
    await home.say("Rex, not Max! And I gave up tea for good.")
    home.provider.say(
        answer(
            {"op": "replace", "ids": [dog], "quote": "Rex, not Max! And", "content": REX},
            {"op": "end", "ids": [tea], "quote": "I gave up tea"},
        )
    )
    await home.learning.read(MAIN)
    [event] = home.told
    assert event.text.startswith(f"remembered: {REX} (before: {MAX}) no longer so: {TEA} (")
    assert [(one["op"], one["old"]) for one in event.changes] == [
        ("replace", [MAX]),
        ("end", [TEA]),
    ]


async def test_what_will_end_is_not_told_as_over(talk):
    home = talk()
    [job] = await home.add("The user works at Bosch.")
    await home.say("my contract ends in December")
    home.provider.say(
        answer({"op": "end", "ids": [job], "quote": "my contract ends", "valid_to": "2026-12-31"})
    )
    await home.learning.read(MAIN)
    [event] = home.told
    assert "no longer so" not in event.text
    assert event.text.startswith("so until 2026-12-31: The user works at Bosch.")


async def test_what_changes_nothing_is_not_told(talk):
    home = talk()
    [dog] = await home.add(REX)
    await home.say(f"{DOG} I also like tea.")
    home.provider.say(
        answer(
            {"op": "same", "ids": [dog], "quote": "my dog is called Rex"},
            "never said so → The user owns a yacht.",
            "I also like tea → The user's password is hunter2hunter2.",
        )
    )
    await home.learning.read(MAIN)
    assert (home.told, await home.notices()) == ([], [])
    counts = await home.service.counts()
    assert (counts["active"], counts["proposed"]) == (1, 1)
    assert counts["refused"] == {"secret": 1}


async def test_the_notice_of_a_change_is_no_conversation_to_read(talk):
    home = talk(answer(LEARNT))
    await home.say(DOG)
    await home.learning.catch_up()
    await home.learning.catch_up()
    assert len(home.provider.prompts) == 1
    async with home.running():
        await home.pass_(4000)
    assert len(home.provider.prompts) == 1
    assert len(await home.notices()) == 1


# Failures


async def test_an_outage_leaves_the_mark_and_is_waited_out_however_long_it_lasts(talk):
    home = talk(*[DOWN] * 6, answer(LEARNT))
    async with home.running():
        await home.say(DOG)
        await home.pass_(330)
        (problem,) = home.learning.problems()
        assert (problem.code, problem.cure[:14]) == ("facts_unread", "They are read ")
        assert await home.mark() == 0
        await home.pass_(18_000)
    assert await home.texts() == [REX]
    assert home.learning.problems() == ()


async def test_during_an_outage_other_sessions_wait_too(talk):
    home = talk(provider=ScriptedProvider(default=DOWN))
    async with home.running():
        for number in range(5):
            await home.say(DOG, SessionKey(f"chat:{number}"))
        await home.pass_(330)
    assert len(home.provider.prompts) == 1
    assert home.learning.waiting == 5


@pytest.mark.parametrize("error", [WRONG, ValueError("a flaw")])
async def test_what_cannot_be_read_three_times_is_left_unread_and_said(talk, error):
    home = talk(*[error] * TRIES, answer(f"I like green tea → {TEA}"), batch_messages=1)
    async with home.running():
        await home.say(DOG)
        await home.say(DRINK)
        await home.pass_(6_000)
    assert len(home.provider.prompts) == TRIES + 1
    assert await home.texts() == [TEA]
    [problem] = home.learning.problems()
    assert problem.code == "facts_skipped"
    assert "messages 1 to 2" in problem.text.casefold()
    assert problem.cure


async def test_a_crash_between_answer_and_rows_reads_it_again_and_tells_it_once(talk, facts_db):
    home = talk(answer(LEARNT), answer(LEARNT))
    failing = []

    class Refusing(type(home.store)):
        async def write(self, given):
            if failing:
                failing.clear()
                raise StorageError("The disk refused.")
            return await super().write(given)

    home.store = Refusing(facts_db)
    home.started()
    await home.say(DOG)
    failing.append(1)
    with pytest.raises(StorageError):
        await home.learning.read(MAIN)
    assert (await home.mark(), home.told) == (0, [])
    await home.started().read(MAIN)
    assert await home.texts() == [REX]
    assert await home.mark() > 0
    await home.check()


async def test_a_turn_that_ends_while_its_session_is_read_is_read_too(talk):
    class Interrupted(ScriptedProvider):
        async def stream(self, prompt):
            if not self.prompts:
                await home.say(DRINK)
            async for event in super().stream(prompt):
                yield event

    home = talk(provider=Interrupted(default="[]"))
    await home.say(DOG)
    await home.learning.read(MAIN)
    assert await home.mark() == 4
    assert DRINK in home.shown()
    assert home.learning.waiting == 1, "it is looked at when it rests, and nothing is left"


async def test_a_failure_that_is_over_does_not_make_an_outage_look_like_it(talk):
    home = talk(WRONG, "[]", provider=None)
    home.provider.default = DOWN
    async with home.running():
        await home.say(DOG)
        await home.pass_(700)
        assert await home.mark() == 2
        await home.say(DRINK)
        await home.say(DRINK, CHAT)
        await home.pass_(330)
    assert len(home.provider.prompts) == 3


async def test_a_compaction_reads_what_is_left_and_no_failure_reaches_it(talk):
    home = talk(WRONG, answer(LEARNT))
    await home.say(DOG)
    await home.learning.before_compaction(plan(), never)
    assert await home.texts() == []
    await home.learning.before_compaction(plan(), never)
    assert await home.texts() == [REX]


class Hanging(ScriptedProvider):
    async def stream(self, prompt):
        await asyncio.Event().wait()
        yield


async def test_a_model_that_hangs_holds_a_compaction_up_for_no_longer_than_it_may(talk):
    home = talk(provider=Hanging(), extraction_timeout=timedelta(milliseconds=1))
    await home.say(DOG)
    await home.learning.before_compaction(plan(), never)
    assert await home.mark() == 0
    assert home.learning.waiting == 1


async def test_no_call_begins_once_the_daemon_stops(talk):
    home = talk()
    await home.say(DOG)
    home.calls.stopping.begin()
    with pytest.raises(ShuttingDown):
        await home.learning.before_compaction(plan(), never)
    async with home.running():
        await home.pass_(330)
    assert (home.provider.prompts, await home.mark()) == ([], 0)


async def test_a_deleted_session_is_not_read_any_more(talk):
    home = talk()
    async with home.running():
        await home.say(DOG, CHAT)
        await home.sessions.delete(CHAT)
        home.learning.deleted(CHAT)
        await home.pass_(4000)
    assert home.provider.prompts == []
    assert home.learning.waiting == 0


async def test_a_copy_of_a_session_is_not_read_again(talk):
    home = talk()
    await home.say(DOG, CHAT)
    await home.learning.read(CHAT)
    copy = SessionKey("chat:two")
    await home.sessions.fork(CHAT, copy)
    await home.learning.forked(CHAT, copy)
    await home.learning.read(copy)
    assert len(home.provider.prompts) == 1


async def test_the_evidence_of_earlier_versions_is_looked_for_at_the_start(talk):
    home = talk()
    await home.say(DOG)
    row = (await home.sessions.rows(MAIN))[0]
    [learned] = await home.learn(home.said(REX, evidence=(Evidence(row.at, MAIN, 1),)))
    async with home.running():
        pass
    [one] = await home.evidence(learned.fact.id)
    assert row.text[one.start : one.end] == DOG


async def test_what_was_taken_back_is_not_told_again_by_reading_on(talk):
    home = talk(answer(LEARNT))
    await home.say(DOG)
    await home.learning.read(MAIN)
    await home.book.undo(session=MAIN)
    await home.say("thanks a lot")
    await home.learning.read(MAIN)
    assert await home.texts() == []
    assert len(home.told) == 1
