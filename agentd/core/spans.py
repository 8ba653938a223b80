"""Spans of a text: pairs (start, end) of character offsets, end excluded. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

Span = tuple[int, int]
Spans = tuple[Span, ...]


def unite_spans(spans: Iterable[Span], length: int) -> Spans:
    """Return the spans, clipped to a text of this length, sorted and with overlapping and touching
    ones joined.
    """
    made: list[Span] = []
    first = last = -1  # the current span, which may still grow
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


def shift_spans(spans: Iterable[Span], by: int) -> Spans:
    """Return the spans moved by `by` characters."""
    return tuple((start + by, end + by) for start, end in spans)


def merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans sorted, with overlapping ones joined."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)


def apart(spans: Iterable[Span], kept: Iterable[Span]) -> tuple[Span, ...]:
    """Return the parts of `spans` that lie outside all of `kept`, which must be in order."""
    left: list[Span] = []
    between = list(kept)
    n = 0
    for start, end in merge_spans(spans):
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
    """Return the parts of the spans that lie between `start` and `end`, relative to `start`."""
    cut = ((max(first, start) - start, min(last, end) - start) for first, last in spans)
    return tuple((first, last) for first, last in cut if first < last)
