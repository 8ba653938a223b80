"""Chunks that are pressed together come back as they were, but for those that were forgotten."""

from __future__ import annotations

import zlib
from datetime import date

import pytest
from msgspec.structs import replace

from agentd.core.search import Chunk, Source
from agentd.memory.index.search.in_memory import Texts


def chunk(number):
    return Chunk("a.md", number, number, f"text {number}", Source.NOTES, "", speaker="Ann")


@pytest.mark.parametrize("step", [1, 7, 16, 100])
def test_chunks_come_back_by_their_slots(step):
    texts = Texts()
    for first in range(0, 100, step):
        texts.add([chunk(n) for n in range(first, min(first + step, 100))])
    assert texts.chunks([99, 0, 50, 51]) == {n: chunk(n) for n in [99, 0, 50, 51]}


def test_what_is_forgotten_is_not_kept():
    texts = Texts()
    texts.add([chunk(n) for n in range(40)])
    texts.remove([3, 17, 39, 3])
    texts.add([chunk(40)])
    assert texts.chunks([2, 3, 17, 18, 39, 40]) == {n: chunk(n) for n in [2, 18, 40]}
    held = "".join(zlib.decompress(block).decode() for block in texts._blocks)
    assert '"text 4"' in held
    assert '"text 3"' not in held
    assert '"text 17"' not in held


def test_every_field_is_kept():
    whole = Chunk(
        "sessions/ä.jsonl", 3, 4, "\x00 half \ud800 🍵", Source.SESSIONS, "main", date(2026, 11, 21),
        "Ann", "Kitchen", 0.25,
    )  # fmt: skip
    texts = Texts()
    texts.add([whole, replace(whole, date=None, scope="")] * 16)
    assert texts.chunks([0, 31]) == {0: whole, 31: replace(whole, date=None, scope="")}
