"""Finds the parts of a message that are quotation: words the user shows but does not say himself.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from agentd.core.spans import Span, Spans, unite_spans
from agentd.core.text import UNSPACED, at_first_use

LEAST_WORDS = 6  # words between quotation marks; fewer may be a name or a stressed word
LEAST_UNSPACED = 16  # the same for scripts without blanks, in characters

_SHORTEST = 2 * LEAST_WORDS + 1  # shortest span of six words with their marks
_UNIT = at_first_use(f"(?P<unspaced>[{UNSPACED}])|[^\\W_{UNSPACED}]+(?:['’.-][^\\W_{UNSPACED}]+)*")
_NOTHING = "\0"  # replaces characters known to be quotation: it is no mark, and in no word

# Not inside or after a word, so that signs of inches or seconds and apostrophes open nothing.
_BEFORE = rf"(?:(?<!\w)|(?<=[{UNSPACED}]))"
_BEHIND = rf"(?!(?![{UNSPACED}])\w)"

# All repetitions in these patterns are possessive and stop at the next mark that could begin the
# same, so no text makes them slow. The first lookahead skips everything else at once.
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


def _nested_pattern(opening: str, closing: str) -> str:
    """Return a pattern for marks that differ, with one level of the same kind nested."""
    inside = f"[^{opening}{closing}]"
    return f"{opening}(?:{inside}++|{opening}{inside}*+[{closing}])*+[{closing}]"


def _same(mark: str) -> str:
    """Return a pattern for marks that open and close alike: only the blanks around them tell
    which.
    """
    return rf"{_BEFORE}{mark}(?=[^\s{mark}])[^{mark}]*+(?<=\S){mark}{_BEHIND}"


def _single(before: str, opening: str, closing: str) -> str:
    """Return a pattern for single marks, whose closing one is an apostrophe if letters follow."""
    return rf"{before}{opening}(?:[^{opening}{closing}’]++|’(?=\w))*+[{closing}]{_BEHIND}"


# Unicode's Quotation_Mark characters, except ', which cannot be told from an apostrophe.
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
    *(_nested_pattern(marks[0], marks[1:]) for marks in _PAIRS),
    *(_single(_BEFORE, "‘", "’"), _single("", "‚", "‘’"), _single("", "‛", "’")),
)
_MARKED = f'(?=["＂”“„‟⹂«»‹›「『｢﹁﹃〝‘‚‛])(?:{"|".join(_KINDS)})'


@cache  # compiling takes 15 ms, which start-up saves
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of quotation by form, and of quotation by marks."""
    shown = re.compile(_SHOWN, re.MULTILINE | re.IGNORECASE | re.VERBOSE)
    return shown, re.compile(_MARKED)


def quoted_spans(text: str, marked: Sequence[Span] = ()) -> Spans:
    """Return all quotation in a message, in order, joined where spans touch: lines that begin with
    `>`, code, `<data …>` fences, what its sender `marked` (resources, pastes), and six words or
    more between quotation marks. An unclosed fence extends to the end.
    """
    by_form, by_marks = _patterns()
    spans = unite_spans(marked, len(text))
    shown = [found.span() for found in by_form.finditer(_without(text, spans))]
    spans = unite_spans((*spans, *shown), len(text))
    quotes = [found.span() for found in by_marks.finditer(_without(text, spans))]
    long = [(a, b) for a, b in quotes if b - a >= _SHORTEST and _is_long(text, a, b)]
    return unite_spans((*spans, *long), len(text))


def _without(text: str, spans: Spans) -> str:
    """Return the text with _NOTHING in place of the spans; line breaks stay."""
    parts: list[str] = []
    at = 0
    for start, end in spans:
        lines = text[start:end].split("\n")
        parts += text[at:start], "\n".join([_NOTHING * len(line) for line in lines])
        at = end
    return "".join((*parts, text[at:]))


def _is_long(text: str, start: int, end: int) -> bool:
    """Whether the marks enclose more than a name or a stressed word. A character of a script
    without blanks counts as a fraction of a word.
    """
    missing = LEAST_WORDS * LEAST_UNSPACED
    for unit in _UNIT().finditer(text, start, end):
        missing -= LEAST_WORDS if unit["unspaced"] else LEAST_UNSPACED
        if missing <= 0:
            return True
    return False
