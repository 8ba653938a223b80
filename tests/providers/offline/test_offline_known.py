"""Facts in whole turns over the real book of facts: kept, told, replaced, forgotten."""

from __future__ import annotations

import pytest

from agentd.core.message import Message, Role, Text, ToolResult, ToolUse, assistant, user
from agentd.core.prompt import Effect, Prompt, ToolSpec
from agentd.core.turn import Origin
from agentd.engine.rendering import fence
from agentd.providers.offline import chat, conversation, fact_answers, flush
from agentd.providers.offline.conversation import FinalText, OfflineCall
from tests.providers.offline.conftest import fact_lines

NOTE = "memory/2026-11-21.md"
DOG = "The user's dog is called Rex."


@pytest.fixture
def page(talk):
    return talk.may_remember()


def texts(page) -> list[str]:
    return list(page.facts.values())


@pytest.mark.parametrize(
    ("said", "quote", "kept"),
    [
        ("remember that my dog is called Rex", "my dog is called Rex", DOG),
        ("Remember this: I live in Berlin.", "I live in Berlin.", "The user lives in Berlin."),
        (
            "Could you remember that I'm allergic to nuts?",
            "I'm allergic to nuts",
            "The user is allergic to nuts.",
        ),
        ("merk dir, dass mein Hund Rex heißt", "mein Hund Rex heißt", DOG),
        ("note that my dog is called Rex", "my dog is called Rex", DOG),
        (
            "remember that the boiler code is 4417",
            "the boiler code is 4417",
            "the boiler code is 4417",
        ),
    ],
)
async def test_a_sentence_to_remember_becomes_a_fact_of_the_users_own_words(
    talk, page, said, quote, kept
):
    assert await talk.say(said) == f"I'll remember that: {kept}"
    assert [call["quote"] for call in page.calls] == [quote]
    assert quote in said
    assert texts(page) == [kept]
    assert NOTE not in talk.workspace.files


async def test_two_things_of_a_relative_are_two_facts(talk, page):
    reply = await talk.say("remember that my sister is called Klara and lives in Bern")
    kept = ["The user's sister is called Klara.", "The user's sister Klara lives in Bern."]
    assert texts(page) == kept
    assert reply.split("\n") == [f"I'll remember that: {text}" for text in kept]
    reply = await talk.say("where does Klara live?")
    assert reply == f"You told me: {kept[1]} (memory/facts.md:4)"


async def test_a_fact_is_told_with_its_line(talk, page):
    await talk.say("remember that I work at Hasselblad in Gothenburg")
    reply = await talk.say("where do I work?")
    assert reply == "You told me: The user works at Hasselblad in Gothenburg. (memory/facts.md:3)"
    assert talk.called == ["memory_search"]


@pytest.mark.parametrize("said", ["What do you know about me?", "who am I?", "Wer bin ich?"])
async def test_all_that_is_told_of_the_user_is_listed(talk, page, said):
    assert (await talk.say(said)).startswith("I was not told any fact here.")
    await talk.say("remember that my sister is called Klara and lives in Bern")
    assert (await talk.say(said)).split("\n") == [
        "You told me:",
        "· The user's sister is called Klara.",
        "· The user's sister Klara lives in Bern.",
    ]
    await talk.say("remember that my sister Klara lives in Basel now")
    page.is_told = False
    assert "Bern" not in await talk.say("where does Klara live?")


async def test_a_plain_statement_is_said_to_be_learnt_where_facts_are(talk, page):
    later = "That becomes a fact when this conversation has rested for a while."
    assert (await talk.say("My dog is called Rex.")).startswith(later)
    assert not (await talk.say("My dog ate the sofa.")).startswith(later)
    reply = await talk.say("My dog is called Rex.", session="group:friends")
    assert not reply.startswith(later)


async def test_the_first_question_knows_as_much_as_the_second(talk, page):
    await talk.say("remember that my dog is called Rex")
    fresh = "chat:after-restart"
    first = await talk.say("what is my dog called?", fresh)
    assert first == await talk.say("what is my dog called?", fresh)
    page.is_told = False
    assert first == await talk.say("what is my dog called?", "chat:untold")


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
async def test_notes_are_written_down_as_before(talk, page, said):
    assert (await talk.say(said)).startswith(f"Noted in {NOTE}")
    assert texts(page) == []


async def test_remember_that_alone_keeps_the_statement_before(talk, page):
    await talk.say("My dog is called Rex.")
    assert await talk.say("please remember that") == f"I'll remember that: {DOG}"
    assert page.calls[0]["quote"] == "My dog is called Rex."


async def test_what_is_known_is_said_so(talk, page):
    await talk.say("remember that my dog is called Rex")
    reply = await talk.say("remember that my dog's name is Rex")
    assert reply == f"I know that already: {DOG}"


async def test_a_secret_is_refused_in_words_and_written_nowhere(talk, page):
    reply = await talk.say("remember that my password is hunter2")
    assert reply == "I could not remember that: it looks like a secret."
    assert talk.workspace.files == {}


async def test_a_changed_value_replaces_and_is_the_only_answer(talk, page):
    await talk.say("remember that my dog is called Rex")
    reply = await talk.say("remember that my dog is called Max now")
    assert reply == f"I'll remember that: The user's dog is called Max.\nIt replaces: {DOG}"
    reply = await talk.say("what is my dog called?")
    assert reply == "You told me: The user's dog is called Max. (memory/facts.md:3)"


async def test_a_fact_about_something_near_does_not_answer(talk, page):
    await talk.say("remember that my cat sees Dr. Quill")
    assert not (await talk.say("what is my cat called?")).startswith("You told me")


async def test_groups_neither_keep_nor_forget(talk, page):
    reply = await talk.say("remember that my dog is called Rex", session="group:friends")
    assert reply.startswith("I could not note that")
    assert "cannot erase" in await talk.say("forget my dog", session="group:friends")
    assert texts(page) == []


@pytest.mark.parametrize(
    "said", ["forget my dog", "forget what I said about my dog", "vergiss Rex"]
)
async def test_what_the_user_wants_forgotten_is_gone(talk, page, said):
    await talk.say("remember that my dog is called Rex")
    assert await talk.say(said) == "One fact is forgotten, with 2 places that said it."
    assert texts(page) == []


@pytest.mark.parametrize(
    "said", ["vergiss meine Schwester", "vergiss alles über meine Schwester", "Vergiss Schwester!"]
)
async def test_what_is_named_in_german_is_found_among_facts_told_in_english(talk, page, said):
    await talk.say("remember that my sister is called Klara")
    assert await talk.say(said) == "One fact is forgotten, with 2 places that said it."
    assert texts(page) == []


KLARA = ("Which one? Nothing was erased yet.", "1. The user's sister is called Klara. (k3f9)")


@pytest.mark.parametrize(
    ("told", "found", "answer"),
    [
        ("The user's sister is called Klara.", "", KLARA),
        (
            "",
            "memory/facts.md:3-3\n```text\n- The user's sister is called Klara.\n```",
            (
                (
                    "These facts may be meant, nothing was erased; say “forget …” "
                    "with the words of one:"
                ),
                "- “The user's sister is called Klara.” (memory/facts.md:3)",
            ),
        ),
    ],
)
def test_a_fact_that_is_quoted_is_not_said_to_be_none(told, found, answer):
    specs = tuple(
        ToolSpec(name, "", {"type": "object"}, Effect.IDEMPOTENT)
        for name in ("forget", "memory_search")
    )
    known = fence("agentd, facts the user told", f"- [k3f9] {told}") if told else ""
    system = f"## What is known about the user\n{known}"
    messages = [user("forget that thing with the sisters")]
    for _ in range(4):
        step = chat.reply(Prompt((system,), tuple(messages), specs))
        if isinstance(step, FinalText):
            break
        use = ToolUse(f"c{len(messages)}", step.tool, step.input)
        result = "No fact says that; nothing was erased." if step.tool == "forget" else found
        messages += [assistant("", use), Message(Role.USER, (ToolResult(use.id, result),))]
    assert tuple(step.text.split("\n")[:2]) == answer


@pytest.mark.parametrize("said", ["forget it", "Vergiss es!", "forget that, please"])
async def test_where_nothing_is_named_it_asks_what_to_forget(talk, page, said):
    await talk.say("remember that my dog is called Rex")
    assert (await talk.say(said)).startswith("What shall I forget?")
    assert texts(page) == [DOG]


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
        ("7", ["The user's cat is called Rex.", "The user's hamster is called Rex."]),
    ],
)
async def test_of_several_facts_the_user_names_one(talk, page, answer, left):
    await talk.say("remember that my cat is called Rex")
    await talk.say("remember that my hamster is called Rex")
    shown = await talk.say("forget Rex")
    assert shown.split("\n")[:3] == [
        "Which one? Nothing was erased yet.",
        "1. The user's cat is called Rex. (f0000001)",
        "2. The user's hamster is called Rex. (f0000002)",
    ]
    await talk.say(answer)
    assert texts(page) == left
    for call in page.forgot[1:]:
        assert call["query"] == "Rex", "so that what these have replaced goes, too"


async def test_a_choice_whose_question_is_gone_from_the_context_is_by_ids_alone():
    shown = "Which one? Nothing was erased yet.\n1. The user's cat is called Rex. (f0000001)"
    spec = ToolSpec("forget", "", {"type": "object"}, Effect.IDEMPOTENT)
    step = chat.reply(Prompt(("Rules.",), (assistant(shown), user("1")), (spec,)))
    assert step == OfflineCall("forget", {"query": "", "ids": ["f0000001"]})


async def test_another_question_is_no_answer_to_which_one(talk, page):
    await talk.say("remember that my cat is called Rex")
    await talk.say("remember that my hamster is called Rex")
    await talk.say("forget Rex")
    reply = await talk.say("what is my cat called?")
    assert reply.startswith("You told me: The user's cat is called Rex.")
    assert "forgotten" not in await talk.say("2")
    assert len(texts(page)) == 2


async def test_what_no_fact_says_is_looked_for_in_the_notes(talk, page):
    talk.write("memory/2026-11-20.md", "- [09:00] the flamingo is pink\n")
    reply = await talk.say("forget the flamingo")
    assert reply.startswith("No fact says that; nothing was erased.")
    assert "`agentd memory forget TEXT`" in reply
    assert "memory/2026-11-20.md:1" in reply
    assert "flamingo is pink" in talk.workspace.text("memory/2026-11-20.md")


async def test_a_no_is_no(talk, page):
    await talk.say("remember that my dog is called Rex")
    talk.gate.yes = False
    assert await talk.say("delete my dog") == "Nothing was erased: you did not agree."
    assert texts(page) == [DOG]


def test_answers_of_the_tools_are_told_in_words():
    assert fact_answers.kept_answer("Known already: a: b") == "I know that already: a: b"
    assert (
        fact_answers.kept_answer("Remembered: a It replaces: b\nKnown already: c").count("\n") == 2
    )
    assert fact_answers.kept_answer("No longer so: a") == "No longer so: a"
    assert fact_answers.refusal_reason("this session cannot keep facts about the owner") == ""
    assert fact_answers.offered_facts("Which one?\n1. a (b)") == ()


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
    assert reply == OfflineCall("memory_write", {"content": "My cat is called Tom."})


def test_facts_are_read_where_the_prompt_tells_them_and_nowhere_else():
    told = fact_lines({"k3f9": DOG})
    beside = f"## Relevant Memories\n{told}"
    clock = "[Now: Saturday 2026-11-21 12:00 UTC]"

    def facts(*texts: str, system: tuple[str, ...] = ()) -> tuple[str, ...]:
        said = Message(Role.USER, tuple(map(Text, (*texts, "who?"))))
        return conversation.facts(Prompt(system, (said,)))

    assert facts(f"{beside}\n\n{clock}") == (DOG,)
    assert facts(clock, system=("x", f"## What is known about the user\n{told}")) == (DOG,)
    assert facts(fence("agentd alert", beside), clock) == ()
    assert facts(clock) == ()
    assert conversation.facts(Prompt((), (user(beside),))) == ()


def test_facts_that_have_changed_since_are_told_as_they_are_now():
    known = {"k3f9": DOG, "t3a2": "The user likes tea.", "c0c0": "a", "b1b1": "b", "h0m3": "c"}
    changed = """- [k3f9] no longer holds; since 2026-11-21: [m4a1] The user's dog is called Max.
- [t3a2] no longer holds since 2026-11-20.
- [c0c0] no longer holds.
- [b1b1] no longer holds; since 2026-11-21: [m4a1]
- [n3w1 since 2026-11-21] The user's boat no longer holds."""
    fenced = fence("agentd, facts the user told", changed)
    beside = (
        f"## Changes to what is known about the user\n{fenced}\n\n[Now: Saturday "
        "2026-11-21 12:00 UTC]"
    )
    system = (f"## What is known about the user\n{fact_lines(known)}",)
    said = Message(Role.USER, (Text(beside), Text("what is my dog called?")))
    assert conversation.facts(Prompt(system, (said,))) == (
        "c",
        "The user's dog is called Max.",
        "The user's boat no longer holds.",
    )
