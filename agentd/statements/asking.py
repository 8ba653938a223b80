"""Whether a message is about its writer, and what of him it asks for."""

from __future__ import annotations

import re

_HOW_TO = re.compile(r"\bhow (?:do|does|can|could|would|should|might) (?:i|we)\b")
_OWN = re.compile(
    r"\b(?:my|mine|our|ours|(?:am|do|did|have|had|was|will|are|were) (?:i|we)|(?:i|we) (?:have|had|am|was)"
    r"|i'm (?:at|in|on|going)|about me|mein(?:e[mnrs]?)?|unser(?:e[mnrs]?)?|mon|ma|mes|notre|nos"
    r"|mi|mis|nuestr[ao]s?|meus?|minhas?|mi[ao]|miei|mie)\b"
)
_NOW = r"(?: (?:now|currently|right now|at the moment|these days|jetzt|derzeit|gerade))?"
_STILL = r"(?:(?:now|currently|still) )?"
_MY = r"(?:what|who|which)(?: is|'s) (?:my|our) (?:current )?"
_ASKED = {
    ("employer",): re.compile(
        rf"\bwhere (?:do )?(?:i|we) {_STILL}work{_NOW}|\bwhere (?:am i|i am|i'm) {_STILL}(?:working|employed){_NOW}"
        rf"|\b(?:who|what company|which company) (?:do )?i {_STILL}work (?:for|at){_NOW}"
        rf"|\b{_MY}(?:employer|company)|\bwo (?:arbeite ich|ich{_NOW} arbeite){_NOW}"
    ),
    ("home", "address", "home address"): re.compile(
        rf"\bwhere (?:do )?(?:i|we) {_STILL}live{_NOW}|\bwhere (?:am i|i am|i'm) {_STILL}(?:living|based){_NOW}"
        rf"|\bwo (?:(?:wohne|lebe) ich|ich{_NOW} (?:wohne|lebe)){_NOW}"
    ),
}


def speaks_of_user(text: str) -> bool:
    """Whether a message asks about its writer, in words that do so whatever it is about: `my dog`,
    but not `how do I`.
    """
    return _OWN.search(_HOW_TO.sub(" ", text.casefold().replace("’", "'"))) is not None


def asked_relations(question: str) -> tuple[str, ...]:
    """The relations of the user any of which answers a question that asks for nothing else: `employer`
    for “where do I work?”; none where the rules cannot tell.
    """
    plain = " ".join(question.casefold().replace("’", "'").split()).rstrip(" ?.!")
    for relations, pattern in _ASKED.items():
        if any(match.end() == len(plain) for match in pattern.finditer(plain)):
            return relations
    return ()
