"""Characters that nobody sees, and that a model reads all the same. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_KINDS = tuple(
    (reason, re.compile(pattern))
    for reason, pattern in (
        (  # those of a flag stand behind the black flag
            "has invisible tag characters",
            "(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007f]+",
        ),
        ("hides data in variation selectors", "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}"),
        (
            "hides data in invisible characters",
            "[\u200b-\u200d\u2060-\u2064\ufeff\u00ad\u180e]{8,}",
        ),
        ("turns the direction of text", "[\u202d\u202e]"),
        (
            "has invisible characters within words",
            "(?<=[a-zA-Z])[\u200b\u200c\u2060\ufeff\u3164\uffa0]+(?=[a-zA-Z])",
        ),
    )
)


def hidden(text: str) -> Iterator[tuple[str, int]]:
    """What is hidden and where: reason and index."""
    if text.isascii():
        return
    for reason, pattern in _KINDS:
        for found in pattern.finditer(text):
            yield reason, found.start()
