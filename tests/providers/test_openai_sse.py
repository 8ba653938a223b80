"""Bytes in, events out."""

import asyncio

import pytest

from agentd.core.errors import ProviderError
from agentd.providers.openai_api import data_of
from tests.growth import QUADRATIC, growth


async def read(*pieces):
    async def arriving():
        for piece in pieces:
            yield piece

    return [data async for data in data_of(arriving())]


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data:a\n\ndata:  b\n\n", ["a", " b"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b": hello\n\ndata: a\n\n: bye\n\n", ["a"]),
        (b"event: x\nid: 1\nretry: 5\ndata: a\nother\n\n", ["a"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"data: a\n: in between\ndata: b\n\n", ["a\nb"]),
        (b"\n\n\ndata: a\n\n\n\ndata: b\n\n", ["a", "b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\r\r\n", ["a", "b"]),
        (b"data: a\n\r\ndata: b\r\n\n", ["a", "b"]),
        (b"data: a\n\ndata: never ended\n", ["a"]),
        (b'data: a\n\ndata: {"b": 1}', ["a", '{"b": 1}']),
        (b'data: a\n\ndata: {"b": 1', ["a"]),
        (b"data: a\x0bb\x0cc\x1ed\xc2\x85e\n\n", ["a\x0bb\x0cc\x1ed\x85e"]),
        (b"", []),
    ],
)
async def test_events_are_read_as_the_standard_says_in_any_pieces(text, events):
    assert await read(text) == events
    assert await read(*(bytes([b]) for b in text)) == events


async def test_an_endless_event_is_refused():
    with pytest.raises(ProviderError, match="without an end"):
        await read(*[b"x" * 1_000_000] * 5)


def test_an_event_in_many_pieces_is_read_in_proportion_to_its_length():
    def take(size):
        text = b"data: " + b"x" * size + b"\n\n"
        pieces = [text[start : start + 1_400] for start in range(0, len(text), 1_400)]
        assert [len(data) for data in asyncio.run(read(*pieces))] == [size]

    assert growth(take, 300_000) < QUADRATIC
