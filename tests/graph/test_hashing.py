from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.errors import GraphError
from agentd.zero.hashes import (
    canonical,
    concept_hash,
    context_hash,
    context_text,
    episode_hash,
    fact_hash,
    stamp,
)

NOON = datetime(2026, 2, 9, 12, tzinfo=UTC)
TRICKY = st.text(alphabet="|\\ab", max_size=4)


def digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


def test_a_concept_is_named_by_its_label() -> None:
    assert (
        concept_hash("agent").hex
        == "d4f0bc5a29de06b510f9aa428f1eedba926012b591fef7a518e776a7c9bd1824"
    )


def test_a_fact_is_named_by_its_parts_with_bars_between() -> None:
    assert fact_hash("agent", "needs", "memory").value == digest("agent|needs|memory")


def test_a_context_without_agent_and_session_is_named_by_time_source_and_scope() -> None:
    assert context_hash(NOON, "user", "main").value == digest("2026-02-09T12:00:00Z|user|main")


def test_agent_and_session_are_part_of_a_context() -> None:
    named = {
        context_hash(NOON, "user", "main"),
        context_hash(NOON, "user", "main", agent="a"),
        context_hash(NOON, "user", "main", session="a"),
        context_hash(NOON, "user", "main", agent="a", session="a"),
    }
    assert len(named) == 4


def test_an_episode_is_named_by_the_bytes_of_its_fact_and_context() -> None:
    fact, context = fact_hash("a", "b", "c"), context_hash(NOON, "user", "main")
    assert episode_hash(fact, context).value == sha256(fact.value + context.value).digest()


def test_bars_in_labels_do_not_make_two_facts_one() -> None:
    assert fact_hash("a|b", "c", "d") != fact_hash("a", "b|c", "d")
    assert fact_hash("a\\", "b", "c") != fact_hash("a", "\\b", "c")


@given(st.lists(TRICKY, min_size=1, max_size=5), st.lists(TRICKY, min_size=1, max_size=5))
def test_different_parts_have_different_texts(one: list[str], other: list[str]) -> None:
    assert (canonical(*one) == canonical(*other)) is (one == other)


@given(st.tuples(TRICKY, TRICKY, TRICKY, TRICKY), st.tuples(TRICKY, TRICKY, TRICKY, TRICKY))
def test_different_contexts_have_different_texts(
    one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    assert (context_text(NOON, *one) == context_text(NOON, *other)) is (one == other)


@given(st.lists(TRICKY, min_size=1, max_size=5))
def test_the_parts_can_be_read_back(parts: list[str]) -> None:
    read, escaped = [""], False
    for character in canonical(*parts):
        if not escaped and character in "|\\":
            escaped = character == "\\"
            read += [""] if character == "|" else []
        else:
            read[-1] += character
            escaped = False
    assert read == parts


def test_one_moment_has_one_stamp_in_every_zone() -> None:
    east = timezone(timedelta(hours=5, minutes=30))
    assert stamp(NOON.astimezone(east)) == stamp(NOON) == "2026-02-09T12:00:00Z"
    assert stamp(NOON + timedelta(microseconds=5)) == "2026-02-09T12:00:00.000005Z"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(GraphError, match="no zone"):
        context_hash(datetime(2026, 2, 9), "user", "main")


def test_a_time_that_no_calendar_holds_in_utc_is_refused() -> None:
    with pytest.raises(GraphError, match="before the year 1"):
        stamp(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))))


def test_half_a_character_is_refused() -> None:
    with pytest.raises(GraphError, match="character 3 is half of one"):
        concept_hash("ab\ud800")
