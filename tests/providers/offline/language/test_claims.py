"""What sentences are read as; what must give nothing stands in the chatty corpus."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.core.fact import Category
from agentd.providers.offline.language.claims import LONGEST, claims, claims_of, thing
from tests.growth import QUADRATIC, growth

SUNDAY = date(2026, 11, 22)
SAID = [
    ("My name is Anna Schmidt.", ["The user's name is Anna Schmidt."]),
    ("I'm 34 years old", ["The user is 34 years old."]),
    ("my birthday is on 3 May 1990", ["The user's birthday is 3 May 1990."]),
    ("my dog is called rex", ["The user's dog is called rex."]),
    ("our cat’s name is Mia", ["The user's cat is called Mia."]),
    ("I have two dogs, Max and Rex", ["The user has two dogs, Max and Rex."]),
    ("My bike is called Flash", ["The user's bike is called Flash."]),
    (
        "My dog is called Rex and my cat is called Mia.",
        ["The user's dog is called Rex.", "The user's cat is called Mia."],
    ),
    (
        "My sister is called Klara and works at Roche",
        ["The user's sister is called Klara.", "The user's sister Klara works at Roche."],
    ),
    ("I live in Rome and work for Fiat.", ["The user lives in Rome.", "The user works at Fiat."]),
    ("I want to quit and live in Rome", []),
    ("I work at Bosch in Bonn as an engineer", ["The user works at Bosch in Bonn."]),
    (
        "I speak German, English and a little French",
        ["The user speaks German.", "The user speaks English.", "The user speaks French."],
    ),
    ("I'm a software engineer at Siemens", ["The user is a software engineer at Siemens."]),
    ("My blood type is AB-.", ["The user's blood type is AB-."]),
    ("my email is anna@example.org", ["The user's email is anna@example.org."]),
    ("I really love hiking in the Alps.", ["The user likes hiking in the Alps."]),
    ("I prefer coffee to tea.", ["The user prefers coffee over tea."]),
    ("my favorite band is The Beatles", ["The user's favourite band is The Beatles."]),
    (
        "I am severely allergic to peanuts and shellfish",
        ["The user is allergic to peanuts.", "The user is allergic to shellfish."],
    ),
    ("I use Obsidian for my notes", ["The user uses Obsidian for their notes."]),
    ("Atlas deadline moved to June 15", ["The deadline of Atlas is June 15."]),
    ("We decided to use SQLite for the cache", ["The user decided to use SQLite for the cache."]),
    ("don't ever email my boss", []),
    ("please always use metric units", ["Always use metric units."]),
    ("From now on, push to main", ["From now on, push to main."]),
    ("My flight to Rome was moved to May 4", ["The user's flight to Rome is on May 4."]),
    ("Unsere Katze heißt Mia.", ["The user's cat is called Mia."]),
    (
        "Ich wohne in Ulm und arbeite bei Bosch",
        ["The user lives in Ulm.", "The user works at Bosch."],
    ),
    ("Ich bin allergisch gegen Nüsse", ["The user is allergic to nuts."]),
    ("Ich trinke keinen Kaffee mehr", ["The user does not drink coffee."]),
    ("Meine Lieblingsfarbe ist Blau", ["The user's favourite colour is Blau."]),
    ("My dog is called Rex, as I said.", ["The user's dog is called Rex."]),
    ("I like jazz, but my wife prefers rock", ["The user likes jazz."]),
]
# The forms of sentences that nothing else here has.
FORMS = [
    ("I'm flying to Rome on May 4", ["The user's flight to Rome is on May 4."]),
    ("My last name is Weber", ["The user's last name is Weber."]),
    ("Please call me Jo", ["The user is called Jo."]),
    ("I was born in Lyon", ["The user was born in Lyon."]),
    ("I have asthma", ["The user has asthma."]),
    ("I play the cello", ["The user plays cello."]),
    ("The name of my wife is Ana", ["The user's wife is called Ana."]),
    ("I'm married to Ana", ["The user is married to Ana."]),
    ("I have three cats", ["The user has three cats."]),
    ("My brother Tom is a nurse", ["The user's brother Tom is a nurse.", "The user's brother is called Tom."]),
    ("My son Tim is 7", ["The user's son Tim is 7 years old.", "The user's son is called Tim."]),
    ("My mother's birthday is on 3 May", ["The user's mother's birthday is 3 May."]),
    ("My dad is 71 years old", ["The user's dad is 71 years old."]),
    ("My wife is a dentist", ["The user's wife is a dentist."]),
    ("My son is allergic to eggs", ["The user's son is allergic to eggs."]),
    ("I'm based in Ghent", ["The user lives in Ghent."]),
    ("We're moving to Oslo", ["The user is moving to Oslo."]),
    ("I don't live in Ulm any more", ["The user no longer lives in Ulm."]),
    ("We no longer live in Ulm", ["The user no longer lives in Ulm."]),
    ("I'm originally from Cork", ["The user comes from Cork."]),
    ("My car is a red Skoda", ["The user's car is a red Skoda."]),
    ("I drive a Volvo", ["The user's car is a Volvo."]),
    ("My bank is Sparda", ["The user's bank is Sparda."]),
    ("My passport expires on 3 May 2027", ["The user's passport expires on 3 May 2027."]),
    ("My phone number is +49 170 1234567", ["The user's phone number is +49 170 1234567."]),
    ("I'm working for Bosch", ["The user works at Bosch."]),
    ("I just started a new job at Roche", ["The user works at Roche."]),
    ("I got a new job at Roche", ["The user works at Roche."]),
    ("I quit my job at Siemens", ["The user no longer works at Siemens."]),
    ("We switched from Jira to Linear", ["The user switched from Jira to Linear.", "The user no longer uses Jira."]),
    ("I no longer use Vim", ["The user no longer uses Vim."]),
    ("We're building an app called Fernweh", ["The user works on Fernweh."]),
    ("I no longer like sushi", ["The user no longer likes sushi."]),
    ("I'm no longer allergic to nuts", ["The user is no longer allergic to nuts."]),
    ("I don't eat pork", ["The user does not eat pork."]),
    ("I eat meat again", ["The user eats meat."]),
    ("I drink coffee again", ["The user drinks coffee."]),
    ("Ich heiße Carla", ["The user's name is Carla."]),
    ("Ich bin 34 Jahre alt", ["The user is 34 years old."]),
    ("Mein Geburtstag ist am 3. Mai", ["The user's birthday is 3. Mai."]),
    ("Meine Schwester Klara wohnt in Bern", ["The user's sister Klara lives in Bern.", "The user's sister is called Klara."]),
    ("Mein Bruder Tom arbeitet bei Bosch", ["The user's brother Tom works at Bosch.", "The user's brother is called Tom."]),
    ("Meine Mutter wohnt in Kiel", ["The user's mother lives in Kiel."]),
    ("Mein Vater arbeitet bei Siemens", ["The user's father works at Siemens."]),
    ("Ich wohne nicht mehr in Ulm", ["The user no longer lives in Ulm."]),
    ("Ich komme aus Graz", ["The user comes from Graz."]),
    ("Ich bin nicht mehr allergisch gegen Nüsse", ["The user is no longer allergic to nuts."]),
    ("Ich bin kein Vegetarier mehr", ["The user is no longer vegetarian."]),
    ("Ich bin vegan", ["The user is vegan."]),
    ("Ich esse kein Fleisch mehr", ["The user does not eat meat."]),
    ("Ich habe aufgehört zu rauchen", ["The user does not smoke."]),
    ("Ich hasse Koriander", ["The user dislikes coriander."]),
    ("Ich mag Kaffee", ["The user likes coffee."]),
    ("Ich trinke lieber Tee als Kaffee", ["The user prefers tea over coffee."]),
    ("Ich benutze kein Vim mehr", ["The user no longer uses Vim."]),
    ("Antworte mir immer auf Deutsch", ["Always answer auf Deutsch."]),
    ("Mein Flug nach Rom ist am 4. Mai", ["The user's flight nach Rom is on 4. Mai."]),
]  # fmt: skip
# Believed only of what is to be remembered.
MEANT = [
    ("I dislike loud alarms", ["The user dislikes loud alarms."]),
    ("I'm fond of old maps", ["The user likes old maps."]),
    ("Always book aisle seats", ["Always book aisle seats."]),
    ("My sister Klara lives in Erebor", [(
        "The user's sister Klara lives in Erebor."
        ), "The user's sister is called Klara."]),
    ("My sister Klara moved to Mossfield", [(
        "The user's sister Klara lives in Mossfield."
        ), "The user's sister is called Klara."]),
    ("My wife lives in Mossfield", ["The user's wife lives in Mossfield."]),
    ("I joined Hasselblad", ["The user works at Hasselblad."]),
    ("My bike is a Blitz", ["The user's bike is a Blitz."]),
    ("I drive a Kona", ["The user's car is a Kona."]),
    ("My bank is a Raiffeisen", ["The user's bank is a Raiffeisen."]),
    ("Tom works at the Charité", ["Tom works at the Charité."]),
    ("Ich wohne in Titisee", ["The user lives in Titisee."]),
    ("Meine Schwester Klara wohnt in Titisee", [(
        "The user's sister Klara lives in Titisee."
        ), "The user's sister is called Klara."]),
    ("Meine Mutter wohnt in Titisee", ["The user's mother lives in Titisee."]),
    ("Mein Bruder Tom arbeitet bei Hasselblad", [(
        "The user's brother Tom works at Hasselblad."
        ), "The user's brother is called Tom."]),
    ("Mein Vater arbeitet bei Hasselblad", ["The user's father works at Hasselblad."]),
    ("Ich mag Blumenkohl", ["The user likes blumenkohl."]),
    ("Ich hasse Blumenkohl", ["The user dislikes blumenkohl."]),
    ("Ich esse lieber Nudeln als Reis", ["The user prefers nudeln over reis."]),
    ("Ich nutze Obsidian für Notizen", ["The user uses Obsidian für Notizen."]),
]  # fmt: skip


@pytest.mark.parametrize(("said", "told"), SAID + FORMS)
def test_a_statement_is_told_in_the_third_person(said, told):
    assert [claim.text for claim in claims(said, SUNDAY)] == told


@pytest.mark.parametrize(("said", "told"), MEANT)
def test_what_is_to_be_remembered_is_told_in_the_third_person(said, told):
    assert [claim.text for claim in claims(said, SUNDAY, is_meant=True)] == told


@pytest.mark.parametrize("said", [said for said, _ in SAID + FORMS])
def test_a_claim_told_is_read_back_as_the_same_triple(said):
    for claim in claims(said, SUNDAY):
        again = claims_of(claim.text)
        if claim.is_single:
            assert (claim.slot, claim.triple.value) in [(c.slot, c.triple.value) for c in again]


@pytest.mark.parametrize(
    ("said", "triple", "is_single", "is_denial", "category"),
    [
        ("I live in Berlin", ("user", "home", "Berlin"), True, False, Category.PERSONAL),
        ("My wife is called Ana", ("user", "wife name", "Ana"), True, False, Category.PERSONAL),
        ("My son is called Tim", ("user", "son name", "Tim"), False, False, Category.PERSONAL),
        ("My son is called Tim now", ("user", "son name", "Tim"), True, False, Category.PERSONAL),
        ("I like tea", ("user", "likes", "tea"), False, False, Category.PREFERENCE),
        ("I hate tea", ("user", "dislikes", "tea"), False, True, Category.PREFERENCE),
        ("Always use metric units", ("user", "instruction", "Always use metric units"), False, False, Category.INSTRUCTION),
        ("The deadline for Atlas is June 1", ("Atlas", "deadline", "June 1"), True, False, Category.PROJECT),
    ],
)  # fmt: skip
def test_a_claim_has_its_triple_and_its_kind(said, triple, is_single, is_denial, category):
    [claim] = claims(said)
    found = (claim.triple.subject, claim.triple.relation, claim.triple.value)
    assert (found, claim.is_single, claim.is_denial, claim.category) == (
        triple,
        is_single,
        is_denial,
        category,
    )


@pytest.mark.parametrize(
    "said", ["I live in Titisee-Neustadt.", "My boss is Petra.", "Ich arbeite bei Hasselblad"]
)
def test_what_is_meant_to_be_kept_is_believed_more_than_chatter(said):
    assert claims(said) == ()
    assert len(claims(said, is_meant=True)) == 1


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("the boiler code is 4417", ("user", "boiler code", "4417")),
        ("The user's wifi is FritzNest", ("user", "wifi", "FritzNest")),
        ("the headquarters of Testo is Titisee-Neustadt", None),
        ("the meeting is 4417", None),
        ("the sky is blue", None),
    ],
)
def test_the_one_thing_that_a_sentence_names(sentence, found):
    triple = thing(sentence)
    assert (triple and (triple.subject, triple.relation, triple.value)) == found


def test_a_span_is_where_the_sentence_stands():
    text = "Good morning!\n- btw, my dog is called Rex. Can you help?"
    [claim] = claims(text)
    assert text[claim.start : claim.end] == "btw, my dog is called Rex."


def test_what_follows_a_quote_or_code_is_read():
    text = "> I live in Rome\n\n```\nI live in Paris\n```\nI live in Berlin."
    assert [claim.text for claim in claims(text)] == ["The user lives in Berlin."]


@given(st.lists(st.sampled_from([s for s, _ in SAID] + ['"', "```", "> ", "\n", "(", "’", ": "])))
@settings(max_examples=60, deadline=None)
def test_spans_lie_in_the_text_whatever_stands_beside(parts):
    text = " ".join(parts)
    for claim in claims(text, SUNDAY):
        assert 0 <= claim.start < claim.end <= len(text)
        assert "\x00" not in claim.text


@given(st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_text_can_be_read(text):
    for claim in (*claims(text, SUNDAY), *claims_of(text)):
        assert claim.text


@pytest.mark.parametrize("piece", ["my dog is called Rex and ", "“", "my dog. ", "`", "'a "])
def test_time_grows_with_the_text_and_no_faster(piece):
    assert growth(lambda size: claims(piece * (size // len(piece))), LONGEST // 8) < QUADRATIC


def test_a_megabyte_is_read_as_far_as_anybody_types():
    found = claims("My dog is called Rex. " + "I live in Berlin. " * 60_000)
    assert found[0].text == "The user's dog is called Rex."
    assert found[-1].end <= LONGEST
