"""Invisible characters (default ignorables), and whether they have a function where they stand.
Pure.
"""

from __future__ import annotations

import re

from agentd.core.text import with_properties

# The inside of a character class: Default_Ignorable_Code_Point of Unicode's
# DerivedCoreProperties.txt, with the code points reserved for more of them.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_ANY = re.compile(f"[{IGNORABLE}]")
# Joiners and selectors that change how their neighbours look.
_AT_WORK = with_properties(
    r"""(?xsV1)
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
    """
)
# Others that occur in honest texts: those that divide words, direct text, or select rare forms.
_TOLERATED = with_properties(
    r"""(?xsV1)
      \u00ad                                                           # where a word may be divided
    | [\u200b\u2060] (?<= \p{lb=SA} .)                                 # between words of Thai
    | [\u200b\u2060] (?= \p{lb=SA})                                     # and its like
    | [\U000e0100-\U000e01ef] (?<= \p{Unified_Ideograph} .)             # forms of characters
    | \U0001f3f4 [\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6} \U000e007f   # flags
    | \ufe0e (?<= [\p{Emoji}--[\x00-\x7f]] .)
    | \A\ufeff
    """
)
_DIRECTING = re.compile(r"[\u061c\u200e\u200f\u202a-\u202c\u2066-\u2069]")
_RIGHT_TO_LEFT = with_properties(r"(?V1)[\p{bc=R}\p{bc=AL}--[\u200f]]")


def idle(text: str) -> frozenset[int]:
    """Return the offsets of invisible characters that do not change what is seen: all but joiners
    and selectors within emoji and the scripts that use them.
    """
    return _useless(text, tolerates=False)


def suspect(text: str) -> frozenset[int]:
    """Return the offsets of `idle` without those that occur in honest texts."""
    return _useless(text, tolerates=True)


def _useless(text: str, *, tolerates: bool) -> frozenset[int]:
    if text.isascii():
        return frozenset()
    places = _places(_ANY, text)
    if places:
        places -= _places(_AT_WORK(), text)
    if places and tolerates:
        places -= _places(_TOLERATED(), text)
        if _RIGHT_TO_LEFT().search(text):
            places -= _places(_DIRECTING, text)
    return places


def _places(pattern: re.Pattern[str], text: str) -> frozenset[int]:
    return frozenset(at for found in pattern.finditer(text) for at in range(*found.span()))
