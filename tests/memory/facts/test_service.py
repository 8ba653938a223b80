"""What the owner asks of his facts, himself or through a model."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agentd.core.errors import NotFound, ProviderError, ShuttingDown
from agentd.core.fact import (
    Category,
    ChangeKind,
    ErasureReport,
    FactSource,
    FactStatus,
    Refusal,
)
from agentd.core.message import Text, TextSource, ToolUse, Writer
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import MAIN, SessionKey
from agentd.providers.offline.provider import OfflineProvider
from agentd.testing import ScriptedProvider
from tests.memory.facts.books import CHAT, REX, TEA
from tests.memory.facts.talks import answer, message_numbers

BANK = "I do not trust Mallory with my bank account"
KEPT = "The user does not trust Mallory with their bank account."
DOWN = ProviderError("Overloaded.", kind="overloaded", retryable=True)
EXPLICIT = FactSource.EXPLICIT


# remember


async def test_what_is_kept_is_read_out_of_the_quoted_message_and_not_out_of_the_call(talk):
    home = talk(answer(f"{BANK} → {KEPT}"))
    await home.say(f"Look. {BANK}! Remember that.")
    await home.say("and now the weather")
    wrong = "The user trusts Mallory with their bank account."
    [learned] = await home.service.remember(wrong, MAIN, "trust Mallory with my bank account")
    assert (learned.fact.text, learned.fact.source, learned.fact.confidence) == (
        KEPT,
        EXPLICIT,
        0.9,
    )
    assert learned.change.op is ChangeKind.ADD
    assert wrong not in home.shown()
    assert "weather" not in home.shown()
    assert await home.texts() == [KEPT]
    [evidence] = await home.evidence(learned.fact.id)
    text = (await home.sessions.rows(MAIN))[0].text
    assert text[evidence.start : evidence.end] == BANK
    await home.check()


async def test_a_name_that_the_model_swaps_proves_nothing_and_is_asked(talk):
    home = talk(answer("my sister is called Anna → The user's sister is called Anna."))
    await home.say("remember: my sister is called Agnieszka")
    assert await home.service.remember("Sister Anna.", MAIN, "my sister is called Anna") == ()
    assert await home.service.remember("Sister Anna.", MAIN) == ()
    assert await home.book.all() == ()


async def test_without_a_quote_his_last_message_is_read(talk):
    home = talk(answer({"content": REX, "quote": "Rex"}))
    await home.say("remember tea")
    await home.say("Rex", answered="Noted.")
    [learned] = await home.service.remember("x", MAIN)
    assert learned.fact.text == REX
    assert message_numbers(home.provider.prompts[0]) == ["1 agent", "2 user"]


async def test_words_that_ask_for_it_are_enough_however_few_are_quoted(talk):
    home = talk(answer({"content": REX, "quote": "Rex"}))
    await home.say("remember Rex, my dog")
    [learned] = await home.service.remember("x", MAIN, "Rex, my dog")
    [evidence] = await home.evidence(learned.fact.id)
    assert (evidence.start, evidence.end) == (0, 20)


async def test_an_honest_request_is_never_asked(talk):
    home = talk(answer(f"my dog is called Rex → {REX}", f"likes tea, too → {TEA}"))
    await home.say("Please remember that my dog is called Rex. He likes tea, too.")
    learned = await home.service.remember("dog", MAIN, "my dog is called Rex")
    assert [one.fact.text for one in learned] == [REX, TEA]
    [event] = home.told
    assert len(event.changes) == 2
    assert await home.notices() == [], "the call itself is the record"
    again = await home.service.remember("dog", MAIN, "my dog is called Rex")
    assert again == (), "this time nothing is read out of it"


async def test_what_is_known_already_is_an_answer_too(talk):
    home = talk(*[answer(f"my dog is called Rex → {REX}")] * 2)
    await home.say("remember that my dog is called Rex")
    [first] = await home.service.remember("x", MAIN)
    [again] = await home.service.remember("x", MAIN)
    assert (again.fact.id, again.is_new, again.change) == (first.fact.id, False, None)
    assert (await home.fact(first.fact.id)).confidence == 0.9, "one row is one saying"
    assert len(home.told) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"> {BANK}\nremember what she wrote",
        f"remember the letter: “Dear Sir, {BANK}, sincerely yours”",
        f"```\n{BANK}\n```\nremember this",
    ],
)
async def test_a_quotation_is_asked(talk, text):
    home = talk(default := answer(f"{BANK} → {KEPT}"), default)
    await home.say(text)
    assert await home.service.remember(KEPT, MAIN, BANK) == ()
    assert home.provider.prompts == []
    assert await home.service.remember_alone(MAIN, BANK) == ()
    assert await home.service.remember(KEPT, MAIN) == ()
    assert await home.texts() == []


async def test_marked_and_tainted_words_and_those_of_others_are_asked(talk):
    home = talk()
    await home.say(f"see: {BANK}", quoted=((5, 5 + len(BANK)),))
    other = TextSource(Writer.OTHER, tainted=True)
    rows = [(NewRow(RowRole.USER, (Text(BANK),), source=other), home.clock.now())]
    await home.sessions.add_rows(CHAT, rows)
    await home.say("hello", answered=BANK)
    for session in (MAIN, CHAT, type(MAIN)("chat:none")):
        assert await home.service.remember(KEPT, session, BANK) == ()
        assert await home.service.remember_alone(session, BANK) == ()


async def test_his_words_are_found_behind_a_newer_quotation_of_them(talk):
    home = talk(answer(f"{BANK} → {KEPT}"))
    await home.say(BANK)
    await home.say(f"> {BANK}\nyou know?")
    [learned] = await home.service.remember("x", MAIN, BANK)
    assert learned.fact.origin.seq == 1


async def test_facts_that_it_makes_untrue_are_shown_among_very_many(talk):
    home = talk()
    [old] = await home.add("The user's submarine is yellow.")
    await home.add(*(f"The user owns a very long shelf number {n}." for n in range(400)))
    home.provider.say(
        answer(
            {"op": "replace", "ids": [old], "quote": "it is green", "content": "It is green now."}
        )
    )
    await home.say("we painted the boat: it is green")
    [learned] = await home.service.remember("green", MAIN, "it is green", [old, "nobody"])
    assert f"[{old} since" in home.shown()
    assert [fact.id for fact in learned.gone] == [old]


@pytest.mark.parametrize("error", [DOWN, ShuttingDown(), TimeoutError()])
async def test_while_no_model_answers_his_sentence_is_kept_byte_for_byte(talk, error):
    home = talk(error)
    await home.say(f"Look. {BANK}! Remember that.")
    [learned] = await home.service.remember("x", MAIN, "trust Mallory with my bank account")
    assert (learned.fact.text, learned.fact.source) == (f"{BANK}!", EXPLICIT)
    [evidence] = await home.evidence(learned.fact.id)
    text = (await home.sessions.rows(MAIN))[0].text
    assert text[evidence.start : evidence.end] == f"{BANK}!"


async def test_no_secret_is_kept_while_no_model_answers_either(talk):
    home = talk(DOWN, DOWN)
    await home.say("remember that my password is hunter2hunter2")
    assert await home.service.remember("x", MAIN) == ()
    [learned] = await home.service.keep("my password is hunter2hunter2")
    assert learned.reason is Refusal.CREDENTIAL
    assert await home.book.all() == ()


async def test_a_sentence_that_holds_a_quotation_is_not_his_own(talk):
    home = talk(DOWN)
    said = f"remember the letter, “Dear Sir, {BANK}, sincerely”, it is important"
    await home.say(said)
    assert await home.service.remember_alone(MAIN, "it is important") == ()
    assert await home.service.remember("x", MAIN, "it is important") == ()


async def test_without_a_key_what_is_asked_for_is_read_by_rules(talk):
    home = talk(provider=OfflineProvider())
    await home.say("Remember that my dog is called Rex.")
    [learned] = await home.service.remember("x", MAIN)
    assert "Rex" in learned.fact.text
    assert learned.fact.source is EXPLICIT


async def test_what_others_may_have_chosen_is_read_without_what_stands_beside_it(talk):
    home = talk(provider=OfflineProvider())
    await home.say("hello", answered="Your bank is the Hawkbank.")
    await home.say("Remember that my dog is called Rex.")
    [learned] = await home.service.remember_alone(MAIN, "my dog is called Rex")
    assert learned.fact.text == REX
    assert learned.fact.source is EXPLICIT
    assert learned.fact.origin.seq == 3


async def test_of_what_others_may_have_chosen_the_request_shows_the_users_message_alone(talk):
    home = talk(answer(f"{BANK} → {KEPT}"))
    await home.say("hello", answered="Say what the letter says.")
    await home.say(BANK)
    [learned] = await home.service.remember_alone(MAIN, BANK)
    assert learned.fact.text == KEPT
    assert BANK in home.shown()
    assert "letter" not in home.shown()


@pytest.mark.parametrize("given", [DOWN, "[]"])
async def test_what_is_not_read_is_kept_as_he_wrote_it(talk, given):
    home = talk(given)
    await home.say(f"So. {BANK}. Bye.")
    [learned] = await home.service.remember_alone(MAIN, BANK)
    assert learned.fact.text == f"{BANK}."
    assert learned.fact.origin.seq == 1


# /remember and facts add


async def test_what_he_adds_is_read_out_of_his_words_or_kept_as_they_are(talk):
    home = talk(answer({"content": REX, "quote": "Rex"}), "[]", DOWN)
    [read] = await home.service.keep("dog: Rex", CHAT)
    [empty] = await home.service.keep("The garden gate sticks when it rains")
    [down] = await home.service.keep("Blue tiles", category=Category.DECISION)
    assert [one.fact.text for one in (read, empty, down)] == [
        REX,
        "The garden gate sticks when it rains",
        "Blue tiles",
    ]
    assert {one.fact.source for one in (read, empty, down)} == {EXPLICIT}
    assert down.fact.category is Category.DECISION
    assert read.change.session == CHAT
    assert [one.session for one in await home.evidence(read.fact.id)] == [""]
    await home.check()


async def test_the_category_that_he_names_counts(talk):
    home = talk(answer({"content": REX, "quote": "dog", "category": "outcome"}))
    [learned] = await home.service.keep("dog Rex", category=Category.PROJECT)
    assert learned.fact.category is Category.PROJECT


async def test_what_he_adds_replaces_what_was_known(talk):
    home = talk()
    [kassel] = await home.add("The user lives in Kassel.")
    replaced = {"op": "replace", "ids": [kassel], "content": "The user lives in Fulda."}
    home.provider.say(answer({**replaced, "quote": "I live in Fulda now"}))
    await home.service.keep("I live in Fulda now")
    assert await home.texts() == ["The user lives in Fulda."]


async def test_what_he_says_yes_to_is_kept_byte_for_byte_and_asked_of_no_model(talk):
    home = talk()
    [learned] = await home.service.keep_verbatim(REX, CHAT)
    assert (learned.fact.text, learned.fact.source, learned.change.session) == (REX, EXPLICIT, CHAT)
    assert home.provider.prompts == []


async def test_the_request_to_forget_is_handed_on_with_those_before_it_that_named_the_same(talk):
    home = talk()
    [rex] = await home.add(REX)
    called = NewRow(RowRole.ASSISTANT, (ToolUse("c1", "forget", {"query": "Rex"}),))
    await home.say("Rex is my dog", CHAT)
    await home.say("Forget about Rex", CHAT, rows=[called], answered="Which one?")
    await home.say("the dog", CHAT)
    await home.service.forget([rex], session=CHAT, typed="Rex")
    assert [(one.text, one.seq) for one in home.forgotten.asked] == [
        ("the dog", 6),
        ("Forget about Rex", 3),
        ("Rex", 0),
    ]


async def test_what_was_forgotten_and_is_added_again_is_known_again(talk):
    home = talk(answer({"content": REX, "quote": "Rex is my dog"}))
    [rex] = await home.add(REX)
    await home.service.forget([rex])
    home.clock.jump(timedelta(minutes=1))
    [learned] = await home.service.keep("Rex is my dog")
    assert learned.is_new
    assert await home.texts() == [REX]


# which one is meant


@pytest.fixture
async def pets(talk):
    home = talk()
    await home.add(REX, "The neighbour's dog barks.", "The user lives in Bern.", TEA)
    return home


@pytest.mark.parametrize(
    ("query", "sure"),
    [
        (REX, [REX]),
        ("user’s  DOG is called rex", [REX]),
        ("REX", [REX]),
        ("what I told you about Rex", [REX]),
        ("the dog called Rex", [REX]),  # "the" says nothing of which, though others have it, too
        ("dog", [REX, "The neighbour's dog barks."]),
        ("neighbours", ["The neighbour's dog barks."]),
        ("f003", ["The user lives in Bern."]),
        ("f003 f001", ["The user lives in Bern.", REX]),
        ("f999", []),
        ("employer", []),
        ("", []),
        ("dog tea", []),  # no fact has both
        ("The user is 44 years old.", []),  # "the user is" says nothing
        ("what I told Anna about Rex", []),  # of whom nothing is known
        ("The user's PIN is 4471", []),
    ],
)
async def test_what_a_request_means(pets, query, sure):
    matches = await pets.service.matching(query)
    assert sorted(fact.text for fact in matches.sure) == sorted(sure)


async def test_what_is_only_near_is_never_sure(pets):
    matches = await pets.service.matching("dog tea")
    assert matches.sure == ()
    assert {fact.text for fact in matches.maybe} == {REX, "The neighbour's dog barks.", TEA}


async def test_what_was_just_said_is_read_before_it_is_looked_for_and_forgotten(talk):
    home = talk(answer(f"my dog is called Rex → {REX}"), answer(f"and I like tea → {TEA}"))
    await home.say("my dog is called Rex")
    matches = await home.service.matching("forget what I told you about Rex")
    assert [fact.text for fact in matches.sure] == [REX]
    await home.say("yes, Rex it is, and I like tea")
    await home.service.forget([matches.sure[0].id])
    assert await home.texts() == [TEA]
    assert home.forgotten.begun == [REX]


async def test_a_thing_that_is_called_so_is_the_thing_that_is_so(talk):
    home = talk(provider=OfflineProvider())
    await home.say("remember that our plumber is called Max Moor")
    await home.service.remember("x", MAIN)
    for name in ("Zed", "Zed Zap"):
        await home.clock.advance(60)
        await home.say(f"remember that my plumber is {'called ' if name == 'Zed' else ''}{name}")
        await home.service.remember("x", MAIN)
    assert await home.texts() == ["The user's plumber is Zed Zap"]


TOM, JERRY = "The user's cat is called Tom.", "The user's cat is called Jerry."


async def test_what_was_just_said_decides_which_value_is_forgotten(talk):
    home = talk(provider=OfflineProvider())
    await home.say("remember that my cat is called Tom")
    await home.service.remember("x", MAIN, "my cat is called Tom")
    await home.say("my cat is called Jerry now")
    matches = await home.service.matching("my cat")
    assert [fact.text for fact in matches.sure] == [JERRY]
    assert [fact.text for fact in matches.earlier] == [TOM], "it says that of the cat, too"
    await home.service.forget([fact.id for fact in matches.all_sure])
    assert await home.texts() == []
    assert home.forgotten.begun == [JERRY, TOM]


async def test_what_was_replaced_and_does_not_say_the_words_stays(talk):
    home = talk(provider=OfflineProvider())
    await home.say("remember that my cat is called Tom")
    await home.service.remember("x", MAIN, "my cat is called Tom")
    await home.say("my cat is called Jerry now")
    matches = await home.service.matching("Jerry")
    assert ([fact.text for fact in matches.sure], matches.earlier) == ([JERRY], ())


async def test_what_holds_no_longer_is_meant_by_words_that_nothing_which_holds_has(talk):
    home = talk(provider=OfflineProvider())
    await home.say("remember that my cat is called Tom")
    await home.service.remember("x", MAIN, "my cat is called Tom")
    await home.say("my cat is called Jerry now")
    matches = await home.service.matching("Tom")
    assert ([fact.text for fact in matches.sure], matches.earlier) == ([TOM], ())
    assert (await home.service.matching("Tom", every=True)).sure == matches.sure
    assert [f.text for f in (await home.service.matching("cat")).sure] == [JERRY]


async def test_what_held_twice_in_the_same_words_is_forgotten_as_one(talk):
    home = talk(provider=OfflineProvider())
    for name in ("Tom", "Jerry", "Tom", "Jerry"):
        await home.clock.advance(60)
        await home.say(f"remember that my cat is called {name}")
        await home.service.remember("x", MAIN)
    matches = await home.service.matching("Tom")
    assert [fact.text for fact in matches.all_sure].count(TOM) == len(matches.all_sure) >= 2
    assert len(matches.sure) == 1


async def test_an_id_whose_fact_was_replaced_meanwhile_means_neither_for_sure(talk):
    home = talk(provider=OfflineProvider())
    await home.say("remember that my cat is called Tom")
    [learned] = await home.service.remember("x", MAIN, "my cat is called Tom")
    await home.say("my cat is called Jerry now")
    matches = await home.service.matching(learned.fact.id)
    assert matches.sure == ()
    assert [fact.text for fact in matches.maybe] == [TOM, JERRY]
    again = await home.service.matching(learned.fact.id)
    assert [fact.text for fact in again.sure] == [TOM], "now he names the old one"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("user", 5),
        ("the user", 5),
        ("dog", 2),
        ("the user's dog", 2),
        ("my dog", 2),
        ("user Bern", 1),
        ("dog Bern", 0),
        ("dog of Anna", 0),
    ],
)
async def test_every_fact_that_says_the_words_is_meant_by_all(pets, query, found):
    await pets.add("The user's sister is called Ida.", "The user's boat is red.")
    assert len((await pets.service.matching(query, every=True)).sure) == found


@pytest.mark.parametrize("error", [DOWN, TimeoutError()])
async def test_a_model_that_is_away_keeps_nothing_from_being_found_or_forgotten(talk, error):
    home = talk(provider=ScriptedProvider(default=error))
    [rex] = await home.add(REX)
    await home.say("my cat is called Tom")
    assert (await home.service.matching("Tom")).sure == ()
    assert [fact.id for fact in (await home.service.matching("Rex")).sure] == [rex]
    await home.service.forget([rex])
    assert await home.texts() == []


PIN = "My pin is 4471, in case I forget."


@pytest.mark.parametrize(
    "query", ["The user's PIN is 4471", "No, forget the pin, my grandson is shouting", "4471"]
)
async def test_a_secret_that_was_told_is_no_fact_and_can_be_forgotten(talk, query):
    home = talk()
    await home.add(REX)
    await home.say(f"Hi! {PIN}")
    await home.say("the card's pin code is 9917")
    await home.say(f"Once more: {PIN}", SessionKey("chat:b"))
    await home.say(PIN, SessionKey("group:tea"))
    matches = await home.service.matching(query)
    [pin] = matches.sure
    assert pin.text == PIN
    assert await home.service.preview([pin.id]) == ErasureReport({"preview": 1})
    await home.service.forget([pin.id])
    assert home.forgotten.begun == [PIN]
    assert [(one.session, one.seq) for one in home.forgotten.evidence] == [
        (MAIN, 1),
        (SessionKey("chat:b"), 1),
    ]
    assert await home.texts() == [REX]


@pytest.mark.parametrize("query", ["my cat is called Tom", "in case I forget", "is", "pineapple"])
async def test_what_only_shares_words_with_a_secret_does_not_mean_it(talk, query):
    home = talk()
    await home.say(PIN)
    assert (await home.service.matching(query)).sure == ()


async def test_a_secret_goes_into_no_request_when_it_is_to_be_kept(talk):
    home = talk()
    [learned] = await home.service.keep(PIN)
    assert learned.reason is Refusal.CREDENTIAL
    await home.say(f"remember: {PIN}")
    assert await home.service.remember("x", MAIN) == ()
    assert home.provider.prompts == []


async def test_ten_thousand_facts_are_looked_through_beside_the_loop(talk):
    home = talk()
    await home.learn(*(home.said(f"The user owns book number {n}.") for n in range(10_000)))
    work = asyncio.create_task(home.service.matching("book number 4711"))
    turns = 0
    while not work.done():
        await asyncio.sleep(0)
        turns += 1
    assert [fact.text for fact in work.result().sure] == ["The user owns book number 4711."]
    assert turns > 20


# what waits, and the counts


async def test_what_waits_for_his_yes_is_listed_and_counted(talk):
    home = talk(answer(f"never said so → {REX}", f"I like tea very much → {TEA}"))
    await home.say("I like tea very much")
    await home.learning.read(MAIN)
    [waiting] = await home.service.pending()
    assert (waiting.text, waiting.status) == (REX, FactStatus.PROPOSED)
    assert await home.service.counts() == {
        "active": 1,
        "proposed": 1,
        "refused": {},
        "waiting": 0,
        "merged": 0,
    }
    [learned] = await home.service.accept([waiting.id])
    assert learned.fact.is_active
    with pytest.raises(NotFound):
        await home.service.reject([waiting.id])
    await home.service.undo()
    await home.service.reject([waiting.id])
    assert await home.service.pending() == ()
