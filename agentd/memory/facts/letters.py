"""What Unicode says of characters, as far as Python's own patterns do not know it. Pure.

Importing this loads a library of 2 MB: texts of ASCII alone do without it.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

_CLUSTER = regex.compile(r"\X")
_IGNORED = regex.compile(r"(?V1)[\p{Default_Ignorable_Code_Point}--[\u200c\u200d]]")
_QUOTATION_MARK = regex.compile(r"[\p{Quotation_Mark}`´′″]")
_DASH = regex.compile(r"[\p{Dash_Punctuation}\u2212]")
_WORD_LETTER = regex.compile(r"[\p{L}\p{N}\p{M}]")


def clusters(text: str) -> Iterator[tuple[int, str]]:
    """The characters of a text as people see them, each with its place."""
    return ((found.start(), found[0]) for found in _CLUSTER.finditer(text))


def folded(cluster: str) -> str:
    """The same with one kind of quotation mark and of dash, without what is ignored by default."""
    return _DASH.sub("-", _QUOTATION_MARK.sub("'", _IGNORED.sub("", cluster)))


def is_of_word(letter: str) -> bool:
    """Whether it is a letter, a number or a mark on one."""
    return _WORD_LETTER.match(letter) is not None
