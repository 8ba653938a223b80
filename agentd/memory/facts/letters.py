"""Unicode properties of characters that Python's own patterns lack. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from agentd.core.text import with_properties

_CLUSTER = with_properties(r"\X")
_IGNORED = with_properties(r"(?V1)[\p{Default_Ignorable_Code_Point}--[\u200c\u200d]]")
_QUOTATION_MARK = with_properties(r"[\p{Quotation_Mark}`´′″]")
_DASH = with_properties(r"[\p{Dash_Punctuation}\u2212]")
_WORD_LETTER = with_properties(r"[\p{L}\p{N}\p{M}]")


def clusters(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, cluster) for the grapheme clusters of a text: characters as people see
    them.
    """
    return ((found.start(), found[0]) for found in _CLUSTER().finditer(text))


def fold_cluster(cluster: str) -> str:
    """Return the cluster with one kind of quotation mark and of dash, without default
    ignorables.
    """
    return _DASH().sub("-", _QUOTATION_MARK().sub("'", _IGNORED().sub("", cluster)))


def is_of_word(letter: str) -> bool:
    """Whether the character is a letter, a number or a combining mark."""
    return _WORD_LETTER().match(letter) is not None
