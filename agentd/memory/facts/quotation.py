"""Which parts of a message are quotation: words that the user shows, and does not say himself.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from agentd.core.spans import Span, Spans, united
from agentd.core.text import UNSPACED, at_first_use

LEAST_WORDS = 6  # between marks; what is shorter may be a name, or a word that he stresses
LEAST_UNSPACED = 16  # characters, where no blanks tell words apart

_SHORTEST = 2 * LEAST_WORDS + 1  # characters that six words and marks take
_UNIT = at_first_use(f"(?P<unspaced>[{UNSPACED}])|[^\\W_{UNSPACED}]+(?:['’.-][^\\W_{UNSPACED}]+)*")
_NOTHING = "\0"  # stands for characters that are known to be quotation: no sign, and in no word

# Not within or behind a word, so that no sign of inches, seconds or an apostrophe opens anything.
_BEFORE = rf"(?:(?<!\w)|(?<=[{UNSPACED}]))"
_BEHIND = rf"(?!(?![{UNSPACED}])\w)"

# In all patterns here what repeats gives nothing back, and stops at the next sign that could begin the
# same, so that no text makes them slow. The first lookahead passes over everything else at once.
_SHOWN = rf"""
    (?=[ \t>`~<]) (?:
        ^[ \t]*+ (?:
            > .*+ (?:\n[ \t]*+ > .*+)*+  # quoted lines
            | (?: (?P<ticks>`{{3,}}+) [^`\n]*+ $ | (?P<waves>~{{3,}}+) .*+ )  # code, to its end
              (?:\n (?! [ \t]*+ (?: (?P=ticks) `*+ | (?P=waves) ~*+ ) [ \t]*+ $ ) .*+ )*+
              (?:\n .*+)?
        )
        | {_BEFORE} ` (?!`) [^`\n]++ (?:\n [^`\n]++)*+ ` (?!`) {_BEHIND}
        | (?<!`) (?P<run>`{{2,9}}+) (?!`) (?: [^`]++ | (?! (?P=run) (?!`) ) `++ )*+ (?P=run)
        | <data (?=[\s>]) [^<>\n]*+ > (?: [^<]++ | < (?!/data\s*+>) )*+ (?:</data\s*+>)?
    )
    """


def _paired(opening: str, closing: str) -> str:
    """Marks that differ, with others of the kind inside, one deep."""
    inside = f"[^{opening}{closing}]"
    return f"{opening}(?:{inside}++|{opening}{inside}*+[{closing}])*+[{closing}]"


def _same(mark: str) -> str:
    """Marks that open and close alike, so that only blanks around them tell which they are."""
    return rf"{_BEFORE}{mark}(?=[^\s{mark}])[^{mark}]*+(?<=\S){mark}{_BEHIND}"


def _single(before: str, opening: str, closing: str) -> str:
    """Marks of which one is an apostrophe, too, where letters follow."""
    return rf"{before}{opening}(?:[^{opening}{closing}’]++|’(?=\w))*+[{closing}]{_BEHIND}"


# The marks of Unicode's property Quotation_Mark but for ' alone, which nobody can tell from an apostrophe.
_PAIRS = (
    "“”",
    "‟”",
    "⹂“”",
    "„“”‟",
    "«»",
    "»«",
    "‹›",
    "›‹",
    "「」",
    "『』",
    "｢｣",
    "﹁﹂",
    "﹃﹄",
    "〝〞〟",
)
_KINDS = (
    *(_same(mark) for mark in '"＂”'),
    *(_paired(marks[0], marks[1:]) for marks in _PAIRS),
    *(_single(_BEFORE, "‘", "’"), _single("", "‚", "‘’"), _single("", "‛", "’")),
)
_MARKED = f'(?=["＂”“„‟⹂«»‹›「『｢﹁﹃〝‘‚‛])(?:{"|".join(_KINDS)})'


@cache  # they take 15 ms to compile, and a start does without them
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What is shown by its form, and what stands between marks."""
    shown = re.compile(_SHOWN, re.MULTILINE | re.IGNORECASE | re.VERBOSE)
    return shown, re.compile(_MARKED)


def quoted_spans(text: str, marked: Sequence[Span] = ()) -> Spans:
    """All that is quotation in a message, in order, no two touching: lines that begin with `>`, code,
    `<data …>` fences, what was `marked` when it was sent (resources, pastes), and six words or more
    between quotation marks. A fence that is not closed goes on to the end.
    """
    by_form, by_marks = _patterns()
    spans = united(marked, len(text))
    shown = [found.span() for found in by_form.finditer(_without(text, spans))]
    spans = united((*spans, *shown), len(text))
    quotes = [found.span() for found in by_marks.finditer(_without(text, spans))]
    long = [(a, b) for a, b in quotes if b - a >= _SHORTEST and _is_long(text, a, b)]
    return united((*spans, *long), len(text))


def _without(text: str, spans: Spans) -> str:
    """The text with nothing where the spans are; lines begin where they did."""
    parts: list[str] = []
    at = 0
    for start, end in spans:
        lines = text[start:end].split("\n")
        parts += text[at:start], "\n".join([_NOTHING * len(line) for line in lines])
        at = end
    return "".join((*parts, text[at:]))


def _is_long(text: str, start: int, end: int) -> bool:
    """Whether marks stand around more than a name or a stressed word. A character of a script without
    blanks counts as its share of a word.
    """
    missing = LEAST_WORDS * LEAST_UNSPACED
    for unit in _UNIT().finditer(text, start, end):
        missing -= LEAST_WORDS if unit["unspaced"] else LEAST_UNSPACED
        if missing <= 0:
            return True
    return False
