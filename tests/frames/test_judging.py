"""The judge of bad frames agrees with the page and the parser, and sees a connection that closes
early.
"""

from __future__ import annotations

from dataclasses import replace

from agentd.interfaces.acp.frames import FrameError, Request, parse
from tests.frames.examples import TALKING, own
from tests.frames.judging import NOTHING, Judge, Owed, owed
from tests.frames.making import Maker


def said_by_the_parser(line: bytes) -> Owed:
    """What it makes of a line, in the words of the judge."""
    try:
        frame = parse(line)
    except FrameError as error:
        kind = "error" if error.call_id is None else "answer"
        return Owed(kind, error.call_id, error.code, closes=error.fatal)
    if isinstance(frame, Request):
        return Owed("answer", frame.id, call=(frame.method, frame.params))
    return NOTHING


def test_what_is_owed_is_what_the_parser_says_of_thousands_of_lines() -> None:
    """Two who read the same page; where they differ one has misread it."""
    maker = Maker(5, (*TALKING, *own("/nowhere")), 1 << 20, lambda _: 1.0)
    lines = [part for _ in range(3_000) for part in maker.line().split(b"\n")]
    for line in lines:
        one = owed(line, 1 << 30)
        assert replace(one, perhaps=False) == said_by_the_parser(line), line[:300]
    kinds = {owed(line, 1 << 16).kind for line in lines}
    assert kinds == {"answer", "error", "nothing", "too long"}


def test_a_connection_that_closes_early_owes_what_it_has_not_said() -> None:
    judge = Judge(100)
    judge.send(b"nonsense")
    judge.send(b"\xff")
    judge.send(b"nothing is owed for this one")
    judge.hear({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}})
    judge.end()
    assert judge.wrong == ["closed and owes ['-32700']"]
