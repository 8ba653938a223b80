"""The chunks in memory follow those on the disk, in whatever order the news arrives."""

from __future__ import annotations

import struct
from datetime import date

import pytest

from agentd.core.errors import EmbedderFault
from agentd.core.search import Chunk, SearchOptions, Source, StoredChunk
from agentd.memory.index.search.hits import join_chunks
from agentd.memory.index.search.in_memory import Mirror
from agentd.memory.index.search.patient_embedder import to_float16

NOTE = "memory/2026-11-21.md"


def row(number, text, path=NOTE):
    day = date(2026, 11, 21)
    return StoredChunk(number, Chunk(path, number, number, text, Source.NOTES, "main", day))


def found(mirror, query, vector=None, model=""):
    vectors = None if vector is None else [vector]
    return [match.ids for match in mirror.search([query], vectors, model, SearchOptions()).hits]


def vector(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def test_chunks_are_found_by_their_ids():
    mirror = Mirror()
    mirror.add([row(3, "tea"), row(900, "milk", "b.md")])
    assert found(mirror, "milk") == [(900,)]
    mirror.remove([900, 4711])
    assert found(mirror, "milk") == []
    assert (len(mirror), mirror.last) == (1, 900)


def test_a_chunk_that_went_before_it_came_does_not_come():
    mirror = Mirror()
    mirror.remove([2])
    mirror.add([row(1, "tea"), row(2, "milk"), row(3, "tea and milk", "b.md")])
    assert found(mirror, "milk") == [(3,)]


def test_chunks_that_come_twice_are_taken_once():
    mirror = Mirror()
    mirror.add([row(1, "tea"), row(2, "milk")])
    mirror.add([row(1, "tea"), row(2, "milk"), row(3, "sugar")])
    assert len(mirror) == 3


def test_vectors_of_chunks_that_are_not_here_are_passed_over():
    mirror = Mirror()
    mirror.add([row(1, "tea"), row(2, "milk", "b.md")])
    mirror.remove([1])
    (stored,) = to_float16([vector(0.0, 1.0)])
    mirror.put_vectors("m", [(1, stored), (2, stored), (7, stored)])
    assert found(mirror, "juice", vector(0.0, 1.0), "m") == [(2,)]
    assert found(mirror, "juice", vector(0.0, 1.0), "another model") == []
    mirror.drop_vectors("m")
    assert found(mirror, "juice", vector(0.0, 1.0), "m") == []


def test_only_what_is_kept_is_found():
    mirror = Mirror()
    mirror.add([row(n, f"tea {n}", f"{n}.md") for n in range(1, 6)])
    mirror.keep([2, 4])
    assert sorted(found(mirror, "tea")) == [(2,), (4,)]


def test_a_mirror_of_mostly_gone_chunks_is_worn():
    mirror = Mirror(spare=2)
    mirror.add([row(n, "tea", f"{n}.md") for n in range(1, 4)])
    mirror.remove([1, 2])
    assert not mirror.is_worn
    mirror.remove([3])
    assert mirror.is_worn


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 1e6])
def test_a_vector_of_what_is_no_number_is_not_stored(odd):
    assert to_float16([vector(0.5, -1.0), vector(1.0, 0.0)]) == [
        struct.pack("<2e", 0.5, -1.0),
        struct.pack("<2e", 1.0, 0.0),
    ]
    with pytest.raises(EmbedderFault):
        to_float16([vector(0.5, -1.0), vector(odd, 0.0)])


def test_joined_chunks_are_exactly_their_lines():
    lines = [f"line {n}" for n in range(1, 12)]
    lines[4] = ""

    def span(first, last):
        text = "\n".join(lines[first - 1 : last])
        return Chunk(NOTE, first, last, text, Source.NOTES, scope="main")

    for spans in ([(1, 4), (6, 8)], [(1, 6), (4, 9)], [(2, 3), (4, 7), (6, 11)], [(3, 3)]):
        chunk = join_chunks([span(*one) for one in spans])
        assert chunk.text == "\n".join(lines[spans[0][0] - 1 : spans[-1][1]])
        assert (chunk.start_line, chunk.end_line) == (spans[0][0], spans[-1][1])
