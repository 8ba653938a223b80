"""Invisible characters (default ignorables), and whether they have a function where they stand.
Pure.
"""

from __future__ import annotations

import re

# The inside of a character class: Default_Ignorable_Code_Point of Unicode's
# DerivedCoreProperties.txt, with the code points reserved for more of them.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_ANY = re.compile(f"[{IGNORABLE}]")


def idle(text: str) -> frozenset[int]:
    """Return the offsets of invisible characters that do not change what is seen: all but joiners
    and selectors within emoji and the scripts that use them.
    """
    return _useless(text, tolerates=False)


def suspect(text: str) -> frozenset[int]:
    """Return the offsets of `idle` without those that occur in honest texts."""
    return _useless(text, tolerates=True)


def _useless(text: str, *, tolerates: bool) -> frozenset[int]:
    places = frozenset(() if text.isascii() else (one.start() for one in _ANY.finditer(text)))
    if not places:
        return places
    from agentd.core.screening.shaping import at_work, tolerated_offsets

    places -= at_work(text)
    return places - tolerated_offsets(text) if tolerates and places else places
