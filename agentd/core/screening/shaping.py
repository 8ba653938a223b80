"""Unicode properties of characters that shape their neighbours. Pure.

Importing this module loads a library of 2 MB; texts without such characters do not need it.
"""

from __future__ import annotations

import regex

_AT_WORK = regex.compile(
    r"""(?xV1)
      [\u200c\u200d] (?<= \p{ccc=9} .)                                 # Indic: behind a virama,
    | \u200d (?<= \p{L} .) (?= \p{ccc=9})                              # or before one
    | \u200c (?<= [\p{jt=D}\p{jt=L}\p{jt=R}] \p{M}{0,4} .) (?= [\p{jt=D}\p{jt=L}\p{jt=R}])
    | \u200d (?<= [\p{jt=D}\p{jt=L}\p{jt=R}] \p{M}{0,4} .)             # scripts whose letters join
    | \u200d (?= [\p{jt=D}\p{jt=L}\p{jt=R}])
    | \u200d (?<= \p{Extended_Pictographic} [\ufe0f\p{Emoji_Modifier}]? .)
             (?= \p{Extended_Pictographic})
    | \ufe0f (?<= [\p{Emoji}--[\x00-\x7f]] .)
    | \ufe0f (?<= [0-9#*] .) (?= \u20e3)
    | [\u180b-\u180d\u180f] (?<= \p{Script=Mongolian} .)
    | \u180e (?<= \p{Script=Mongolian} .) (?= \p{Script=Mongolian})
    """,
    regex.DOTALL,
)
_TOLERATED = regex.compile(
    r"""(?xV1)
      \u00ad                                                           # where a word may be divided
    | [\u200b\u2060] (?<= \p{lb=SA} .)                                 # between words of Thai
    | [\u200b\u2060] (?= \p{lb=SA})                                     # and its like
    | [\U000e0100-\U000e01ef] (?<= \p{Unified_Ideograph} .)             # forms of characters
    | \U0001f3f4 [\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6} \U000e007f   # flags
    | \ufe0e (?<= [\p{Emoji}--[\x00-\x7f]] .)
    | \A\ufeff
    """,
    regex.DOTALL,
)
_DIRECTING = regex.compile(r"[\u061c\u200e\u200f\u202a-\u202c\u2066-\u2069]")
_RIGHT_TO_LEFT = regex.compile(r"[\p{bc=R}\p{bc=AL}--[\u200f]]", regex.V1)


def at_work(text: str) -> frozenset[int]:
    """Return the offsets of joiners and selectors that change how their neighbours look."""
    return _places(_AT_WORK, text)


def tolerated_offsets(text: str) -> frozenset[int]:
    """Return the offsets of other invisible characters that occur in honest texts: those that
    divide words, direct text, or select rare forms.
    """
    found = _places(_TOLERATED, text)
    return found | _places(_DIRECTING, text) if _RIGHT_TO_LEFT.search(text) else found


def _places(pattern: regex.Pattern[str], text: str) -> frozenset[int]:
    return frozenset(at for found in pattern.finditer(text) for at in range(*found.span()))
