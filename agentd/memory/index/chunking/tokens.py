"""`tokens`: whole lines up to 400 tokens; the last 80 tokens of a chunk are repeated in the
next.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentd.memory.index.chunking.piece import Lines, Piece, cuts, tokens_in

TOKENS = 400
OVERLAP = 0.2


def pieces(file: Lines, most: int = TOKENS, overlap: float = OVERLAP) -> Iterator[Piece]:
    """Yield the chunks of a text; a line that alone exceeds `most` tokens is cut at sentence
    ends.
    """
    return pack_lines(file, 0, len(file.lines), most, overlap)


def pack_lines(
    file: Lines, first: int, end: int, most: int, overlap: float = 0.0
) -> Iterator[Piece]:
    """Yield the chunks of the lines from `first` up to but not including `end`, as `pieces`
    does.
    """
    parts = list(_parts(file, first, end, most))
    costs = [tokens_in(file.text[begin:stop]) + 1 for begin, stop in parts]  # 1 for the line break
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
    """Return the part at which the next chunk begins: at most `room` tokens before the end of this
    chunk, and always after the beginning of it.
    """
    begin = last
    while begin > first + 1 and costs[begin - 1] <= room:
        begin -= 1
        room -= costs[begin]
    return begin
