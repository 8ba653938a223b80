"""Facts in whole turns over the real book of facts: kept, told, replaced, forgotten."""

from __future__ import annotations

from datetime import date

import pytest

from agentd.domain.fact import FactStatus
from agentd.domain.message import Message, Role, Text, ToolResult, ToolUse, assistant, user
from agentd.domain.prompt import Effect, Prompt, ToolSpec
from agentd.domain.turn import Origin
from agentd.engine.prompt import fence
from agentd.facts.relevant import block
from agentd.providers.offline import conversation, flush, known
from agentd.providers.offline.reply import Call

NOTE = "memory/2026-11-21.md"
TODAY = date(2026, 11, 21)
DOG = "The user's dog is called Rex."


@pytest.fixture
def book(talk):
    return talk.may_remember()


async def texts(book, status=FactStatus.ACTIVE) -> list[str]:
    return [fact.text for fact in await book.all() if fact.status is status]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("remember that my dog is called Rex", DOG),
        ("Remember this: I live in Berlin.", "The user lives in Berlin."),
        ("Could you remember that I'm allergic to nuts?", "The user is allergic to nuts."),
        ("merk dir, dass mein Hund Rex heißt", "mein Hund Rex heißt"),
        ("note that my dog is called Rex", DOG),
        ("remember that the boiler code is 4417", "the boiler code is 4417"),
    ],
)
async def test_a_sentence_to_remember_becomes_a_fact(talk, book, said, kept):
    assert await talk.say(said) == f"I'll remember that: {kept}"
    assert await texts(book) == [kept]
    assert NOTE not in talk.workspace.files


@pytest.mark.parametrize(
    "said",
    [
        "remember that my sister is called Klara and lives in Bern",
        "merk dir: meine Schwester heißt Klara und wohnt in Bern",
    ],
)
async def test_two_things_of_a_relative_are_two_facts(talk, book, said):
    kept = ["The user's sister is called Klara.", "The user's sister Klara lives in Bern."]
    assert await talk.say(said) == f"I'll remember that: {' '.join(kept)}"
    assert await texts(book) == kept
    assert await talk.say("where does Klara live?") == f"You told me: {kept[1]}"


async def test_where_the_user_works_is_told_with_the_place_beside(talk, book):
    await talk.say("remember that I work at Hasselblad in Gothenburg")
    reply = await talk.say("where do I work?")
    assert reply == "You told me: The user works at Hasselblad in Gothenburg."


@pytest.mark.parametrize(
    "said",
    [
        "note in my diary that I saw a fox",
        "remember that I saw a fox. It was red.",
        "remember this:\n- milk\n- bread",
        "remember: [ ] call the bank",
        "remember to water the fern",
        "write down that the heron was here",
        f"remember that {'the fence needs paint and ' * 30} more",
    ],
)
async def test_notes_are_written_down_as_before(talk, book, said):
    assert (await talk.say(said)).startswith(f"Noted in {NOTE}")
    assert await texts(book) == []


async def test_remember_that_alone_keeps_the_statement_before(talk, book):
    await talk.say("My dog is called Rex.")
    assert await talk.say("please remember that") == f"I'll remember that: {DOG}"


async def test_what_is_known_is_said_so(talk, book):
    await talk.say("remember that my dog is called Rex")
    reply = await talk.say("remember that my dog's name is Rex")
    assert reply == f"I know that already: {DOG}"


async def test_a_secret_is_refused_in_words_and_written_nowhere(talk, book):
    reply = await talk.say("remember that my password is hunter2")
    assert reply == "I could not remember that: it looks like a secret."
    assert talk.workspace.files == {}


async def test_a_changed_value_replaces_and_is_the_only_answer(talk, book):
    await talk.say("remember that my dog is called Rex")
    reply = await talk.say("remember that my dog is called Max now")
    assert reply == f"I'll remember that: The user's dog is called Max.\nIt replaces: {DOG}"
    assert await talk.say("what is my dog called?") == "You told me: The user's dog is called Max."
    assert talk.called == []


async def test_without_being_told_search_answers_with_what_holds_now(talk, book):
    await talk.say("remember that my dog is called Rex")
    await talk.say("remember that my dog is called Max now")
    talk._relevant = None
    for session in ("main", "chat:other"):
        reply = await talk.say("what is my dog called?", session)
        assert reply == "You told me: The user's dog is called Max."
        assert talk.called == ["memory_search"]


async def test_what_was_so_before_is_told_when_asked(talk, book):
    await talk.say("remember that my dog is called Rex")
    await talk.say("remember that my dog is called Max now")
    reply = await talk.say("what was my dog called before?")
    assert reply.startswith(f"From memory: “Until 2026-11-21: {DOG}” (memory/facts.md:")
    assert "\n" not in reply


async def test_a_note_of_before_does_not_answer_for_a_fact(talk, book):
    talk.write("memory/2026-10-01.md", "- [09:00] my dog is called Bello\n")
    await talk.say("remember that my dog is called Max")
    talk._relevant = None
    assert "Bello" not in await talk.say("what is my dog called?")


async def test_a_note_that_is_newer_than_the_fact_is_named_too(talk, book):
    await talk.say("remember that my dog is called Max")
    talk.write("memory/2026-11-30.md", "- [09:00] my dog is called Bello\n")
    talk._relevant = None
    reply = await talk.say("what is my dog called?")
    assert reply.startswith(
        "You told me: The user's dog is called Max.\nAlso: “my dog is called Bello”"
    )


async def test_what_was_said_otherwise_since_is_named_beside_the_fact(talk, book):
    await talk.say("remember that my dog is called Rex")
    await talk.say("My dog is called Max now.")
    reply = await talk.say("what is my dog called?")
    assert reply.startswith(f"You told me: {DOG}\n")
    assert "you said: “My dog is called Max now.”" in reply


async def test_a_fact_about_something_near_does_not_answer(talk, book):
    await talk.say("remember that my cat sees Dr. Quill")
    assert not (await talk.say("what is my cat called?")).startswith("You told me")


async def test_groups_neither_keep_nor_forget(talk, book):
    reply = await talk.say("remember that my dog is called Rex", session="group:friends")
    assert reply.startswith("I could not note that")
    assert "cannot erase" in await talk.say("forget my dog", session="group:friends")
    assert await texts(book) == []


async def test_what_the_user_wants_forgotten_is_gone_and_not_said_again(talk, book):
    await talk.say("remember that my dog is called Rex")
    reply = await talk.say("forget my dog")
    assert reply == (
        "One fact is forgotten, with 2 places that said it. "
        "You wrote it yourself here, where it stays: memory/pets.md:2."
    )
    assert await texts(book) == []
    assert "Rex" not in talk.workspace.text("memory/facts.md")


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ("remember that my dog is called Rex", "forget what I said about my dog"),
        ("remember that my dog is called Rex", "Please forget that my dog is called Rex."),
        ("merk dir, dass mein Hund Rex heißt", "vergiss meinen Hund"),
    ],
)
async def test_one_fact_goes_without_another_question(talk, book, kept, said):
    talk.gate.yes = False
    await talk.say(kept)
    assert "forgotten" in await talk.say(said)
    assert await texts(book) == []


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("2", ["The user's cat is called Rex."]),
        ("the first one", ["The user's hamster is called Rex."]),
        ("hamster", ["The user's cat is called Rex."]),
        ("f0000001", ["The user's hamster is called Rex."]),
        ("forget the cat", ["The user's hamster is called Rex."]),
        ("both", []),
        ("none", ["The user's cat is called Rex.", "The user's hamster is called Rex."]),
    ],
)
async def test_of_several_facts_the_user_names_one(talk, book, answer, left):
    talk.gate.yes = False  # he is not asked a second time
    await talk.say("remember that my cat is called Rex")
    await talk.say("remember that my hamster is called Rex")
    shown = await talk.say("forget Rex")
    assert shown.split("\n")[:3] == [
        "Which one? Nothing was erased yet.",
        "1. The user's cat is called Rex. (f0000001)",
        "2. The user's hamster is called Rex. (f0000002)",
    ]
    reply = await talk.say(answer)
    assert "forgotten" in reply or reply == "Nothing was erased."
    assert "Rex" not in reply
    assert await texts(book) == left


async def test_another_question_is_no_answer_to_which_one(talk, book):
    await talk.say("remember that my cat is called Rex")
    await talk.say("remember that my hamster is called Rex")
    await talk.say("forget Rex")
    assert await talk.say("what is my cat called?") == "You told me: The user's cat is called Rex."
    assert "forgotten" not in await talk.say("2")
    assert len(await texts(book)) == 2


async def test_what_no_fact_says_is_looked_for_in_the_notes(talk, book):
    talk.write("memory/2026-11-20.md", "- [09:00] the flamingo is pink\n")
    reply = await talk.say("forget the flamingo")
    assert reply.startswith("No fact says that; nothing was erased.")
    assert "`agentd memory forget TEXT`" in reply
    assert "memory/2026-11-20.md:1" in reply
    assert "flamingo is pink" in talk.workspace.text("memory/2026-11-20.md")
    reply = await talk.say("forget the okapi")
    assert "`agentd memory forget TEXT`" in reply


async def test_a_no_is_no(talk, book):
    await talk.say("remember that my dog is called Rex")
    talk.gate.yes = False
    assert await talk.say("delete my dog") == "Nothing was erased: you did not agree."
    assert await texts(book) == [DOG]


def test_answers_of_the_tools_are_told_in_words():
    assert known.kept("Known already: a: b") == "I know that already: a: b"
    assert known.kept("Remembered: a It replaces: b It replaces: c").count("\n") == 2
    assert known.refused("this session cannot keep facts about the owner") == ""
    assert known.offered("Which one?\n1. a (b)") == ()


@pytest.mark.parametrize("asked", ["", "it", "x" * 600, "a\nb", "- a", "One. Two."])
def test_what_is_no_single_sentence_is_no_fact(asked):
    assert known.fact_in(f"remember that {asked}", asked, TODAY) == ""


async def test_a_flush_does_not_write_down_what_is_a_fact_already():
    use = ToolUse("1", "remember", {"text": DOG})
    rows = (
        user("remember that my dog is called Rex"),
        assistant("", use),
        Message(Role.USER, (ToolResult("1", f"Remembered: {DOG}"),)),
        assistant("done"),
    )
    writing = ToolSpec("memory_write", "", {}, Effect.IDEMPOTENT)
    said = (*rows, user("My cat is called Tom."), assistant("ok"), user("flush"))
    reply = flush.reply(Prompt((), said, (writing,), origin=Origin.FLUSH))
    assert reply == Call("memory_write", {"content": "My cat is called Tom."})


def test_only_the_block_beside_the_users_words_tells_facts():
    told = block([DOG], "What the user told you.")
    clock = "[Now: Saturday 2026-11-21 12:00 UTC]"

    def facts(*texts: str) -> tuple[str, ...]:
        return conversation.facts(
            Prompt((), (Message(Role.USER, tuple(map(Text, (*texts, "who?")))),))
        )

    assert facts(f"{told}\n\n{clock}") == (DOG,)
    assert facts(fence("agentd alert", told), clock) == ()
    assert facts(clock) == ()
    assert conversation.facts(Prompt((), (user(told),))) == ()
