"""HEARTBEAT.md: what is work, and when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import isqrt
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.beat import ItemState
from agentd.core.checklist import Checklist, item_hash, parse
from tests.growth import QUADRATIC, growth

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


def read(text: str) -> Checklist:
    return parse(text, BERLIN)


def done(checklist: Checklist, at: datetime) -> dict[str, ItemState]:
    return {i.hash: ItemState(i.hash, at, at) for i in checklist.items}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("\n \t\n", id="blank lines"),
        pytest.param("# Heartbeat\n\n## Daily\n#\n", id="headings"),
        pytest.param("<!-- check the disk -->\n", id="comment"),
        pytest.param("<!-- check\n- [ ] the disk\n-->\n# x", id="comment over lines"),
        pytest.param("<!-- never closed\n- [ ] task", id="open comment"),
        pytest.param("- [ ]\n- [x]\n* [ ] \n-\n*\n+\n1.\n", id="boxes and bullets without words"),
        pytest.param("- [x] done\n- [X] done too (every: 2h)\n", id="ticked"),
        pytest.param("- [x] done\n  with details\n  - and more\n", id="ticked with details"),
        pytest.param("```markdown\n# Heartbeat\n```\n~~~\n~~~", id="fences"),
        pytest.param("```\n- [ ] an example\n- [ ] x (due: 2026-12-01)\n```\n", id="fenced boxes"),
        pytest.param("~~~~ text\nprose\n~~~\n- [ ] x\n~~~~~\n", id="a fence within a fence"),
        pytest.param("- Home\n  - [x] dishes\n    - Soap\n      - [x] refill\n", id="titles"),
        pytest.param("---\n***\n- - -\n", id="rules"),
        pytest.param("tasks:\n", id="tasks without a task"),
        pytest.param("\ufeff# Title", id="byte order mark"),
    ],
)
def test_a_list_without_work_is_empty(text: str) -> None:
    assert read(text).is_empty


def test_the_list_that_ships_is_empty() -> None:
    template = Path(__file__).parents[2] / "workspace_template" / "HEARTBEAT.md"
    assert read(template.read_text("utf-8")).is_empty


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Look at the disk.", id="prose"),
        pytest.param("- [ ] look at the disk", id="open box"),
        pytest.param("- look at the disk", id="bullet"),
        pytest.param("1. look at the disk", id="number"),
        pytest.param("#disk", id="no heading without a space"),
        pytest.param("# H\n<!-- c -->- [ ] task", id="behind a comment"),
        pytest.param("- [ ] buy milk (due: tomorrow)", id="a date nobody can read"),
        pytest.param("- [ ] buy milk (every: now and then)", id="a duration nobody can read"),
        pytest.param("- [ ] loop (every: 0m)", id="no cadence at all"),
        pytest.param("tasks:\n  - name: inbox\n    prompt: look", id="task without interval"),
        pytest.param("- [ ](https://example.org) link", id="a link is no box"),
        pytest.param("- [x] trip\n  - [ ] return the keys", id="an open box below a ticked one"),
        pytest.param("- [x] t (every: 1h)\n  - [ ] keys", id="an open box below a ticked time"),
        pytest.param("- Home\n  - look\n  - [x] x", id="a bullet with more than entries below it"),
        pytest.param("```\n- [ ] look at the disk\n", id="a fence that nothing closes"),
        pytest.param(
            "```\n- [ ] x\n``\n~~~\n``` more\n", id="a fence that another mark does not close"
        ),
    ],
)
def test_work_without_a_date_is_open(text: str) -> None:
    assert read(text).has_open


def test_a_due_item_is_due_in_the_zone_of_the_heartbeat_and_once() -> None:
    checklist = read("- [ ] pay rent (due: 2026-12-01 09:00)")
    (item,) = checklist.items
    assert item.due == NOW
    assert not checklist.has_open
    early = NOW - timedelta(seconds=1)
    assert checklist.due({}, early) == ()
    assert checklist.next_time({}, early) == NOW
    assert checklist.due({}, NOW) == (item,)
    assert checklist.due(done(checklist, NOW), NOW + timedelta(days=9)) == ()
    assert checklist.next_time(done(checklist, NOW), NOW) is None


@pytest.mark.parametrize(
    "date", ["2026-12-01 09:00", "2026-12-01T09:00", "2026-12-01T08:00Z", "2026-12-01 08:00+00:00"]
)
def test_dates_are_read_with_and_without_an_offset(date: str) -> None:
    assert read(f"- [ ] x (Due: {date})").items[0].due == NOW


def test_a_day_alone_means_its_beginning() -> None:
    due = read("- [ ] x (due: 2026-12-01)").items[0].due
    assert due == datetime(2026, 11, 30, 23, 0, tzinfo=UTC)


def test_a_recurring_item_is_due_at_first_sight_and_then_by_its_cadence() -> None:
    checklist = read("- [ ] water (every: 2h)")
    assert len(checklist.due({}, NOW)) == 1
    states = done(checklist, NOW)
    assert checklist.due(states, NOW + timedelta(minutes=107)) == ()
    assert len(checklist.due(states, NOW + timedelta(minutes=108))) == 1
    assert checklist.next_time(states, NOW) == NOW + timedelta(hours=2)


def test_a_clock_set_back_does_not_silence_a_recurring_item() -> None:
    checklist = read("- [ ] water (every: 2h)")
    states = done(checklist, NOW + timedelta(days=365))
    assert len(checklist.due(states, NOW)) == 1


def test_a_recurring_item_can_begin_later() -> None:
    checklist = read("- [ ] water (every: 1h) (due: 2026-12-01 10:00)")
    assert checklist.due({}, NOW) == ()
    assert len(checklist.due({}, NOW + timedelta(hours=1))) == 1


TASKS = """\
tasks:

- name: inbox
  interval: 30m
  prompt: "Look for urgent mail"
- name: build
  interval: 2h
  prompt: Look at the build
- [ ] renew the domain (due: 2026-12-05 12:00)

# Notes
- name: not a task any more
  interval: 1h
"""


def test_a_tasks_block_holds_dated_entries() -> None:
    checklist = read(TASKS)
    assert [i.every for i in checklist.items] == [timedelta(minutes=30), timedelta(hours=2), None]
    assert checklist.has_open  # the entry below the heading


def test_only_what_is_due_is_shown() -> None:
    checklist = read(
        "# Home\n<!-- mine -->\n- [ ] a (every: 1h)\n  details of a\n- [ ] b (every: 1h)\n"
        "  details of b\n- [x] c\n- [ ] d\n"
    )
    a, _ = checklist.items
    shown = checklist.text([a])
    assert shown == "# Home\n\n- [ ] a (every: 1h)\n  details of a\n- [ ] d"


NESTED = """\
- Home
  - [ ] wash the windows
    with the blue cloth

    and warm water
  - [x] sweep
    - [ ] put the broom back
  - [ ] call the plumber (due: 2026-12-01 09:00)
    - [ ] ask for the bill
    - [ ] pay him (due: 2026-12-05)
    number: 555
\t- water the fern (every: 2h)
"""


def test_boxes_and_dated_entries_are_entries_of_their_own_at_any_depth() -> None:
    checklist = read(NESTED)
    assert [entry.text for entry in checklist.entries] == [
        "- [ ] wash the windows\nwith the blue cloth\nand warm water",
        "- [ ] put the broom back",
        "- [ ] call the plumber (due: 2026-12-01 09:00)\n- [ ] ask for the bill\nnumber: 555",
        "- [ ] pay him (due: 2026-12-05)",
        "- water the fern (every: 2h)",
    ]
    assert [item.due for item in checklist.due({}, NOW)] == [NOW, None]
    assert checklist.has_open


def test_an_entry_stands_in_none_but_its_own_when_those_around_it_are_left_out() -> None:
    checklist = read(NESTED)
    plumber, bill, fern = checklist.items
    shown = checklist.text([bill, fern])
    assert shown.splitlines() == [
        "- Home",
        "  - [ ] wash the windows",
        "    with the blue cloth",
        "    and warm water",
        "",
        "  - [ ] put the broom back",
        "  - [ ] pay him (due: 2026-12-05)",
        "  - water the fern (every: 2h)",
    ]
    left = read("- [x] a\n  - [x] b\n    - [ ] c\n      d\n    - [ ] e\n")
    assert left.text(()) == "- [ ] c\n  d\n- [ ] e"
    both = read("- [ ] now (due: 2026-12-01)\n- [x] old\n  - [ ] child\n")
    again = read(both.text(both.items))
    assert [entry.text for entry in again.entries] == [entry.text for entry in both.entries]
    assert len(checklist.text(checklist.items).splitlines()) == len(NESTED.splitlines()) - 1
    assert plumber.due == NOW


def test_code_belongs_to_the_entry_that_it_stands_in() -> None:
    checklist = read("- [ ] look (every: 1h)\n  ```sh\n- [ ] no box\n  ```\n- [ ] next\n")
    looked, later = checklist.entries
    assert looked.text == "- [ ] look (every: 1h)\n```sh\n- [ ] no box\n```"
    assert later.text == "- [ ] next"


def test_a_block_of_tasks_may_have_boxes_of_its_own() -> None:
    (entry,) = read("tasks:\n- name: inbox\n  interval: 30m\n  - [ ] bills\n").entries
    assert entry.item is not None
    assert "bills" in entry.text


@pytest.mark.parametrize(
    "many",
    [
        lambda size: "- [ ] " + "(due: " * size + "\n" + " - [ ] x\n" * size,
        lambda size: "tasks:\n- name: x\n" + " y\n - [ ] x\n" * size,
        lambda size: "```a\n" * size,
        lambda size: "".join(f"{'`' * n}a\n" for n in range(isqrt(size * 9), 2, -1)),
        lambda size: "".join(f"{' ' * n}- [ ] x\n" for n in range(isqrt(size * 9))),
        lambda size: "~~~\n- [ ] x\n" * size,
    ],
)
def test_a_list_is_taken_apart_in_proportion_to_its_length(
    many: Callable[[int], str],
) -> None:
    assert growth(lambda size: read(many(size)).text(()), 2000) < QUADRATIC


def test_an_item_is_known_by_its_words_not_by_its_spacing() -> None:
    assert item_hash("- [ ] Pay  Rent\u00e9") == item_hash("- [ ] pay rente\u0301")
    assert item_hash("- [ ] pay rent (due: 2026-12-01)") != item_hash(
        "- [ ] pay rent (due: 2026-12-02)"
    )


def test_another_order_leaves_the_items_what_they_are() -> None:
    one, two = "- [ ] a (every: 1h)", "- [ ] b (every: 1h)"
    first, second = read(f"{one}\n{two}").items, read(f"# new\n{two}\n\n{one}").items
    assert {i.hash for i in first} == {i.hash for i in second}


@given(st.text(alphabet="-[]x #:()\n\tabdue1`<!>~*", max_size=200))
def test_any_text_is_read_without_complaint(text: str) -> None:
    checklist = read(text)
    assert checklist.is_empty == (not checklist.has_open and not checklist.items)
    checklist.text(checklist.items)


@pytest.mark.parametrize(
    "when",
    [
        "due: 24.11.2026",
        "due: 2026-12-24 25:00",
        "every: 2 hours",
        "every: 1w",
        "due: ",
        "every: 0m",
    ],
)
def test_a_time_that_cannot_be_read_is_named_with_its_line(when: str) -> None:
    checklist = parse(f"# Work\n- [ ] fine (due: 2026-12-24)\n- [ ] pay ({when})\n", BERLIN)
    (told,) = checklist.mistakes
    assert f"- [ ] pay ({when})" in told
    assert '"2026-12-01 09:00"' in told if when.startswith("due") else '"2h"' in told
    assert checklist.has_open
    assert not parse(f"- [x] pay ({when})\n", BERLIN).mistakes


@pytest.mark.parametrize("short", ["1s", "59s", "0m"])
def test_a_duration_under_a_minute_is_none_and_the_reason_is_named(short: str) -> None:
    for text in (f"- [ ] tiny (every: {short})\n", f"tasks:\n- name: tiny\n  every: {short}\n"):
        checklist = parse(text, BERLIN)
        (told,) = checklist.mistakes
        assert f'every {short!r} is too short: "1m" is the least' in told
        assert checklist.has_open
        assert not checklist.items
    for long in ("1m", "60s", "1m1s"):
        checklist = parse(f"- [ ] small (every: {long})\n", BERLIN)
        assert not checklist.mistakes
        assert len(checklist.items) == 1


def test_a_task_with_an_interval_that_cannot_be_read_is_named() -> None:
    (told,) = parse("tasks:\n- name: mail\n  interval: 2 hours\n", BERLIN).mistakes
    assert "name: mail" in told
    assert not parse("tasks:\n- name: mail\n  interval: 2h\n", BERLIN).mistakes
