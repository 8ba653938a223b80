from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.domain.settings import parse_duration
from agentd.providers.offline.intent import (
    Ask,
    Forget,
    ListFiles,
    Notify,
    Read,
    Remember,
    Remind,
    Small,
    intent,
)
from agentd.providers.offline.sentences import split
from agentd.providers.offline.when import timed

NOW = datetime(2026, 11, 21, 23, 40)  # a Saturday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("remember that my dog is called Max", Remember("my dog is called Max")),
        ("remember, that my dog is called Max", Remember("my dog is called Max")),
        ("Remember, I keep the torch in the shed.", Small.STATEMENT),
        ("Remember: the server room code is 4711.", Remember("the server room code is 4711.")),
        ("Please remember this: PIN 0042", Remember("PIN 0042")),
        ("please note that I prefer tea", Remember("I prefer tea")),
        ("Can you remember that my wife is Ana?", Remember("my wife is Ana")),
        ("don't forget that rent is due on the 1st", Remember("rent is due on the 1st")),
        ("remember to buy milk", Remember("Remember to buy milk")),
        ("save this: pin 1234", Remember("pin 1234")),
        ("remember two\nlines", Remember("two\nlines")),
        ("merk dir, dass mein Hund Max heißt", Remember("mein Hund Max heißt")),
        ("Note to self: buy milk", Remember("buy milk")),
        ("I want you to remember that I am vegan", Remember("I am vegan")),
        ("Remember that tea is at 3. What time is it?", Remember("tea is at 3.")),
        ("remember that", Remember("")),
        ("do you remember my wife's name?", Ask("do you remember my wife's name?")),
        ("remember when we met?", Ask("remember when we met?")),
        ("what is my dog called?", Ask("what is my dog called?")),
        ("which code opens the server room", Ask("which code opens the server room")),
        ("My dog is Max. What is my cat called?", Ask("What is my cat called?")),
        ("tell me about Falcon", Ask("tell me about Falcon")),
        ("wie heißt mein Hund?", Ask("wie heißt mein Hund?")),
        ("我的狗叫什么名字？", Ask("我的狗叫什么名字？")),
        ("forget my old address", Forget("my old address")),
        ("forget it", Small.THANKS),
        (
            "remind me to call Ana tomorrow at 9",
            Remind("- [ ] call Ana (due: 2026-11-22 09:00)", "call Ana", "2026-11-22 09:00"),
        ),
        (
            "remind me in 2 minutes to take out the bread",
            Remind(
                "- [ ] take out the bread (due: 2026-11-21 23:42)",
                "take out the bread",
                "2026-11-21 23:42",
            ),
        ),
        (
            "every day at 8 remind me to walk",
            Remind("- [ ] walk (due: 2026-11-22 08:00) (every: 1d)"),
        ),
        (
            "set a reminder to leave at 5pm",
            Remind("- [ ] leave (due: 2026-11-22 17:00)", "leave", "2026-11-22 17:00"),
        ),
        ("put call Ana on my list", Remind("- [ ] call Ana")),
        ("what's on my list?", Read("HEARTBEAT.md")),
        ("add milk to my checklist", Remind("- [ ] milk")),
        ("add rent to the heartbeat on 2026-12-01", Remind("- [ ] rent (due: 2026-12-01 09:00)")),
        ("what's on my checklist?", Read("HEARTBEAT.md")),
        ("show MEMORY.md", Read("MEMORY.md")),
        ("Read memory/2026-11-20.md please", Read("memory/2026-11-20.md")),
        ("show today's notes", Read("memory/2026-11-21.md")),
        ("list files", ListFiles()),
        ("alert me now: fire", Notify("fire")),
        ("notify me that dinner is ready", Notify("dinner is ready")),
        ("help", Small.HELP),
        ("Hello!", Small.GREETING),
        ("who are you?", Small.WHO),
        ("Thank you very much!", Small.THANKS),
        ("what time is it?", Small.TIME),
        ("My cat is called Tom.", Small.STATEMENT),
        ("When I was young, I lived in Rome.", Small.STATEMENT),
        ("Notes are useless", Small.STATEMENT),
        ("", Small.EMPTY),
        (" \n\t", Small.EMPTY),
        ("🙂", Small.UNKNOWN),
    ],
)
def test_the_users_words_say_what_is_wanted(text, expected):
    assert intent(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["alert me when the build fails", "notify me if it rains", "alert me tomorrow at 9"]
)
def test_an_alert_for_later_is_not_sent_now(text):
    assert not isinstance(intent(text, NOW), Notify)


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("stretch every 2h", "- [ ] stretch (every: 2h)"),
        ("stretch every 30 minutes", "- [ ] stretch (every: 30m)"),
        ("report weekly", "- [ ] report (every: 7d)"),
        ("in 20 minutes to check the oven", "- [ ] check the oven (due: 2026-11-22 00:00)"),
        ("call at 5pm", "- [ ] call (due: 2026-11-22 17:00)"),
        ("call at 23:45", "- [ ] call (due: 2026-11-21 23:45)"),
        ("call today", "- [ ] call (due: 2026-11-21 09:00)"),
        ("film tonight", "- [ ] film (due: 2026-11-21 20:00)"),
        ("call on monday at noon", "- [ ] call (due: 2026-11-23 12:00)"),
        ("call on saturday", "- [ ] call (due: 2026-11-28 09:00)"),
        ("gift on 24 December", "- [ ] gift (due: 2026-12-24 09:00)"),
        ("gift on Jan 5th at 7:30", "- [ ] gift (due: 2027-01-05 07:30)"),
        ("pay 2026-12-01 18:15", "- [ ] pay (due: 2026-12-01 18:15)"),
        ("gift on 31 February", "- [ ] gift on 31 February"),
        ("meet at 99:99", "- [ ] meet at 99:99"),
        ("mark (due: 2020-01-01)", "- [ ] mark [due: ] (due: 2020-01-01 09:00)"),
        ("two\nlines", "- [ ] two lines"),
    ],
)
def test_times_become_marks_of_the_checklist(text, entry):
    assert timed(text, NOW).entry == entry


def test_without_a_clock_only_absolute_dates_count():
    assert timed("call tomorrow", None).marks == ""
    assert timed("call 2026-12-01", None).marks == "(due: 2026-12-01 09:00)"


@given(st.integers(0, 9999), st.sampled_from(["m", "h", "days", "weeks", "hours"]))
def test_intervals_are_ones_that_the_checklist_can_read(count, unit):
    marks = timed(f"x every {count} {unit}", NOW).marks
    assert parse_duration(marks.removeprefix("(every: ").removesuffix(")"))


@given(st.text())
def test_any_text_has_an_intent(text):
    assert intent(text, NOW) is not None
    assert "".join("".join(split(text)).split()) == "".join(text.split())


def test_sentences_end_where_people_end_them():
    text = "My doctor is Dr. Kim. She is at Elm St. 5, e.g. on v1.2 days! Why?\nnew line"
    assert list(split(text)) == [
        "My doctor is Dr. Kim.",
        "She is at Elm St. 5, e.g. on v1.2 days!",
        "Why?",
        "new line",
    ]
