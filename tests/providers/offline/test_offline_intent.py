from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.providers.offline.intent import (
    Ask,
    ForgetIntent,
    ListFiles,
    NotifyIntent,
    RememberIntent,
    Remind,
    ShowFile,
    SmallTalk,
    intent,
)

NOW = datetime(2026, 11, 21, 23, 40)  # a Saturday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("remember that my dog is called Max", RememberIntent("my dog is called Max")),
        ("remember, that my dog is called Max", RememberIntent("my dog is called Max")),
        ("Remember, I keep the torch in the shed.", SmallTalk.STATEMENT),
        (
            "Remember: the server room code is 4711.",
            RememberIntent("the server room code is 4711."),
        ),
        ("Please remember this: PIN 0042", RememberIntent("PIN 0042")),
        ("please note that I prefer tea", RememberIntent("I prefer tea")),
        ("Can you remember that my wife is Ana?", RememberIntent("my wife is Ana")),
        ("don't forget that rent is due on the 1st", RememberIntent("rent is due on the 1st")),
        ("remember to buy milk", RememberIntent("Remember to buy milk", is_note=True)),
        ("save this: pin 1234", RememberIntent("pin 1234", is_note=True)),
        ("remember two\nlines", RememberIntent("two\nlines", is_note=True)),
        ("merk dir, dass mein Hund Max heißt", RememberIntent("mein Hund Max heißt")),
        ("Note to self: buy milk", RememberIntent("buy milk", is_note=True)),
        ("I want you to remember that I am vegan", RememberIntent("I am vegan")),
        ("Remember that tea is at 3. What time is it?", RememberIntent("tea is at 3.")),
        ("remember that", RememberIntent("")),
        ("do you remember my wife's name?", Ask("do you remember my wife's name?")),
        ("remember when we met?", Ask("remember when we met?")),
        ("what is my dog called?", Ask("what is my dog called?")),
        ("which code opens the server room", Ask("which code opens the server room")),
        ("My dog is Max. What is my cat called?", Ask("What is my cat called?")),
        ("tell me about Falcon", Ask("tell me about Falcon")),
        ("wie heißt mein Hund?", Ask("wie heißt mein Hund?")),
        ("我的狗叫什么名字？", Ask("我的狗叫什么名字？")),
        ("forget my old address", ForgetIntent("my old address")),
        ("forget what you know about Klara", ForgetIntent("Klara")),
        ("please forget everything I told you about my boss.", ForgetIntent("my boss")),
        ("forget all about Rex", ForgetIntent("Rex")),
        ("forget it", ForgetIntent("")),
        ("Vergiss es!", ForgetIntent("")),
        ("please forget that", ForgetIntent("")),
        ("forget about it please", ForgetIntent("")),
        (
            "remind me to call Ana tomorrow at 9",
            Remind("- [ ] call Ana (due: 2026-11-22 09:00)", "call Ana", "2026-11-22 09:00"),
        ),
        (
            "remind me in 2 minutes to take out the bread",
            Remind(
                "- [ ] take out the bread (due: 2026-11-21 23:43)",
                "take out the bread",
                "2026-11-21 23:43",
            ),
        ),
        (
            "every day at 8 remind me to walk",
            Remind("- [ ] walk (due: 2026-11-22 08:00) (every: 1d)"),
        ),
        (
            "remind me every weekday at 6:30 to feed the hens",
            Remind("- [ ] every weekday at 6:30: feed the hens"),
        ),
        (
            "remind me every second Friday at 9 to put out the bins",
            Remind("- [ ] every second Friday at 9: put out the bins"),
        ),
        (
            "remind me on the first Monday of each month to pay (the) rent",
            Remind("- [ ] on the first Monday of each month: pay [the] rent"),
        ),
        (
            "every other Tuesday remind me to water the figs",
            Remind("- [ ] every other Tuesday: water the figs"),
        ),
        (
            "remind me tomorrow at half past seven to call Ulla",
            Remind("- [ ] tomorrow at half past seven: call Ulla"),
        ),
        (
            "remind me on friday at 3pm to call Ulla",
            Remind("- [ ] call Ulla (due: 2026-11-27 15:00)", "call Ulla", "2026-11-27 15:00"),
        ),
        (
            "set a reminder to leave at 5pm",
            Remind("- [ ] leave (due: 2026-11-22 17:00)", "leave", "2026-11-22 17:00"),
        ),
        ("put call Ana on my list", Remind("- [ ] call Ana")),
        ("what's on my list?", ShowFile("HEARTBEAT.md")),
        ("add milk to my checklist", Remind("- [ ] milk")),
        ("add rent to the heartbeat on 2026-12-01", Remind("- [ ] rent (due: 2026-12-01 09:00)")),
        ("what's on my checklist?", ShowFile("HEARTBEAT.md")),
        ("show MEMORY.md", ShowFile("MEMORY.md")),
        ("Read memory/2026-11-20.md please", ShowFile("memory/2026-11-20.md")),
        ("show today's notes", ShowFile("memory/2026-11-21.md")),
        ("What did I note today?", ShowFile("memory/2026-11-21.md")),
        ("list files", ListFiles()),
        ("alert me now: fire", NotifyIntent("fire")),
        ("notify me that dinner is ready", NotifyIntent("dinner is ready")),
        ("help", SmallTalk.HELP),
        ("Hello!", SmallTalk.GREETING),
        ("who are you?", SmallTalk.WHO),
        ("Thank you very much!", SmallTalk.THANKS),
        ("what time is it?", SmallTalk.TIME),
        ("My cat is called Tom.", SmallTalk.STATEMENT),
        ("When I was young, I lived in Rome.", SmallTalk.STATEMENT),
        ("Notes are useless", SmallTalk.STATEMENT),
        ("", SmallTalk.EMPTY),
        (" \n\t", SmallTalk.EMPTY),
        ("🙂", SmallTalk.UNKNOWN),
    ],
)
def test_the_users_words_say_what_is_wanted(text, expected):
    assert intent(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["alert me when the build fails", "notify me if it rains", "alert me tomorrow at 9"]
)
def test_an_alert_for_later_is_not_sent_now(text):
    assert not isinstance(intent(text, NOW), NotifyIntent)


@given(st.text())
def test_any_text_has_an_intent(text):
    assert intent(text, NOW) is not None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("remind me to pay rent on April 31 at 9", "there is no day “April 31”"),
        ("remind me at 9 on April 31 to pay rent", "there is no day “April 31”"),
        ("on 2027-02-30 at 9, remind me to pay rent", "there is no day “2027-02-30”"),
        ("remind me to pay rent on 31.4.", "there is no day “31.4.”"),
        ("remind me on the 31st of April to pay rent", "there is no day “the 31st of April”"),
        ("remind me to pay rent on 29 February 2027", "there is no day “29 February 2027”"),
        ("add pay rent on April 31 to my checklist", "there is no day “April 31”"),
        ("remind me at 25:00 to sleep", "there is no time “25:00”"),
        ("remind me on 1 January 2020 to pay rent", "“1 January 2020” is over"),
        ("remind me last Friday to pay rent", "“last Friday” is over"),
        ("remind me yesterday at noon to pay rent", "“yesterday” is over"),
        ("remind me yesterday to pay rent", "“yesterday” is over"),
        ("remind me to pay rent on 04/05/2027 at 9", "which day “04/05/2027” is"),
        ("remind me to pay rent on 31-04-2027 at 9", "which day “31-04-2027” is"),
        ("remind me on Feb 29 to leap", ""),
        ("remind me to send yesterday's figures", ""),
        ("remind me tomorrow to ask about yesterday", ""),
        ("remind me to buy 1/2 litre of milk", ""),
        ("remind me to pay rent on 31.5.", ""),
    ],
)
def test_a_day_that_does_not_come_is_named_and_nothing_is_set(text, named):
    found = intent(text, NOW)
    assert isinstance(found, Remind)
    assert bool(found.objection) == bool(named)
    assert named in found.objection
    assert not (named and found.at)


def test_the_29th_of_february_is_the_next_that_there_is():
    assert intent("remind me on Feb 29 to leap", NOW) == Remind(
        "- [ ] leap (due: 2028-02-29 09:00)", "leap", "2028-02-29 09:00"
    )
