"""Properties of relations: which have one value at a time, which deny another. Pure."""

from __future__ import annotations

import re
import unicodedata

_OPPOSITES = {
    "dislikes": "likes",
    "does not eat": "eats",
    "does not drink": "drinks",
    "does not smoke": "smokes",
}
_NO_LONGER = "no longer "
_SINGLE = re.compile(
    r"name|called name|(?:first|last|middle|maiden|family) name|age|blood type|birthday|birthplace"
    r"|home|moving to|(?:.+ )?address|employer|job|diet|car|bike|motorbike|van|laptop|computer"
    r"|phone|smartphone|tablet|camera|printer|editor|ide|shell|terminal|browser|operating system"
    r"|bank"
    r"|(?:health )?insurance|gym|(?:phone|internet) provider|search engine|password manager"
    r"|calendar app"
    r"|school|university|(?:.+ )?phone number|(?:.+ )?email|deadline|due date"
    r"|release date|launch date|prefers|preference between .+|favourite .+|number of .+"
    r"|.+ (?:home|employer|age|birthday|job|expiry date)"
    r"|(?:wife|husband|partner|girlfriend|boyfriend|spouse|fianc[ée]e?|mother|father|mom|mum|dad"
    r"|boss"
    r"|landlord|landlady|mother-in-law|father-in-law|project|company|blog|house|car|bike|boat) "
    r"name"
    r"|(?:flight to|(?:.+ )?(?:wedding|flight|appointment|interview|exam|surgery|operation|viva"
    r"|graduation)\b) ?.*"
)
_OF_SEVERAL = re.compile(
    r"(?:son|daughter|brother|sister|cousin|aunt|uncle) (?:home|employer|age|birthday|job)"
)
_LONGEST = 120  # characters: a relation is a few words
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´ʼ", "'"),
        **dict.fromkeys("“”„‟«»", '"'),
        **dict.fromkeys("‐‑‒–—−", "-"),
    }
)
_OUTER = " \t\"'.!?…。！？,;:"


def canonical(relation: str) -> tuple[str, bool]:
    """Return the affirmed relation, and whether the given one denies it: `dislikes` is `likes`,
    denied.
    """
    if relation in _OPPOSITES:
        return _OPPOSITES[relation], True
    return relation.removeprefix(_NO_LONGER), relation.startswith(_NO_LONGER)


def ends(relation: str) -> bool:
    """Whether the relation only says that something no longer holds."""
    return relation.startswith(_NO_LONGER)


def is_single(relation: str) -> bool:
    """Whether a subject has one value of the relation at a time, so that a new value replaces the
    old.
    """
    if len(relation) > _LONGEST or _OF_SEVERAL.fullmatch(relation):
        return False
    return _SINGLE.fullmatch(relation) is not None


def normalise(text: str) -> str:
    """Return the text for comparison: without case, widths, kinds of quotes and dashes, extra
    blanks, and punctuation at its ends.
    """
    text = unicodedata.normalize("NFKC", text.translate(_SIGNS)).casefold()
    return " ".join(text.split()).strip(_OUTER)
