"""What a painter writes beside the answer."""

from __future__ import annotations

import os
import re

import pytest

from agentd.cli.painter import Painter
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
