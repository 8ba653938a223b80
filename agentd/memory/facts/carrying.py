"""The order in which exported facts are taken in. Pure, and light: the command line orders whole files by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_OVER = ("superseded", "ended")


def is_over(row: Mapping[str, Any]) -> bool:
    """Whether the row says of itself that it holds no longer."""
    return row.get("status") in _OVER


def successors_first(
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows with their places, none before what came for it, and what holds before all else: so a cut
    anywhere leaves nothing that is over as if it held. What came for a row goes along with it as its
    `successor`, by what it says and since when: ids mean nothing elsewhere, nor in another part of a file.
    """
    named = {row["id"]: place for place, row in enumerate(rows) if isinstance(row.get("id"), str)}

    def successor(row: Mapping[str, Any]) -> int | None:
        by = row.get("superseded_by")
        return named.get(by) if isinstance(by, str) else None

    order = dict.fromkeys(place for place, row in enumerate(rows) if not is_over(row))
    for place in range(len(rows)):
        way: dict[int, None] = {}
        at: int | None = place
        while at is not None and at not in order and at not in way:
            way[at] = None
            at = successor(rows[at])
        order.update(dict.fromkeys(reversed(way)))
    for place in order:
        row = dict(rows[place])
        if "successor" not in row and (by := successor(row)) is not None:
            row["successor"] = {name: rows[by].get(name) for name in ("text", "valid_from")}
        yield place, row
