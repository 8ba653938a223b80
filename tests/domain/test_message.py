"""Blocks as JSON."""

from __future__ import annotations

import pytest

from agentd.core.message import Text, decode_block, encode_block


def test_what_is_quoted_stands_in_the_block_only_where_there_is_any():
    assert encode_block(Text("hi")) == {"type": "text", "text": "hi"}
    block = Text("look at this", ((0, 4), (8, 12)))
    assert encode_block(block)["quoted"] == [[0, 4], [8, 12]]
    assert decode_block(encode_block(block)) == block


def test_spans_are_put_in_order_and_end_with_the_text():
    data = {"type": "text", "text": "hello", "quoted": [[4, 9], [0, 2], [1, 3], [7, 9]]}
    assert decode_block(data) == Text("hello", ((0, 3), (4, 5)))


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        True,
        3,
        "0-3",
        [3],
        [[1]],
        [[2, 1]],
        [[-1, 2]],
        [["0", "1"]],
        [[0.0, 1.0]],
        [[False, True]],
        {"0": 1},
    ],
)
def test_malformed_spans_are_no_block(wrong):
    with pytest.raises(ValueError, match="not a list of"):
        decode_block({"type": "text", "text": "hello", "quoted": wrong})
