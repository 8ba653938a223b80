"""`tokens`: whole lines up to 400 tokens, of which the last 80 begin the next chunk."""

from __future__ import annotations

from collections.abc import Iterator

from agentd.memory.index.chunking.piece import Lines, Piece, cuts, tokens_in

TOKENS = 400
OVERLAP = 0.2


def pieces(file: Lines, most: int = TOKENS, overlap: float = OVERLAP) -> Iterator[Piece]:
    """The chunks of a text; a line that alone has more tokens is cut at sentence ends."""
    return packed(file, 0, len(file.lines), most, overlap)


def packed(file: Lines, first: int, end: int, most: int, overlap: float = 0.0) -> Iterator[Piece]:
    """The same for the lines from `first` up to but not including `end`."""
    parts = list(_parts(file, first, end, most))
    costs = [tokens_in(file.text[begin:stop]) + 1 for begin, stop in parts]  # and the line's end
    begin = last = 0
    while last < len(parts):
        room = most - sum(costs[begin:last])
        while last < len(parts) and (costs[last] <= room or last == begin):
            room -= costs[last]
            last += 1
        yield file.stretch(parts[begin][0], parts[last - 1][1])
        if last < len(parts):
            begin = _next(costs, begin, last, min(int(most * overlap), most - costs[last]))


def _parts(file: Lines, first: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    for number in range(first, end):
        line = file.lines[number]
        begin, stop = file.span(number, number + 1)
        if tokens_in(line) >= most:
            yield from ((begin + b, begin + s) for b, s in cuts(line, most - 1))
        elif line.strip():
            yield begin, stop


def _next(costs: list[int], first: int, last: int, room: int) -> int:
    """Where the next chunk begins: `room` tokens before the end of this one, never where it began."""
    begin = last
    while begin > first + 1 and costs[begin - 1] <= room:
        begin -= 1
        room -= costs[begin]
    return begin
