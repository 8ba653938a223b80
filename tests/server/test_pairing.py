"""Calls and results from elsewhere stay pairs, or become words that a service takes."""

from __future__ import annotations

import random

import pytest

from agentd.core.message import Text, ToolResult, ToolUse, encode_blocks
from agentd.core.transcript import NewRow, RowRole
from agentd.interfaces.acp.transcript_lines import paired
from agentd.testing import check_api_messages

USER, ASSISTANT, NOTICE = RowRole.USER, RowRole.ASSISTANT, RowRole.NOTICE


def use(id_: str) -> ToolUse:
    return ToolUse(id_, "look", {"at": id_})


def result(id_: str, text: str = "seen") -> ToolResult:
    return ToolResult(id_, text)


def check(rows: list[NewRow]) -> None:
    spoken = [r for r in rows if r.role in (USER, ASSISTANT) and r.blocks]
    check_api_messages([{"role": str(r.role), "content": encode_blocks(r.blocks)} for r in spoken])


def test_what_is_paired_stays_as_it_is() -> None:
    rows = [
        NewRow(USER, (Text("go"),)),
        NewRow(ASSISTANT, (Text("I look"), use("a"), use("b"))),
        NewRow(NOTICE, (Text("an alert"),)),
        NewRow(USER, (result("a"),)),
        NewRow(USER, (result("b"),)),
        NewRow(ASSISTANT, (Text("done"),)),
    ]
    assert paired(rows) == rows
    check(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [NewRow(ASSISTANT, (use("a"),)), NewRow(USER, (Text("never mind"),))],
        [NewRow(USER, (result("a"),)), NewRow(ASSISTANT, (Text("ok"),))],
        [NewRow(ASSISTANT, (use("a"), use("b"))), NewRow(USER, (result("b"),))],
        [NewRow(ASSISTANT, (use("a"),)), NewRow(USER, (Text("wait"), result("a")))],
        [NewRow(ASSISTANT, (use("a"),)), NewRow(USER, (result("a"), result("a")))],
        [
            NewRow(ASSISTANT, (use("a"),)),
            NewRow(USER, (result("a"),)),
            NewRow(ASSISTANT, (use("a"),)),
            NewRow(USER, (result("a"),)),
        ],
        [NewRow(ASSISTANT, (use("a"),))],
    ],
    ids=["unanswered", "unasked", "half", "late", "twice", "again", "cut"],
)
def test_what_is_not_becomes_words(rows: list[NewRow]) -> None:
    whole = paired([NewRow(USER, (Text("go"),)), *rows])
    check(whole)
    assert "[" in str(whole), "nothing that was said is lost"


def test_words_of_a_long_result_are_clipped() -> None:
    (row,) = paired([NewRow(USER, (result("a", "x" * 50_000),))])
    assert len(row.blocks[0].text) < 2100


@pytest.mark.parametrize("seed", range(200))
def test_whatever_comes_in_a_service_takes(seed: int) -> None:
    chance = random.Random(seed)
    rows = [NewRow(USER, (Text("go"),))]
    for _ in range(chance.randrange(12)):
        ids = chance.choices("abcd", k=chance.randrange(1, 3))
        role = chance.choice((USER, ASSISTANT, NOTICE))
        kinds = {USER: (result, Text), ASSISTANT: (use, Text), NOTICE: (Text,)}[role]
        rows.append(NewRow(role, tuple(chance.choice(kinds)(id_) for id_ in ids)))
    check(paired(rows))
