"""Characters that are drawn as nothing, and whether they do their work where they stand. Pure."""

from __future__ import annotations

import re

# The inside of a character class: what Unicode's DerivedCoreProperties.txt has as
# Default_Ignorable_Code_Point, the places that are kept free for more of them included.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_ANY = re.compile(f"[{IGNORABLE}]")


def idle(text: str) -> frozenset[int]:
    """The places of such characters that do nothing for what is seen: all but joiners and selectors in
    the scripts that have them, and in emoji.
    """
    if text.isascii():
        return frozenset()
    places = frozenset(found.start() for found in _ANY.finditer(text))
    if not places:
        return places
    from agentd.core.screening.shaping import at_work

    return places - at_work(text)


def suspect(text: str) -> frozenset[int]:
    """Those of them that honest texts do not have either."""
    places = idle(text)
    if not places:
        return places
    from agentd.core.screening.shaping import tolerated

    return places - tolerated(text)
