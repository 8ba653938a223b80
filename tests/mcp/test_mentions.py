"""`@NAME:URI` in what the owner types."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from agentd.core.clock import SystemClock
from agentd.core.tool import Decision
from agentd.core.turn import SessionKey, TurnRequest
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.mentions import Mentions, mentions
from agentd.testing.models import Answers
from tests.mcp.servers import rogue, running, server
from tests.mcp.test_sdk_server import PROGRAM

CLOCK = SystemClock("UTC")


def notes(**settings: Any) -> McpServer:
    return McpServer(command=(sys.executable, "-W", "ignore", PROGRAM), **settings)


async def attached(
    folder: Path,
    settings: McpServer,
    owner: Answers,
    message: TurnRequest,
    *,
    may_ask: bool = True,
) -> tuple[TurnRequest, list[str]]:
    one = server(folder, CLOCK, settings, name="notes")
    told: list[str] = []
    async with running(one):
        await one.refresh()
        reader = Mentions([one], owner, 2000)
        return await reader.attached(message, told.append, may_ask=may_ask), told


def message(text: str, session: str = "main", **others: Any) -> TurnRequest:
    return TurnRequest(SessionKey(session), text, "m1", **others)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("what says @notes:note://today", ["@notes:note://today"]),
        ("@notes:note://today, and (@notes:note://b).", ["@notes:note://today", "@notes:note://b"]),
        ("@notes:file:///a_(1).md!", ["@notes:file:///a_(1).md"]),
        ("@notes:x @notes:x", ["@notes:x"]),
        ("write to me@notes:x", []),
        ("@notes: x", []),
        ("@Notes:x @memory/a.md", []),
        ("@notes:...", []),
    ],
)
def test_what_a_text_names(text: str, named: list[str]) -> None:
    assert [one.words for one in mentions(text)] == named


async def test_a_resource_goes_along_as_words_of_others(tmp_path: Path) -> None:
    owner = Answers()
    text = "what says @notes:note://today?"
    made, told = await attached(tmp_path, notes(), owner, message(text))
    assert made.text.startswith(f"{text}\n\n@notes:note://today\n")
    assert "```text\nbuy milk\n```" in made.text
    assert made.quoted == ((len(text), len(made.text)),)
    (question,) = owner.questions
    assert question.title == "Attach a resource of notes"
    assert question.new_text == "@notes:note://today"
    assert told[0].startswith("@notes:note://today goes along (")


async def test_what_is_allowed_by_name_is_not_asked(tmp_path: Path) -> None:
    owner = Answers()
    settings = notes(tools={"read_resource": "allow"})
    made, _ = await attached(
        tmp_path, settings, owner, message("@notes:note://today"), may_ask=False
    )
    assert "buy milk" in made.text
    assert owner.questions == []


@pytest.mark.parametrize(
    ("settings", "says", "may_ask", "reason"),
    [
        ({}, Decision.DENY, True, "The user did not allow it to be read."),
        ({}, Decision.UNASKED, True, "nobody was there who could have been asked"),
        ({}, Decision.ONCE, False, "nobody was there who could have been asked"),
        ({"permission": "deny"}, Decision.ONCE, True, "offers no resources that may be read"),
    ],
)
async def test_what_may_not_be_read_is_told_and_the_message_goes_on(
    tmp_path: Path, settings: dict[str, str], says: Decision, may_ask: bool, reason: str
) -> None:
    made, told = await attached(
        tmp_path,
        notes(**settings),
        Answers(default=says),
        message("@notes:note://today"),
        may_ask=may_ask,
    )
    assert reason in made.text
    assert reason in told[0]
    assert "buy milk" not in made.text
    assert made.quoted


async def test_an_address_that_the_server_does_not_know_is_told(tmp_path: Path) -> None:
    made, told = await attached(tmp_path, notes(), Answers(), message("@notes:note://nowhere"))
    assert "failed (refused)" in made.text
    assert told[0].startswith("@notes:note://nowhere does not go along: ")


@pytest.mark.parametrize(
    "untouched",
    [
        message("@notes:note://today", "group:friends"),
        message("@notes:note://today", "isolated:task"),
        message("@notes:note://today", quoted=((0, 19),)),
        message("@others:note://today"),
        message("mail me@notes:note://today"),
    ],
)
async def test_only_the_owners_own_words_in_his_own_chats_name_any(
    tmp_path: Path, untouched: TurnRequest
) -> None:
    owner = Answers()
    made, told = await attached(tmp_path, notes(), owner, untouched)
    assert (made, told, owner.questions) == (untouched, [], [])


async def test_no_more_than_five_go_along(tmp_path: Path) -> None:
    owner = Answers()
    text = " ".join(f"@notes:note://{number}" for number in range(7))
    made, told = await attached(tmp_path, notes(), owner, message(text))
    assert len(owner.questions) == 5
    assert made.text.count("failed (refused)") == 5
    assert told[5:] == [
        f"@notes:note://{number} was not attached: 5 resources go along with a message"
        for number in (5, 6)
    ]


async def test_a_server_lists_what_it_has(tmp_path: Path) -> None:
    one = server(tmp_path, CLOCK, notes())
    two = server(tmp_path, CLOCK, rogue(), name="other")
    async with running(one, two):
        await one.refresh()
        await two.refresh()
        assert [(r.uri, r.name) for r in await one.resources()] == [("note://today", "today")]
        assert (one.has_resources, two.has_resources) == (True, False)
        assert await two.resources() == ()
