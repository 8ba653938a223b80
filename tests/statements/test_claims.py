"""What first-person sentences are read as. The small talk beside this file must give nothing."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.domain.fact import Category
from agentd.statements import relations
from agentd.statements.claims import LONGEST, claims, triple_of
from tests.growth import QUADRATIC, growth

SUNDAY = date(2026, 11, 22)

SAID = [
    ("My name is Anna Schmidt.", ["The user's name is Anna Schmidt."]),
    ("call me Sam", ["The user is called Sam."]),
    ("My bike is called Flash", ["The user's bike is called Flash."]),
    ("our car is named Queen of the Road", ["The user's car is called Queen of the Road."]),
    ("my new printer's name is Gutenberg", ["The user's printer is called Gutenberg."]),
    ("My guitar is called Lucille", ["The user's guitar is called Lucille."]),
    ("My bank is called Revolut", ["The user's bank is Revolut."]),
    ("My favourite band is called Radiohead", ["The user's favourite band is Radiohead."]),
    ("My car is called back to the garage", []),
    ("My boat is named after Bob", []),
    ("My password is called Hunter2", []),
    ("My song is called Yesterday", []),
    ("Hi, I'm Anna", ["The user's name is Anna."]),
    ("I'm 34 years old", ["The user is 34 years old."]),
    ("My birthday is May 3", ["The user's birthday is May 3."]),
    ("my birthday is on 3 May 1990", ["The user's birthday is 3 May 1990."]),
    ("I was born in Hamburg", ["The user was born in Hamburg."]),
    ("My dog is called Rex", ["The user's dog is called Rex."]),
    ("my dog is called rex", ["The user's dog is called rex."]),
    ("my dog's name is Rex", ["The user's dog is called Rex."]),
    ("My dog Rex loves bones.", ["The user's dog is called Rex."]),
    ("Ich nutze Lexoffice für Rechnungen.", ["The user uses Lexoffice für Rechnungen."]),
    ("By the way: my dog is called Rex.", ["The user's dog is called Rex."]),
    ("Good news: my dog is called Rex.", ["The user's dog is called Rex."]),
    ("As I said, my dog is called Rex.", ["The user's dog is called Rex."]),
    ("My dog is called Rex, as I said.", ["The user's dog is called Rex."]),
    ("My aunt lives in Ulm, you know.", ["The user's aunt lives in Ulm."]),
    ("I love ginger tea a lot.", ["The user likes ginger tea."]),
    ("I'm building an app called Tapir.", ["The user works on Tapir."]),
    ("Anna: my dog is called Rex.", []),
    ("From: kim@example.org\nSubject: me\n\nI love rye bread.", []),
    ("our cat is called Mia", ["The user's cat is called Mia."]),
    ("I have a dog named Rex.", ["The user's dog is called Rex."]),
    ("We adopted a cat called Luna", ["The user's cat is called Luna."]),
    ("I have two dogs, Max and Rex", ["The user has two dogs, Max and Rex."]),
    (
        "My dog is called Rex and my cat is called Mia.",
        ["The user's dog is called Rex.", "The user's cat is called Mia."],
    ),
    ("My wife is called Anna.", ["The user's wife is called Anna."]),
    ("my wife's name is Anna", ["The user's wife is called Anna."]),
    ("My son Tim starts school on Monday", ["The user's son is called Tim."]),
    ("I have two kids, Tim and Lea.", ["The user has two kids, Tim and Lea."]),
    ("I'm married to Anna", ["The user is married to Anna."]),
    ("My boss is Petra", ["The user's boss is called Petra."]),
    ("My sister lives in Oslo", ["The user's sister lives in Oslo."]),
    (
        "My sister Clara lives in Oslo.",
        ["The user's sister Clara lives in Oslo.", "The user's sister is called Clara."],
    ),
    (
        "My younger brother Tom now works at Bosch.",
        ["The user's brother Tom works at Bosch.", "The user's brother is called Tom."],
    ),
    ("I work at Bosch in Bad Homburg", ["The user works at Bosch in Bad Homburg."]),
    ("I work at Bosch in Bonn as an engineer", ["The user works at Bosch in Bonn."]),
    ("I work at Bosch in May", []),
    ("I quit Siemens and work at Bosch now", ["The user works at Bosch."]),
    (
        "I live in Rome and work for Fiat.",
        ["The user lives in Rome.", "The user works at Fiat."],
    ),
    (
        "Ich wohne in Ulm und arbeite bei Bosch",
        ["The user lives in Ulm.", "The user works at Bosch."],
    ),
    ("I want to quit and live in Rome", []),
    ("I can't stay and work at Bosch", []),
    ("I met people who live in Rome and work at Fiat", []),
    ("I saw Tom live and work at Fiat", []),
    ("I left Kiel and drive a Volvo", ["The user's car is a Volvo."]),
    ("I eat meat again", ["The user eats meat."]),
    ("I've started eating fish and cheese again", ["The user eats fish.", "The user eats cheese."]),
    ("I drink coffee again", ["The user drinks coffee."]),
    ("I started smoking again", ["The user smokes."]),
    ("I stopped being vegan", ["The user is no longer vegan."]),
    ("I'm a non-smoker", ["The user is a non-smoker."]),
    ("I don't like celery at all", ["The user does not like celery."]),
    ("My brother is a doctor", ["The user's brother is a doctor."]),
    ("My daughter is allergic to peanuts", ["The user's daughter is allergic to peanuts."]),
    (
        "I speak German, English and a little French",
        ["The user speaks German.", "The user speaks English.", "The user speaks French."],
    ),
    ("I play the piano", ["The user plays piano."]),
    ("I'm a software engineer at Siemens", ["The user is a software engineer at Siemens."]),
    ("I work as a nurse", ["The user is a nurse."]),
    ("I'm a nurse.", ["The user is a nurse."]),
    ("I live in Berlin", ["The user lives in Berlin."]),
    ("i live in berlin", ["The user lives in berlin."]),
    ("We live in New York now", ["The user lives in New York."]),
    ("I moved from Berlin to Hamburg", ["The user moved from Berlin to Hamburg."]),
    ("We just moved to Munich", ["The user moved to Munich."]),
    ("I no longer live in Berlin", ["The user no longer lives in Berlin."]),
    (
        "My address is Hauptstraße 5, 10115 Berlin",
        ["The user's address is Hauptstraße 5, 10115 Berlin."],
    ),
    ("I'm from Poland", ["The user comes from Poland."]),
    ("my car is a red Golf", ["The user's car is a red Golf."]),
    ("My car is a Tesla Model 3", ["The user's car is a Tesla Model 3."]),
    ("I drive a Volvo", ["The user's car is a Volvo."]),
    ("my laptop is a ThinkPad X1", ["The user's laptop is a ThinkPad X1."]),
    ("My editor is Vim", ["The user's editor is Vim."]),
    ("my shoe size is 43", ["The user's shoe size is 43."]),
    ("My blood type is A positive", ["The user's blood type is A positive."]),
    ("My blood type is A-", ["The user's blood type is A-."]),
    ("my blood type is AB-.", ["The user's blood type is AB-."]),
    ("My blood type is O- by the way!", ["The user's blood type is O-."]),
    ("My blood type is 0 -", ["The user's blood type is 0."]),
    ("My blood type is A --", ["The user's blood type is A."]),
    ("My phone number is +49 170 1234567", ["The user's phone number is +49 170 1234567."]),
    ("my email is anna@example.org", ["The user's email is anna@example.org."]),
    ("my licence plate is B-AB 1234", ["The user's licence plate is B-AB 1234."]),
    ("My wifi is called FritzNest", ["The user's Wi-Fi is called FritzNest."]),
    ("I like green tea", ["The user likes green tea."]),
    ("I really love hiking in the Alps.", ["The user likes hiking in the Alps."]),
    ("I hate coriander", ["The user dislikes coriander."]),
    ("I don't like onions", ["The user does not like onions."]),
    ("I prefer tea over coffee", ["The user prefers tea over coffee."]),
    ("I prefer coffee to tea.", ["The user prefers coffee over tea."]),
    ("I prefer dark mode", ["The user prefers dark mode."]),
    ("My favourite colour is blue", ["The user's favourite colour is blue."]),
    ("my favorite band is The Beatles", ["The user's favourite band is The Beatles."]),
    ("Blue is my favourite colour", ["The user's favourite colour is Blue."]),
    ("I'm allergic to nuts", ["The user is allergic to nuts."]),
    (
        "I am severely allergic to peanuts and shellfish",
        ["The user is allergic to peanuts.", "The user is allergic to shellfish."],
    ),
    ("I'm no longer allergic to nuts", ["The user is no longer allergic to nuts."]),
    ("I have a peanut allergy", ["The user is allergic to peanut."]),
    ("I'm vegetarian", ["The user is vegetarian."]),
    ("I'm no longer vegan", ["The user is no longer vegan."]),
    ("I don't eat meat", ["The user does not eat meat."]),
    ("I stopped smoking", ["The user has given up smoking."]),
    ("I don't drink alcohol", ["The user does not drink alcohol."]),
    ("I use Vim", ["The user uses Vim."]),
    ("I use Obsidian for my notes", ["The user uses Obsidian for their notes."]),
    (
        "I switched from Vim to Emacs",
        ["The user switched from Vim to Emacs.", "The user no longer uses Vim."],
    ),
    ("I no longer use Vim", ["The user no longer uses Vim."]),
    ("I don't use Notion anymore", ["The user no longer uses Notion."]),
    ("I'm working on a project called Atlas", ["The user works on Atlas."]),
    ("We're working on Project Hermes", ["The user works on Hermes."]),
    ("The deadline for Atlas is June 1", ["The deadline of Atlas is June 1."]),
    ("Atlas deadline moved to June 15", ["The deadline of Atlas is June 15."]),
    ("our deadline is Friday", ["The user's deadline is on 2026-11-27."]),
    ("Project Atlas is due on 2026-12-01", ["The deadline of Atlas is 2026-12-01."]),
    ("The staging server runs on port 8080", ["The port of staging server is 8080."]),
    ("the port of the api is now 9090", ["The port of api is 9090."]),
    ("Atlas is hosted on Hetzner", ["The host of Atlas is Hetzner."]),
    ("The version of Atlas is 2.1.0", ["The version of Atlas is 2.1.0."]),
    ("Project Atlas is on hold", ["The status of Atlas is on hold."]),
    ("our backend uses PostgreSQL", ["The user's backend uses PostgreSQL."]),
    ("We decided to use SQLite for the cache", ["The user decided to use SQLite for the cache."]),
    ("I decided against buying a house", ["The user decided against buying a house."]),
    (
        "We're going with Postgres for storage",
        ["The user decided to go with Postgres for storage."],
    ),
    ("We chose Rust over Go", ["The user chose Rust over Go."]),
    (
        "The deploy failed because the disk was full",
        ["The deploy failed because the disk was full."],
    ),
    (
        "the migration was rolled back because of a lock",
        ["The migration was rolled back because of a lock."],
    ),
    ("We shipped version 2.0 on Friday", ["The user shipped version 2.0 on 2026-11-20."]),
    ("I passed my driving test", ["The user passed their driving test."]),
    ("Always answer in German", ["Always answer in German."]),
    ("Never push to main on Fridays.", ["Never push to main on Fridays."]),
    ("please always use metric units", ["Always use metric units."]),
    ("From now on, call me Sam", ["From now on, call the user Sam."]),
    ("don't ever email my boss", ["Never email the user's boss."]),
    ("I have a dentist appointment on May 3", ["The user's dentist appointment is on May 3."]),
    ("My flight to Rome is on May 3 at 10:00", ["The user's flight to Rome is on May 3 at 10:00."]),
    ("My flight to Rome was moved to May 4", ["The user's flight to Rome is on May 4."]),
    ("I'm flying to Lisbon on December 12", ["The user's flight to Lisbon is on December 12."]),
    (
        "I have a meeting with Tom tomorrow at 3pm",
        ["The user's meeting with Tom is on 2026-11-23 at 3pm."],
    ),
    ("My job interview is next Tuesday", ["The user's job interview is on 2026-11-24."]),
    ("mein Hund heißt Rex", ["The user's dog is called Rex."]),
    ("Mein Hund Rex bellt viel", ["The user's dog is called Rex."]),
    ("Unsere Katze heißt Mia.", ["The user's cat is called Mia."]),
    ("Ich wohne in Berlin", ["The user lives in Berlin."]),
    ("ich bin nach Hamburg gezogen", ["The user moved to Hamburg."]),
    ("Ich bin von Berlin nach Hamburg gezogen", ["The user moved to Hamburg."]),
    ("Ich mag grünen Tee", ["The user likes grünen Tee."]),
    ("ich mag keinen Kaffee", ["The user dislikes Kaffee."]),
    ("Ich mag Kaffee nicht", ["The user dislikes Kaffee."]),
    ("Ich bin allergisch gegen Nüsse", ["The user is allergic to Nüsse."]),
    ("Ich bin nicht mehr allergisch gegen Nüsse", ["The user is no longer allergic to Nüsse."]),
    ("Ich heiße Jonas", ["The user's name is Jonas."]),
    ("Ich arbeite bei Siemens", ["The user works at Siemens."]),
    ("Meine Frau heißt Petra", ["The user's wife is called Petra."]),
    ("Meine Lieblingsfarbe ist Blau", ["The user's favourite colour is Blau."]),
    ("Ich habe am 3. Mai Geburtstag", ["The user's birthday is 3. Mai."]),
    ("Ich trinke lieber Tee als Kaffee", ["The user prefers Tee over Kaffee."]),
    ("Ich bin Vegetarier", ["The user is vegetarian."]),
    ("ich benutze Emacs", ["The user uses Emacs."]),
    ("Ich benutze Vim nicht mehr", ["The user no longer uses Vim."]),
    ("By the way, I live in Berlin.", ["The user lives in Berlin."]),
    ("btw my dog is called Rex :)", ["The user's dog is called Rex."]),
    (
        "Can you help me? I live in Berlin. My flight is on May 3.",
        ["The user lives in Berlin.", "The user's flight is on May 3."],
    ),
    ("I'm 180 cm tall", ["The user is 180 cm tall."]),
    ("my passport is in the top drawer", ["The user's passport is in the top drawer."]),
    ("I like jazz, but my wife prefers rock", ["The user likes jazz."]),
    ("I joined Bosch as a manager", ["The user works at Bosch."]),
    ("I no longer work at Siemens", ["The user no longer works at Siemens."]),
    ("I quit my job at Google", ["The user no longer works at Google."]),
    ("We have two cats", ["The user has two cats."]),
    ("my timezone is Europe/Berlin", ["The user's timezone is Europe/Berlin."]),
    ("I have asthma", ["The user has asthma."]),
    ("Rex is my dog", ["The user's dog is called Rex."]),
    ("My dentist is Dr. Weber", ["The user's dentist is called Dr. Weber."]),
    ("My mother's birthday is June 5", ["The user's mother's birthday is June 5."]),
    ('Here is some info. My cat is called "Mia".', ["The user's cat is called Mia."]),
    ("Actually, my dog is called Max, not Rex.", ["The user's dog is called Max."]),
    ("My dog is called Rex and he is five", ["The user's dog is called Rex."]),
    ("I'm Anna and I live in Berlin", ["The user lives in Berlin."]),
    ("I just wanted to let you know that I moved to Lyon.", ["The user moved to Lyon."]),
    (
        "My daughter Lea is 7 years old.",
        ["The user's daughter Lea is 7 years old.", "The user's daughter is called Lea."],
    ),
    ("my son is 9 years old", ["The user's son is 9 years old."]),
    ("My passport expires on 2027-03-01", ["The user's passport expires on 2027-03-01."]),
    ("My rent is 900 euros", ["The user's rent is 900 euros."]),
]
SMALL_TALK = Path(__file__).with_name("small_talk.txt").read_text("utf-8").splitlines()

TRIPLES = [
    ("My dog is called Rex", ("user", "dog name", "Rex"), True, False, Category.PERSONAL),
    ("My bike is called Flash", ("user", "bike name", "Flash"), True, False, Category.PERSONAL),
    ("Our bike's called Flash", ("user", "bike name", "Flash"), True, False, Category.PERSONAL),
    ("I live in Berlin", ("user", "home", "Berlin"), True, False, Category.PERSONAL),
    ("I moved from Berlin to Hamburg", ("user", "home", "Hamburg"), True, False, Category.PERSONAL),
    (
        "I have two dogs, Max and Rex",
        ("user", "dogs", "Max and Rex"),
        False,
        False,
        Category.PERSONAL,
    ),
    ("My son is called Tim", ("user", "son name", "Tim"), False, False, Category.PERSONAL),
    ("I like tea", ("user", "likes", "tea"), False, False, Category.PREFERENCE),
    ("I hate tea", ("user", "dislikes", "tea"), False, True, Category.PREFERENCE),
    (
        "I'm no longer allergic to nuts",
        ("user", "no longer allergic to", "nuts"),
        False,
        True,
        Category.PERSONAL,
    ),
    (
        "I prefer tea over coffee",
        ("user", "preference between coffee and tea", "tea"),
        True,
        False,
        Category.PREFERENCE,
    ),
    (
        "I prefer coffee to tea",
        ("user", "preference between coffee and tea", "coffee"),
        True,
        False,
        Category.PREFERENCE,
    ),
    (
        "The deadline for Atlas is June 1",
        ("Atlas", "deadline", "June 1"),
        True,
        False,
        Category.PROJECT,
    ),
    ("Project Atlas is on hold", ("Atlas", "status", "on hold"), True, False, Category.PROJECT),
    (
        "We decided to use SQLite",
        ("user", "decided", "to use SQLite"),
        False,
        False,
        Category.DECISION,
    ),
    (
        "Never push to main",
        ("user", "instruction", "Never push to main"),
        False,
        False,
        Category.INSTRUCTION,
    ),
    (
        "The deploy failed because the disk was full",
        ("deploy", "outcome", "failed because the disk was full"),
        False,
        False,
        Category.OUTCOME,
    ),
]


@pytest.mark.parametrize(("said", "told"), SAID)
def test_a_statement_is_told_in_the_third_person(said: str, told: list[str]) -> None:
    assert [claim.text for claim in claims(said, said_on=SUNDAY)] == told


@pytest.mark.parametrize(("said", "triple", "is_functional", "is_negated", "category"), TRIPLES)
def test_a_claim_has_its_triple_and_its_kind(
    said, triple, is_functional, is_negated, category
) -> None:
    (claim,) = claims(said)
    assert claim.triple is not None
    assert (claim.triple.subject, claim.triple.relation, claim.triple.value) == triple
    assert (claim.is_functional, claim.is_negated, claim.category) == (
        is_functional,
        is_negated,
        category,
    )


@pytest.mark.parametrize("said", [said for said, _ in SAID])
def test_a_claim_told_is_read_back_as_the_same_triple(said: str) -> None:
    for claim in claims(said, said_on=SUNDAY):
        if claim.is_functional and claim.triple is not None:
            again = triple_of(claim.text)
            assert again is not None
            assert relations.slot(again) == relations.slot(claim.triple)
            assert again.value == claim.triple.value


def test_there_is_enough_small_talk_to_look_at() -> None:
    assert len(SMALL_TALK) >= 200


@pytest.mark.parametrize("line", SMALL_TALK)
def test_small_talk_claims_nothing(line: str) -> None:
    assert claims(line.replace("\\n", "\n"), said_on=SUNDAY) == ()


def test_a_switch_denies_what_was_used_before() -> None:
    now, before = claims("I switched from Vim to Emacs")
    assert (now.triple.value, now.is_negated) == ("Emacs", False)
    assert (before.triple.value, before.is_negated) == ("Vim", True)


def test_a_day_that_passes_is_told_as_a_date_or_not_at_all() -> None:
    said = "I have a dentist appointment tomorrow"
    assert claims(said) == ()
    assert [c.text for c in claims(said, said_on=SUNDAY)] == [
        "The user's dentist appointment is on 2026-11-23."
    ]


def test_a_deed_on_a_weekday_is_past_and_an_appointment_is_to_come() -> None:
    assert "2026-11-20" in claims("We shipped version 2 on Friday", said_on=SUNDAY)[0].text
    assert "2026-11-27" in claims("My exam is on Friday", said_on=SUNDAY)[0].text


def test_somebody_else_is_called_by_name() -> None:
    (claim,) = claims("My dog is called Rex", speaker="Anna")
    assert claim.text == "Anna's dog is called Rex."
    assert claim.triple is not None
    assert claim.triple.subject == "Anna"


def test_a_span_is_where_the_sentence_stands() -> None:
    text = "Good morning!\n- btw, my dog is called Rex. Can you help?"
    (claim,) = claims(text)
    assert text[slice(*claim.span)] == "btw, my dog is called Rex."


def test_what_follows_a_quote_or_code_is_read() -> None:
    text = "> I live in Rome\n\n```\nI live in Paris\n```\nI live in Berlin."
    assert [claim.text for claim in claims(text)] == ["The user lives in Berlin."]


def test_passwords_are_never_claimed() -> None:
    for said in ("My password is hunter2", "my wifi password is abc123", "My PIN is 1234"):
        assert claims(said) == ()


@given(st.text(max_size=400))
@settings(max_examples=100, deadline=None)
def test_no_text_raises(text: str) -> None:
    for claim in claims(text, said_on=SUNDAY):
        assert claim.text
    triple_of(text)


@given(
    st.lists(
        st.sampled_from([s for s, _ in SAID] + SMALL_TALK + ['"', "```", "> ", "\n", "(", "’"]),
        max_size=12,
    )
)
@settings(max_examples=100, deadline=None)
def test_spans_lie_in_the_text_whatever_stands_beside(parts: list[str]) -> None:
    text = " ".join(parts)
    for claim in claims(text, said_on=SUNDAY):
        start, end = claim.span
        assert 0 <= start < end <= len(text)
        assert "\x00" not in claim.text


@pytest.mark.parametrize(
    "piece", ["my dog is called Rex and ", '"', "I like ", "“", "my dog. ", "`", "\n> ", "'a "]
)
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    assert growth(lambda size: claims(piece * (size // len(piece))), LONGEST // 8) < QUADRATIC


def test_a_megabyte_is_read_as_far_as_anybody_types() -> None:
    found = claims("My dog is called Rex. " + "I live in Berlin. " * 60_000)
    assert found[0].text == "The user's dog is called Rex."
    assert found[-1].span[1] <= LONGEST
