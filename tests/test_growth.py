"""The measure that other tests trust tells work that grows fast from work that does not."""

from __future__ import annotations

from tests.growth import QUADRATIC, growth


def test_quadratic_work_is_told_from_work_in_proportion() -> None:
    assert growth(lambda size: sum(1 for _ in range(size * size // 16)), 1000) > QUADRATIC
    assert growth(lambda size: sum(1 for _ in range(size)), 60_000) < QUADRATIC
