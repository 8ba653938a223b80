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
    if text.isascii():
        return frozenset()
    places = frozenset(found.start() for found in _ANY.finditer(text))
    if not places:
        return places
    from agentd.core.screening.shaping import at_work

    return places - at_work(text)


def suspect(text: str) -> frozenset[int]:
    """Return the offsets of `idle` without those that occur in honest texts."""
    places = idle(text)
    if not places:
        return places
    from agentd.core.screening.shaping import tolerated_offsets

    return places - tolerated_offsets(text)
