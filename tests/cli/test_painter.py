"""What a painter writes beside the answer."""

from __future__ import annotations

import os
import re

import pytest

from agentd.app.chat.painter import Painter
from agentd.testing import FakeClock

_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.mark.parametrize("kind", ["line", "aside", "alert", "question"])
def test_what_stands_beside_the_answer_breaks_between_words(kind: str, capsys) -> None:
    painter = Painter(lambda: os.terminal_size((41, 24)), FakeClock())
    told = "the daemon has gone; waiting for it to come back"
    getattr(painter, kind)({"title": told} if kind == "question" else told)
    lines = _CODES.sub("", capsys.readouterr().out).splitlines()
    assert " ".join(line.strip() for line in lines).endswith(told)
    assert all(len(line) <= 40 for line in lines)


async def test_the_line_of_a_wait_says_why_and_goes_when_the_answer_comes(capsys) -> None:
    clock = FakeClock()
    painter = Painter(lambda: os.terminal_size((80, 24)), clock)

    def shown() -> str:
        return _CODES.sub("", capsys.readouterr().out).strip()

    painter.work(going_on=True)
    await clock.advance(3)
    painter.delayed("The service is overloaded.", 20)
    assert shown() == "⋯ the service is overloaded; next try in 20 s (Ctrl-C cancels)"
    await clock.advance(12.5)
    painter.still(reading=False)
    assert "next try in 8 s" in shown()
    await clock.advance(8)
    painter.still(reading=False)
    assert shown() == "⋯ 24 s (Ctrl-C cancels)"
    painter.delayed("The service is overloaded.", 20)
    assert "overloaded" in shown()
    painter.words("Hello.")
    painter.work(going_on=False)
    assert shown() == "Hello."


async def test_a_wait_in_the_middle_of_an_answer_is_told_too(capsys) -> None:
    painter = Painter(lambda: os.terminal_size((41, 24)), FakeClock())
    painter.work(going_on=True)
    painter.words("Half an")
    painter.end_line()
    capsys.readouterr()
    painter.delayed("The connection ended before the answer did.", 20)
    lines = _CODES.sub("", capsys.readouterr().out).split("\n")
    assert " ".join(lines).startswith(
        "⋯ the connection ended before the answer did; next try in 20 s"
    )
    assert all(len(line) <= 40 for line in lines)
    painter.end_line()  # as when the daemon goes: whatever was told of the next try is void
    capsys.readouterr()
    painter.aside("the daemon has gone")
    assert "next try" not in capsys.readouterr().out
    painter.work(going_on=False)
