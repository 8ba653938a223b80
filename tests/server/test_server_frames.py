"""Frames: every kind of bad line has its answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.interfaces.acp.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    FrameError,
    Notification,
    Request,
    Response,
    encode,
    parse,
)


def frame(**parts):
    return json.dumps({"jsonrpc": "2.0", **parts}).encode()


def nested(levels: int) -> bytes:
    inside = levels - 2
    return b'{"jsonrpc":"2.0","method":"m","params":{"a":' + b"[" * inside + b"]" * inside + b"}}"


def test_a_call_is_read():
    assert parse(frame(id=7, method="m", params={"a": 1})) == Request(7, "m", {"a": 1})


def test_params_may_be_left_out():
    assert parse(frame(method="m")) == Notification("m", {})


def test_an_answer_is_read():
    assert parse(frame(id="x", result=None)) == Response("x", None, None)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param(b"", PARSE_ERROR, id="empty"),
        pytest.param(b"hello", PARSE_ERROR, id="not-json"),
        pytest.param(b'{"jsonrpc":"2.0","method":"m"', PARSE_ERROR, id="cut"),
        pytest.param(b'{"jsonrpc":"2.0","method":"m","params":{"a":NaN}}', PARSE_ERROR, id="nan"),
        pytest.param(
            b'{"jsonrpc":"2.0","method":"m","params":{"a":-Infinity}}', PARSE_ERROR, id="inf"
        ),
        pytest.param(
            b'{"jsonrpc":"2.0","method":"m","params":{"a":1e999}}', PARSE_ERROR, id="huge-float"
        ),
        pytest.param(b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b"}", PARSE_ERROR, id="5000-digits"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":9223372036854775808,"method":"m"}', PARSE_ERROR, id="2**63"
        ),
        pytest.param(b'{"jsonrpc":"2.0","method":"\\ud800"}', PARSE_ERROR, id="half-surrogate"),
        pytest.param(b"[" * 100_000, PARSE_ERROR, id="open-brackets"),
        pytest.param(nested(65), PARSE_ERROR, id="65-levels"),
        pytest.param(b"\xef\xbb\xbf{}", PARSE_ERROR, id="byte-order-mark"),
        pytest.param(b'{"jsonrpc":"2.0","method":"a","method":"b"}', PARSE_ERROR, id="two-methods"),
        pytest.param(
            b'{"jsonrpc":"2.0","method":"a","params":{"p":[{"k":1,"\\u006b":2}]}}',
            PARSE_ERROR,
            id="a-key-twice-inside",
        ),
        pytest.param(b"[]", INVALID_REQUEST, id="empty-batch"),
        pytest.param(b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', INVALID_REQUEST, id="batch"),
        pytest.param(b"3", INVALID_REQUEST, id="number"),
        pytest.param(b"null", INVALID_REQUEST, id="null"),
        pytest.param(b'{"id":1,"method":"m"}', INVALID_REQUEST, id="no-version"),
        pytest.param(frame(id=1), INVALID_REQUEST, id="neither"),
        pytest.param(frame(id=None, method="m"), INVALID_REQUEST, id="null-id"),
        pytest.param(frame(id=True, method="m"), INVALID_REQUEST, id="boolean-id"),
        pytest.param(frame(id=1.5, method="m"), INVALID_REQUEST, id="float-id"),
        pytest.param(frame(id=1, method=3), INVALID_REQUEST, id="method-number"),
        pytest.param(frame(id=1, result=1, error={}), INVALID_REQUEST, id="both"),
        pytest.param(frame(id=1, method="m", params=[1]), INVALID_PARAMS, id="params-array"),
    ],
)
def test_a_bad_line_is_refused_and_the_stream_goes_on(line, code):
    with pytest.raises(FrameError) as caught:
        parse(line)
    assert caught.value.code == code
    assert not caught.value.fatal


@pytest.mark.parametrize("line", [b"\xff\xfe", "é".encode("latin-1"), '{"a":1}'.encode("utf-16")])
def test_what_is_not_utf_8_is_fatal(line):
    with pytest.raises(FrameError) as caught:
        parse(line)
    assert caught.value.fatal


def test_64_levels_are_read():
    assert isinstance(parse(nested(64)), Notification)


def test_brackets_in_strings_are_no_levels():
    text = '[[{"\\' * 200
    assert parse(frame(id=1, method="m", params={"a": text})).params == {"a": text}


def test_a_whole_surrogate_pair_and_an_escaped_backslash_are_read():
    line = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud83d\\ude00 \\\\ud800"}}'
    assert parse(line).params == {"a": "\U0001f600 \\ud800"}


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(line):
    refused = None
    try:
        found = parse(line)
    except FrameError as error:
        refused = error
    if refused is None:
        assert isinstance(found, (Request, Notification, Response))
    else:
        assert refused.code in (PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS)
        assert refused.message


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_what_is_encoded_is_read_again(value):
    line = encode({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": value}})
    assert line.endswith(b"\n")
    assert b"\n" not in line[:-1]
    assert parse(line[:-1]).params == {"a": value}
