"""What a query costs to read, whatever it is."""

from __future__ import annotations

import pytest

from agentd.memory.index.search.query import parse
from tests.growth import QUADRATIC, growth


@pytest.mark.parametrize("piece", ["北京", "a.b:", "l'", "\u0301"])
def test_a_long_run_without_spaces_is_read_at_once(piece: str) -> None:
    """It may be one word of thousands of terms: what is done for each must be little."""
    text = piece * 10_000
    assert growth(lambda size: parse(text[:size]), 2_500) < QUADRATIC
