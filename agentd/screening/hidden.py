"""Characters that nobody sees, and that a model reads all the same. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentd.screening.ignorable import IGNORABLE, suspect

_MANY = 16  # in one text, wherever they stand: more can carry a word
_OVERRIDE = re.compile("[\u202d\u202e]")
_RUN = re.compile(f"[{IGNORABLE}]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_LONG = 8


def hidden(text: str) -> Iterator[tuple[str, int]]:
    """What is hidden and where: reason and index."""
    if text.isascii():
        return
    for found in _OVERRIDE.finditer(text):
        yield "turns the direction of text", found.start()
    places = suspect(text)
    for found in _RUN.finditer(text):
        yield from _in_run(text, found, places)
    if len(places) >= _MANY:
        yield "hides data in invisible characters", min(places)


def _in_run(text: str, run: re.Match[str], places: frozenset[int]) -> Iterator[tuple[str, int]]:
    start, end = run.span()
    if not places.intersection(range(start, end)):
        return
    if _TAGS.search(text, start, end):
        yield "has invisible tag characters", start
    if _SELECTORS.search(text, start, end):
        yield "hides data in variation selectors", start
    elif end - start >= _LONG:
        yield "hides data in invisible characters", start
    if start and end < len(text) and text[start - 1].isalnum() and text[end].isalnum():
        yield "has invisible characters within words", start
