"""The line that says how far indexing is."""

from __future__ import annotations

from agentd.app.cli.progress import Meter


def status(pending, vectors=0):
    return {"pending": pending, "vectors_missing": vectors}


def test_the_line_says_how_fast_it_goes_and_how_long_it_takes() -> None:
    meter = Meter()
    assert meter.line(status(1000), 10.0).endswith("] 1,000 left")
    line = meter.line(status(500), 15.0)
    assert line.startswith("notes and chats [############------------]")
    assert line.endswith("500 left, 100/s, 5 s to go")


def test_vectors_are_counted_anew() -> None:
    meter = Meter()
    meter.line(status(1000), 0.0)
    meter.line(status(3, 80_000), 10.0)
    assert meter.line(status(80_000, 80_000), 11.0).startswith("vectors [----")
    assert meter.line(status(79_990, 79_990), 21.0).endswith("79,990 left, 1/s, 22 h 13 min to go")


def test_vectors_made_beside_the_rest_do_not_count_as_notes() -> None:
    meter = Meter()
    meter.line(status(1000), 0.0)
    assert "500 left, 100/s" in meter.line(status(2500, 2000), 5.0)


def test_more_work_than_at_first_begins_a_longer_bar() -> None:
    meter = Meter()
    meter.line(status(10), 0.0)
    meter.line(status(5), 1.0)
    assert "[----" in meter.line(status(200), 2.0)
    assert meter.line(status(0), 3.0) == ""
