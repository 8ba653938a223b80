"""Brings words to forms that can be compared. Pure.

The forms are a light stem (plural, -ing, -ed), one word for each group of synonyms, also for German
words, and pairs of letters for scripts without spaces. They are enough to find the line that a
question is about, not to understand it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from agentd.providers.offline.language.german import ENGLISH

MAX_CHARS = 2_000  # compared of one text
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
)
_TOKEN = re.compile(f"[{_UNSPACED}]+|[^\\W_{_UNSPACED}]+")
_RUN = re.compile(f"[{_UNSPACED}]")
_POSSESSIVE = re.compile(r"['’]s\b")
_STOP_WORDS = """
a about again all also am an and any anything are as at be been being but by can could did do
does done ever find for from give go going had happen happened happens has have he her hers him his how i if in into is
it its just kind know let look many may me might mine much must my no not now of on or our out
over please recall remember remind say search see she should so some sure something tell than that the
their them then there they thing think this those to told too up us use used want was we were what when
where which while who whom whose why will with would you your
s t d ll re ve m don didn doesn isn
der das den dem des ein eine einen einem einer und oder ist sind hat habe haben ich du er
sie es wir ihr mein meine meinen meinem meiner dein deine unser unsere was wer wie wo wann warum
welche welcher welches mit von zu zum zur im in auf für an bei nicht bitte weißt kennst
le la les un une des du de et ou est sont suis as a je tu il elle nous vous mon ma mes ton ta
notre nos que qui quoi quel quelle quels quelles où quand comment combien pourquoi avec pour dans
sur ne pas ce cette se l d c j qu
el los las una unos unas y o es soy he ha mi mis tu su nuestro nuestra qué quién cuál cuándo
dónde cómo cuánto por para con en del al no se me te como donde cuando
"""
# Synonyms; the first word of a group is the common form of all.
_SAME = (
    "name called call named names heißt heisst heiße name nom appelle appelé llama nombre",
    "open opens unlock unlocks öffnet ouvre abre",
    "live lives living address home wohne wohnt habite vive",
    "birthday born birth geburtstag anniversaire cumpleaños",
    "job work works working employer profession arbeite travaille trabajo",
    "phone telephone mobile",
    "favourite favorite prefer prefers preferred like likes love loves best",
    "wifi wlan",
    "password passphrase passcode passwort contraseña",
    "doctor physician gp",
    "car vehicle auto",
    "wife husband spouse partner",
    "child children kid kids",
    "appointment meeting",
    "movie film",
    "cost price costs",
)
_WEAK_WORDS = """
name open live work date day time year month week number code key thing favourite person people
place new old last first next
"""


def terms(text: str) -> tuple[str, ...]:
    """Return the telling words of a text in their common form, each once, in order."""
    found: dict[str, None] = {}
    for word in _tokens(text):
        if _RUN.match(word):
            found.update(dict.fromkeys(_pairs(word)))
        elif word not in _STOP:
            found.update(dict.fromkeys(map(_common, _tokens(ENGLISH.get(word, word)))))
    return tuple(found)


def weight(term: str) -> float:
    """Return how much a match of this term counts: less for words that occur with anything."""
    return 0.4 if term in _WEAK else 1.0


def is_unspaced(term: str) -> bool:
    """Whether the term is a pair of letters of a script without spaces."""
    return _RUN.match(term) is not None


def query(text: str) -> str:
    """Return the words to search for: the telling words, with other forms for an index of exact
    words.
    """
    wanted: dict[str, None] = {}
    for word in _tokens(text):
        if _RUN.match(word):
            wanted[word] = None
        elif word not in _STOP:
            wanted.update(dict.fromkeys(_forms(word)))
    return " ".join(list(wanted)[:40])[:1_000]


def in_english(text: str) -> str:
    """Return the telling words of a text with known German words translated, as facts contain them;
    "" if none is known.
    """
    words = [word for word in _tokens(text) if word not in _STOP]
    told = [ENGLISH.get(word, word) for word in words]
    return " ".join(told) if told != words else ""


def normal(text: str) -> str:
    """Return the text's words alone, in lower case, to compare two texts."""
    return " ".join(_TOKEN.findall(unicodedata.normalize("NFC", text).casefold()))


def telling(text: str) -> tuple[str, ...]:
    """Return the telling words of a text, stemmed, in order and with repetitions; synonyms stay
    different.
    """
    return tuple(_stem(word) for word in _tokens(text) if word not in _STOP)


def _tokens(text: str) -> list[str]:
    plain = _POSSESSIVE.sub("", unicodedata.normalize("NFC", text[:MAX_CHARS]).casefold())
    return _TOKEN.findall(plain)


def _pairs(run: str) -> Iterable[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _common(word: str) -> str:
    return _FORM.get(word) or _FORM.get(_stem(word)) or _stem(word)


def _stem(word: str) -> str:
    if not word.isascii() or len(word) < 4:
        return word
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return (word[: -len(ending)] + instead).rstrip("e")
    return word.rstrip("e")


def _forms(word: str) -> Iterator[str]:
    """Yield the forms of a word that an index of exact words may contain, English translations
    included.
    """
    for form in (word, *_tokens(ENGLISH.get(word, ""))):
        yield form
        if form.isascii() and not form.isdigit():
            yield form[:-1] if form.endswith("s") and len(form) > 3 else f"{form}s"
        yield from _GROUP.get(form, ())


_GROUP = {word: tuple(group.split()) for group in _SAME for word in group.split()}
_FORM = {word: group[0] for word, group in _GROUP.items()}
_STOP = frozenset(_STOP_WORDS.split())
_WEAK = frozenset(map(_common, _WEAK_WORDS.split()))
