"""One spelling for sentences that say the same in the same words."""

from __future__ import annotations

import re
import unicodedata

_QUOTES = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´ʼ＇", "'"),
        **dict.fromkeys("“”„‟«»″〝〞＂", '"'),
        **dict.fromkeys("‐‑‒–—−", "-"),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad"),
    }
)
_OUTER = " \t\"'.!?…。！？,;:"
_USER = re.compile(r"(?<![\w'-])the (?=user(?![\w-]))")


def normalised(text: str) -> str:
    """The text without what says nothing: case, widths, kinds of quotes and dashes, blanks, the
    article of “the user”, punctuation at its ends. Normalising twice changes nothing.
    """
    text = unicodedata.normalize("NFKC", text.translate(_QUOTES)).casefold()
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    return _USER.sub("", " ".join(text.split())).strip(_OUTER)
