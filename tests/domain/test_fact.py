"""What is told of facts that were erased."""

from __future__ import annotations

import pytest

from agentd.core.fact import ErasureReport


@pytest.mark.parametrize(
    ("count", "places", "told"),
    [
        (1, {}, "One fact is forgotten, with 0 places that said it."),
        (1, {"versions": 1}, "One fact is forgotten, with one place that said it."),
        (2, {"notes": 1, "versions": 2}, "2 facts are forgotten, with 3 places that said it."),
    ],
)
def test_what_was_erased_is_counted_in_words(count, places, told):
    assert ErasureReport(places).in_words(count) == told


def test_what_is_not_erased_yet_is_told_with_when_it_will_be() -> None:
    report = ErasureReport({"notes": 1}, pending=("transcripts",), waits=True)
    told = "It still stands in: transcripts. It is erased there once this answer has ended;"
    assert told in report.in_words(1)
