"""Parts of a text: pairs of places counted in characters, the end not among them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

Span = tuple[int, int]
Spans = tuple[Span, ...]


def united(spans: Iterable[Span], length: int) -> Spans:
    """The same characters of a text of this length as spans in order, no two touching."""
    made: list[Span] = []
    first = last = -1  # the span that may still grow
    for start, end in sorted(spans):
        if start >= min(end, length):
            continue
        if start > last:
            if first >= 0:
                made.append((first, last))
            first, last = start, end
        elif end > last:
            last = end
    if first >= 0:
        made.append((first, min(last, length)))
    return tuple(made)


def shifted(spans: Iterable[Span], by: int) -> Spans:
    """The spans in a text that begins `by` characters later."""
    return tuple((start + by, end + by) for start, end in spans)


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Parts of a text in order, those that overlap as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)


def apart(spans: Iterable[Span], kept: Iterable[Span]) -> tuple[Span, ...]:
    """What of these parts of a text lies in none of those that are `kept`, which are in order."""
    left: list[Span] = []
    between = list(kept)
    n = 0
    for start, end in merged(spans):
        while n < len(between) and between[n][1] <= start:
            n += 1
        at = start
        for first, last in islice(between, n, None):
            if first >= end:
                break
            if at < first:
                left.append((at, first))
            at = max(at, last)
        if at < end:
            left.append((at, end))
    return tuple(left)


def within(spans: Iterable[Span], start: int, end: int) -> tuple[Span, ...]:
    """What of these parts lies in a part of the text, counted from its beginning."""
    cut = ((max(first, start) - start, min(last, end) - start) for first, last in spans)
    return tuple((first, last) for first, last in cut if first < last)
