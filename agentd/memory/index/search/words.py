"""Turns texts into keyword terms: folded, stemmed, without stop words; identifiers whole and in
parts; bigrams for scripts without spaces; emoji. Any string is valid input.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import Stemmer

from agentd.core.text import at_first_use

# Stop words per language, folded as `fold` folds.
_ENGLISH = """
a about after all also am an and any are aren as at be because been before being between both but
by can cannot could couldn did didn do does doesn doing don done down during each else ever few
for from further get gets getting got had hadn has hasn have haven having he her here hers herself
him himself his how i if in into is isn it its itself just let like ll me might more most much
must mustn my myself no nor not now of off oh ok on once one only or other our ours ourselves out
over own per please re really s same shall shan she should shouldn so some such t than that the
their theirs them themselves then there these they this those through to too under until up us ve
very was wasn we were weren what when where whether which while who whom whose why will with won
would wouldn yes yet you your yours yourself
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis bist da das dass dein deine dem den der des die dies diese
dieser dieses doch du durch ein eine einem einen einer eines er es euch fur hab habe haben hat hatte
hatten ich ihm ihn ihr ihre im in ist ja kann kein keine mal man mein meine mich mir mit nach nicht
noch nur ob oder sein seine sich sie sind so uber um und uns unser vom von war waren warum was wann
welche welcher welches wenn wer werden wie wir wird wo wurde zu zum zur
"""
_FRENCH = """
au aux avec ce ces cette dans de des du elle elles en est et etait etre eu il ils je la le les
leur lui ma mais mes moi mon nos notre nous ou par pas pour quand que quel quelle quelles quels
qui quoi sa ses son sont sur ta tes toi ton tu un une vos votre vous
"""
_SPANISH = """
al algo como con cual cuando cuanto de del donde el ella ellas ellos en era eran es esa ese eso
esta estaba este esto fue ha han hay la las lo los me mi mis muy nos nuestra nuestro o para pero
por porque que quien se ser si sin sobre son su sus te tiene tu tus un una uno unos y yo
"""

STOPWORDS = frozenset(f"{_ENGLISH} {_GERMAN} {_FRENCH} {_SPANISH}".split()) - {"die", "son"}


CACHED = 2_048  # words whose terms are cached, 300 bytes each; covers most words of a text
VERSION = 4  # version of these rules; a new one makes every file be indexed again
MAX_LETTERS = 10_000  # characters of a query that count
MAX_TERM = 64  # characters of a term that count; longer words are blobs

# Scripts written without spaces, and Hangul, whose words carry their particles: Kana, Han, Hangul,
# Thai, Lao, Burmese and Khmer.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_WORD = f"[^\\W_{_UNSPACED}]"
_RUN = at_first_use(f"[{_UNSPACED}]+")
# A flag is two regional indicators; any other emoji is one character, without its skin tone.
_EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}|[\u2600-\u27bf\u2b05-\u2b55\u231a-\u23ff\U0001f000-\U0001f0ff"
    "\U0001f300-\U0001f3fa\U0001f400-\U0001faff]"
)
# A run of an unspaced script, or words joined by the marks of paths, addresses, versions and
# options, or an emoji.
_FOUND = at_first_use(f"[{_UNSPACED}]+|{_WORD}+(?:[-_./:@#+'’]+{_WORD}+)*|{_EMOJI}")
_FOUND_ASCII = re.compile("[A-Za-z0-9]+(?:[-_./:@#+']+[A-Za-z0-9]+)*")  # the same, twice as fast
_PART = at_first_use(f"{_WORD}+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_APOSTROPHE = re.compile(r"['’]")

_stem = Stemmer.Stemmer("english", 0).stemWord


def terms(text: str) -> list[str]:
    """Return the terms of a text in reading order, with repetitions. An identifier such as
    `memory/2026-11-21.md` gives itself and its parts.
    """
    return terms_of(raw_words(text))


def query_part(text: str) -> str:
    """Return the part of a query that counts: its first characters, with runs of blanks as one."""
    return " ".join(text.split())[:MAX_LETTERS]


def raw_words(text: str) -> list[str]:
    """Return the text's words as written, in normal form C."""
    if text.isascii():
        return _FOUND_ASCII.findall(text)
    return _FOUND().findall(unicodedata.normalize("NFC", text))


def terms_of(written: Iterable[str]) -> list[str]:
    """Return the terms of words that `raw_words` returned."""
    found = (_read_cached(word) if len(word) <= MAX_TERM else _read(word) for word in written)
    return [term for own in found for term in own]


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text: its words and punctuation marks."""
    return len(_TOKEN.findall(text))


def is_identifier(word: str) -> bool:
    """Whether a word looks like a machine-readable name: letters mixed with digits or inner marks,
    inner capitals, or a number of four or more digits (not a year).
    """
    if _APOSTROPHE.search(word) or _RUN().match(word):
        return False
    digits = sum(c.isdigit() for c in word)
    letters = sum(c.isalpha() for c in word)
    inner = any(c in "_./:@#" for c in word) or bool(re.search(r"[a-z][A-Z]", word))
    year = digits == len(word) == 4 and word[:2] in {"19", "20"}
    return (digits >= 4 and not year) or bool(digits and letters) or inner


def fold(word: str) -> str:
    """Return the word without case and diacritics."""
    if word.isascii():
        return word.lower()
    lowered = unicodedata.normalize("NFD", word.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in lowered if not unicodedata.combining(c)))


def bare(word: str) -> str:
    """Return the longest part of a word with apostrophes: `what` of what's, `école` of l'école."""
    return max(_APOSTROPHE.split(word), key=len)


def stem(folded: str) -> str:
    """Return the stem of a folded word; digits and words of other scripts stay as they are."""
    if len(folded) > 3 and folded.isascii() and folded.isalpha():
        return str(_stem(folded[:MAX_TERM]))
    return folded[:MAX_TERM]


@lru_cache(maxsize=CACHED)
def _read_cached(word: str) -> tuple[str, ...]:
    return _read(word)


def _read(word: str) -> tuple[str, ...]:
    if _RUN().match(word):
        return tuple(word[i : i + 2] for i in range(len(word) - 1)) or (word,)
    if (piece := bare(word)) != word:
        return tuple(terms_of([piece]))
    parts = _PART().findall(word)
    if not parts:  # an emoji as its code point: the database's tokens are letters and digits
        return ("u" + "".join(f"{ord(c):x}" for c in word),)
    if len(parts) == 1:
        whole = fold(word)
        if whole in STOPWORDS:
            return ()
        camel = _CAMEL.findall(word) if _is_camel(word) else []
        return (stem(whole), *(t for piece in camel for t in _plain(piece)))
    return (fold(word)[:MAX_TERM], *terms_of(parts))


def _is_camel(word: str) -> bool:
    return (
        word.isascii() and len(word) > 3 and re.search(r"[a-z][A-Z]|[A-Za-z]\d", word) is not None
    )


def _plain(piece: str) -> tuple[str, ...]:
    folded = fold(piece)
    return () if folded in STOPWORDS or len(folded) < 2 else (stem(folded),)
