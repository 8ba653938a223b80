"""Whether a message is about its writer."""

from __future__ import annotations

import re

_HOW_TO = re.compile(r"\bhow (?:do|does|can|could|would|should|might) (?:i|we)\b")
_OWN = re.compile(
    r"\b(?:my|mine|our|ours|(?:am|do|did|have|had|was|will|are|were) (?:i|we)|(?:i|we) (?:have|had|am|was)"
    r"|i'm (?:at|in|on|going)|about me|mein(?:e[mnrs]?)?|unser(?:e[mnrs]?)?|mon|ma|mes|notre|nos"
    r"|mi|mis|nuestr[ao]s?|meus?|minhas?|mi[ao]|miei|mie)\b"
)


def speaks_of_user(text: str) -> bool:
    """Whether a message asks about its writer, in words that do so whatever it is about: `my dog`,
    but not `how do I`.
    """
    return _OWN.search(_HOW_TO.sub(" ", text.casefold().replace("’", "'"))) is not None
