"""What a summary must keep, and what it need not."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentd.core.message import Image, Text
from agentd.core.transcript import Row, RowRole
from agentd.engine.compaction import summary as summaries
from agentd.engine.compaction.extract import HEAD, extract, identifiers, wanted_identifiers
from agentd.engine.compaction.summary import LONGEST, longest_summary, render_rows
from agentd.testing import FakeClock
from tests.growth import QUADRATIC, growth

AT = FakeClock().now()
FILLER = "They talked about the garden, the weather and what to cook on Sunday. " * 3


def asked(text: str) -> list[Row]:
    return [Row(1, RowRole.USER, (Text(text),), AT)]


def fault(summary: str, rows: list[Row], longest: int = LONGEST) -> str:
    """Why the summary of the rows is refused, in words; "" if it is not."""
    found = summaries.fault(summary, rows, wanted_identifiers(rows, longest), longest)
    return found.text if found else ""


@pytest.mark.parametrize("summary", ["", "  \n "])
def test_an_empty_summary_is_refused_however_little_it_stands_for(summary) -> None:
    assert fault(summary, asked("hi")) == "it is empty"


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("we are there 24/7 and/or on call", "always there"),
        ("meet at 10:30 or 10.45", "meets at half past ten"),
        ("it costs 1.299,00 euros", "It costs 1,299 euros."),
        ("it costs 1,299.00", "It costs 1299."),
        ("12'500 francs and 1 234 567", "12500 francs and 1234567"),
        ("on 21.11.2026", "on November 21, 2026"),
        ("on 11/21/2026", "on November 21, 2026"),
        ("on 2026-11-21", "on 21 November 2026"),
        ("version 3.11.2", "a newer version"),
        ("pi is 3.14", "pi"),
    ],
)
def test_what_people_write_in_several_ways_may_be_retold_in_another(said, summary) -> None:
    assert fault(FILLER + summary, asked(said)) == ""


@pytest.mark.parametrize(
    "said",
    [
        *("build 48213", "see /etc/hosts", "at src/app.py", "host 192.168.1.20", "call 5550199"),
        *("https://example.org/x?y=1", "commit d4f0bc5a29de", "order 12,345", "pay 1.299,00"),
        "id 550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_a_summary_without_the_identifier_is_refused(said) -> None:
    assert fault(FILLER, asked(said)).startswith("it drops ")
    assert fault(f"{FILLER} {said}", asked(said)) == ""


def test_a_pasted_log_does_not_keep_the_context_from_shrinking_for_ever() -> None:
    log = "\n".join(f"line {n} took {n}1234 us" for n in range(10, 900))
    names = identifiers(log)
    kept = " ".join((*names[:20], *names[-20:]))
    assert len(names) > 500
    assert fault(FILLER + kept, asked(log)) == ""
    assert fault(FILLER, asked(log)).startswith("it drops 101234")


@pytest.mark.parametrize(
    "piece", ["a/", "1,", "1.", "/", "~", "@", "0", "ab12", "../", "http://", "-"]
)
def test_no_text_makes_looking_for_identifiers_slow(piece) -> None:
    text = piece * 50_000

    def work(size: int) -> None:
        identifiers(text[:size])
        fault(text[:size], asked(text[:size]))

    assert growth(work, 25_000) < QUADRATIC


def test_an_image_stands_in_the_conversation_as_words() -> None:
    row = Row(1, RowRole.USER, (Image("image/png", "a" * 64, 34_000), Text("look")), AT)
    assert render_rows([row]).endswith("[image image/png, 34 kB] look")


def test_what_a_model_reads_of_old_rows_has_the_owners_clocks() -> None:
    zone = ZoneInfo("Europe/Berlin")
    row = Row(1, RowRole.USER, (Text("look"),), datetime(2026, 7, 1, 12, 0, tzinfo=UTC))
    assert render_rows([row], zone) == "user (2026-07-01 14:00 CEST): look"
    assert "user (2026-07-01 14:00 CEST): look" in extract([row], "", 1000, zone)
    first = replace(row, at=datetime.min.replace(tzinfo=UTC))
    assert "look" in render_rows([first], ZoneInfo("America/New_York"))


def test_a_summary_longer_than_the_limit_is_refused() -> None:
    assert fault("word " * 2_000, asked("hi")).startswith("it has about 2858 tokens of 2000")
    assert fault("word " * 1_000, asked("hi")) == ""


_TEXTS = st.lists(
    st.one_of(
        st.text(max_size=300),
        st.integers(1000, 10**12).map(lambda n: f"order {n} at /srv/{n}/x.py"),
        st.just("see " + " ".join(f"https://example.org/{n}/{'y' * 90}" for n in range(100))),
        st.just("四百" * 2_000),
    ),
    max_size=30,
)


@given(_TEXTS, st.one_of(st.just(""), st.text(max_size=20_000)), st.integers(1000, 200_000))
def test_an_extract_is_never_at_fault(texts, earlier, window) -> None:
    roles = (RowRole.USER, RowRole.ASSISTANT)
    rows = [Row(n, roles[n % 2], (Text(text),), AT) for n, text in enumerate(texts, start=1)]
    longest = longest_summary(window)
    assert fault(extract(rows, earlier, longest), rows, longest) == ""


def test_an_extract_keeps_the_newest_words_and_something_of_the_summary_before() -> None:
    rows = [Row(n, RowRole.USER, (Text(f"message {n} " + "blah " * 50),), AT) for n in range(1, 99)]
    text = extract(rows, "They agreed on Tuesday. " * 400, LONGEST)
    assert text.startswith(HEAD)
    assert "message 98 " in text
    assert "message 1 " not in text
    assert "They agreed on Tuesday." in text


@pytest.mark.parametrize("window", [1000, 8000, 16_000, 200_000])
def test_a_summary_takes_at_most_an_eighth_of_the_window(window) -> None:
    assert longest_summary(window) == min(2000, window // 8)
