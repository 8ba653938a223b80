"""Where the sentences of a text end. Pure.

A sentence ends with its marks before a blank, with the full stop of a script without blanks, or with
its line. Short forms are not known: “Dr. Almeida” is two, which whoever looks for words can bear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# A run of marks is taken whole or not at all: trying it from each of its marks takes quadratic time.
_END = re.compile(r"(?<![.!?…])[.!?…]++(?=\s|\Z)|[。！？]+|\n")


def sentences(text: str) -> Iterator[str]:
    """The sentences in order, without blanks around them; those without a letter or digit are left
    out.
    """
    start = 0
    for found in _END.finditer(text):
        yield from _sentence(text[start : found.end()])
        start = found.end()
    yield from _sentence(text[start:])


def _sentence(text: str) -> Iterator[str]:
    if any(map(str.isalnum, text)):
        yield text.strip()
