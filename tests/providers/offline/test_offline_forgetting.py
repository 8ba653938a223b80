"""Which words say a fact that is to be forgotten, by rules."""

from __future__ import annotations

import json

import pytest

from agentd.core.message import user
from agentd.core.prompt import Prompt
from agentd.core.turn import Origin
from agentd.engine.rendering import fence
from agentd.providers.offline import forgetting
from tests.growth import QUADRATIC, growth

LONDON = "The user lives in London."
DOG = "The user's dog is called Rex."
CAT, WORK = "The user's cat is called Minou.", "The user works at Renault."


def request(facts: list[str], candidates: list[str]) -> Prompt:
    told = "\n".join(f"[k{n}] {fact}" for n, fact in enumerate(facts, 1))
    shown = "\n".join(
        f"[{n} memory/2026-05-04.md:{n}] {text.replace(chr(10), chr(10) + '  ')}"
        for n, text in enumerate(candidates, 1)
    )
    text = f"{fence('facts to forget', told)}\n\n{fence('candidates', shown)}\n\nMark the words."
    return Prompt(("Rules.",), (user(text),), origin=Origin.FORGETTING)


@pytest.mark.parametrize(
    ("fact", "text", "span"),
    [
        (DOG, "- [09:40] My dog is called Rex. He barks.", "My dog is called Rex."),
        (DOG, "Noted: The user's dog is called Rex (page 1)", "The user's dog is called Rex"),
        (DOG, (
            "Weather was nice.\nYour dog is called Rex.\nRoom 4 is free."
            ), "Your dog is called Rex."),
        (DOG, "My dog Rex loves bones.", "My dog Rex loves bones."),
        (LONDON, "remember that I live in London", "I live in London"),
        (DOG, "[user] remember that my dog is called Rex", "my dog is called Rex"),
        (LONDON, "You live in London, so the tube is near.", "You live in London"),
        (LONDON, (
            "I live in London with my husband Bertrand, and we have a cat called Minou."
            ), "I live in London"),
        (CAT, (
            "I live in London with my husband Bertrand, and we have a cat called Minou."
            ), "we have a cat called Minou."),
        (LONDON, "Noted: you live in London, and the plumber comes.", "you live in London"),
        (LONDON, (
            "Doctor Petit knows that I live in London, call her on Monday."
            ), "I live in London"),
        (LONDON, (
            "[09:40] The bin is green, I live in London now; bring wine"
            ), "I live in London now"),
        (LONDON, "forget that I live in London", "I live in London"),
        (LONDON, (
            "Noted in memory/2026-05-04.md: the bin is green, I live in London now, bring wine."
            ), "I live in London now"),
        (LONDON, (
            "Also: “I live in London now, by the river” (sessions/main.jsonl:5)"
            ), "I live in London now"),
        (LONDON, 'Address, as told: "I live in London now"', "I live in London now"),
        (WORK, "I live in London and work at Renault.", "work at Renault."),
        (LONDON, "I live in London and work at Renault.", "I live in London"),
        (LONDON, "Since 2019 I live in London.", "Since 2019 I live in London."),
        ("the boiler code is 4417", "So: the boiler code is 4417!", "the boiler code is 4417!"),
        ("Paul lent the user 50 euros.", "Paul lent me 50 euros yesterday.", "Paul lent me 50 euros yesterday."),
        ("mein Hund Rex heißt", "merk dir, dass mein Hund Rex heißt", "mein Hund Rex heißt"),
    ],
)  # fmt: skip
async def test_the_sentence_that_says_it_is_marked(answer, fact, text, span):
    last = await answer(request(["The user is a nurse.", fact], [text]))
    assert json.loads(last.message.text) == [{"n": 1, "span": span}]
    assert span in text


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        (LONDON, "My flight to London is BA283 on May 4 at 9:40"),
        (LONDON, "The London client wants the offer by Friday, 88k"),
        (LONDON, "My sister lives in London."),
        (LONDON, "Tom lives in London."),
        (LONDON, "Do I live in London?"),
        (LONDON, "I don't live in London."),
        (LONDON, "I live in Londonderry."),
        (LONDON, "I live in London, Ontario, and have a dog"),
        (DOG, "My cat is called Rex."),
        (DOG, "My neighbour's dog is called Rex."),
        (DOG, "Rex from accounting called about the dog food"),
        ("The user's boss is called Anna.", "Anna from accounting needs the Q3 numbers"),
        ("The user's sister is called Klara.", "Klara called about the party."),
        ("the boiler code is 4417", "Room 4417 has a new boiler"),
        ("Paul lent the user 50 euros.", "I lent Paul 50 euros."),
        ("The user does not trust Mallory with the account.", "I trust Mallory with my account."),
    ],
)
async def test_what_only_mentions_the_same_is_not(answer, fact, text):
    assert (await answer(request([fact], [text]))).message.text == "[]"


async def test_each_candidate_is_marked_by_its_number(answer):
    texts = ["nothing here", "I live in London.", "My dog is called Rex. I live in London."]
    last = await answer(request([LONDON, DOG], texts))
    assert json.loads(last.message.text) == [
        {"n": 2, "span": "I live in London."},
        {"n": 3, "span": "My dog is called Rex."},
        {"n": 3, "span": "I live in London."},
    ]


async def test_a_request_without_candidates_marks_nothing(answer):
    assert (await answer(request([LONDON], []))).message.text == "[]"


@pytest.mark.parametrize("piece", ["my dog is called Rex. ", "the ", '"', "\n", "London live "])
def test_time_grows_with_the_text_and_no_faster(piece):
    def mark(size: int) -> None:
        forgetting.reply(request([LONDON, DOG], [piece * (size // len(piece))]))

    assert growth(mark, 4_000) < QUADRATIC
