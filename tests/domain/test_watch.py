"""What has changed in an answer: shown whatever its shape, and bounded."""

from __future__ import annotations

import json
from time import process_time

import pytest

from agentd.core.erasure import MASK
from agentd.core.watch import WatchedCall, changes, is_same


def seen(answer: str) -> WatchedCall:
    return WatchedCall.answered("list", {}, answer)


def told(old: str, new: str) -> str:
    before = seen(old)
    return changes({before.key: before}, [seen(new)])


def added(old: str, new: str) -> list[str]:
    return [line[1:] for line in told(old, new).splitlines() if line[:1] == "+"]


def mails(*names: str) -> str:
    return json.dumps({"mails": [{"from": name, "about": "x" * 80} for name in names]})


def test_an_answer_that_is_the_same_has_no_changes() -> None:
    assert told("a", "a") == ""


@pytest.mark.parametrize("many", [3, 300, 800])
def test_what_is_new_is_shown_however_long_the_line(many: int) -> None:
    old = [f"shop{n}" for n in range(many)]
    assert any("ANNA" in line for line in added(mails(*old), mails("ANNA", *old)))


def test_what_is_new_comes_before_what_is_gone() -> None:
    assert any("ANNA" in line for line in added("gone line\n" * 2_000, "ANNA\n"))


def test_lines_that_look_like_the_head_of_a_diff_are_shown() -> None:
    assert added("x", "x\n++ Anna wrote") == ["++ Anna wrote"]


def test_half_a_surrogate_pair_is_no_part_of_what_is_shown() -> None:
    shown = told("x", '{"a": "\\ud800"}')
    assert '"a": "?"' in shown
    assert shown.encode(errors="replace").decode() == shown


def test_what_was_erased_is_no_change_and_no_news() -> None:
    old = seen("Anna: the kayak is sold\nBob: hello")
    erased = WatchedCall("list", {}, old.answer.replace("the kayak is sold", MASK), "")
    assert is_same(erased, old)
    new = seen("Carl: hi\n" + old.answer)
    assert not is_same(erased, new)
    shown = changes({erased.key: erased}, [new])
    assert "+Carl: hi" in shown
    assert "+Anna" not in shown


def test_many_short_lines_take_no_time() -> None:
    old = "\n".join(str(n % 120) for n in range(16_000))
    new = "\n".join(str(n % 119) for n in range(16_000))
    begun = process_time()
    told(old, new)
    assert process_time() - begun < 2
