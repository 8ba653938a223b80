"""In what two near sentences differ that a meaning may hang on.

A difference too many costs a second line in a list; one too few loses a change of mind. So whatever
may be a number, a day, a denial or a name counts as one.
"""

from __future__ import annotations

import re

from agentd.statements.calendar import DAYS, MONTHS, WEEKDAYS
from agentd.statements.normal import normalised

_COUNTS = {
    word: str(number)
    for number, words in enumerate(
        (
            "two zwei both beide", "three drei", "four vier", "five fünf", "six sechs",
            "seven sieben", "eight acht", "nine neun", "ten zehn", "eleven elf", "twelve zwölf twice",
        ),
        2,
    )
    for word in words.split()
}  # fmt: skip
_UNITS = {
    form: unit
    for unit, forms in {
        "km": "km kilometer kilometers kilometre kilometres",
        "m": "m meter meters metre metres", "cm": "cm", "mm": "mm",
        "mi": "mi mile miles meile meilen", "ft": "ft foot feet", "in": "inch inches",
        "kg": "kg kilo kilos kilogram kilograms", "g": "g gram grams gramm",
        "lb": "lb lbs pound pounds", "oz": "oz", "l": "l liter liters litre litres",
        "ml": "ml", "kb": "kb", "mb": "mb", "gb": "gb", "tb": "tb", "%": "% percent prozent",
        "$": "$ usd dollar dollars", "€": "€ eur euro euros", "£": "£ gbp", "°c": "°c", "°f": "°f",
        "s": "s sec second seconds sekunden", "ms": "ms",
        "min": "min mins minute minutes minuten", "h": "h hour hours stunde stunden",
        "day": "day days tag tage tagen", "week": "week weeks woche wochen",
        "month": "month months monat monate", "year": "year years jahr jahre jahren",
    }.items()
    for form in forms.split()
}  # fmt: skip
_NUMBER = re.compile(
    r"(?P<before>[$€£] ?)?(?P<number>\d+(?:[.,:/-]\d+)*)(?:st|nd|rd|th)?\.?"
    r"(?: ?(?P<half>[ap])\.?m\b\.?| ?(?P<clock>uhr)\b| ?(?P<unit>[^\W\d_]{1,10}\b|°[cf]\b|[%$€£]))?"
)
_COUNT = re.compile(rf"\b(?:{'|'.join(_COUNTS)})\b(?: (?P<unit>[^\W\d_]{{1,10}})\b)?")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b")
_GERMAN_DATE = re.compile(r"\b(\d{1,2})\.(\d{1,2})\.((?:19|20)?\d\d)?(?!\d)")
_DATE_WORD = re.compile(rf"\b(?!may\b)(?:{'|'.join((*MONTHS, *WEEKDAYS, *DAYS))})\b")
_MAY = re.compile(r"\bmay\b(?! (?:be|not|have|also|well|or)\b)")
_NOT = re.compile(
    r"n't\b|\b(?:not|no|never|neither|nor|none|nobody|nothing|nowhere|cannot|without|cant|dont|doesnt"
    r"|didnt|isnt|wont|stop(?:s|ped)?|quits?|gave up|ceased|avoids?|refuses?|dislikes?|hates?|detests?"
    r"|used to|former(?:ly)?|ex|nicht|nie|niemals|nichts|ohne|kein\w{0,2}|hasst?)\b"
)
_POLES = {
    word: pole
    for pole, pair in enumerate(
        (
            "on off", "enabled disabled", "enable disable", "open closed", "active inactive",
            "before after", "dark light", "passed failed", "succeeded failed", "works broke",
            "always sometimes", "morning evening", "early late", "left right", "more less",
            "first last", "public private", "single married", "online offline", "hot cold",
        )
    )
    for word in pair.split()
}  # fmt: skip
_COMPARING = frozenset(
    ("over", "than", "to", "from", "before", "after", "instead", "by", "not", "als", "von", "vor")
)
_EXCHANGED = 2  # words
_WORD = re.compile(r"[^\W_]+(?:['’.+#-][^\W_]+)*(?:-(?![\w-])|\+*#?)")
_CAPITAL = re.compile(r"[^\W\d_a-zà-öø-ÿ]")
_PLAIN = re.compile(
    r"don't|uhr|i|i'm|i've|i'd|i'll|the|a|an|this|that|these|those|my|our|your|his|her|its|their|user"
    r"|users|he|she|it|we|they|you|always|never|please|when|if|in|on|at|for|from|to|with|and|or"
    r"|but|so|yes|no|not|do|does|is|are|was|were|has|have|every|each|all|some|there|here|now"
    r"|today|ok|project|projekt|der|die|das|ein|eine|mein|meine|ich|wir|er|sie|es"
)
_AFTER = re.compile(
    r"\b(?:called|named|name is|in|at|from|(?:moved?|flight|fly|trip) to|with|heißt|heisst|uses?)"
    r" ([^\W\d_][\w'-]*(?: [^\W\d_][\w'-]*)?)"
)


def differs(one: str, other: str) -> frozenset[str]:
    """Which of `numbers` (with units, versions, times), `dates`, `negation` and `names` the two do not
    have in common.
    """
    a, b = normalised(one), normalised(other)
    if a == b:
        return frozenset()
    found = {
        "numbers": _numbers(a) != _numbers(b),
        "dates": _dates(a) != _dates(b),
        "negation": len(_NOT.findall(a)) != len(_NOT.findall(b)) or _are_poles(a, b),
        "names": _names_differ(one, other),
    }
    return frozenset(kind for kind, is_so in found.items() if is_so)


def is_denial(one: str, other: str) -> bool:
    """Whether one of the two says what the other does, but for a “not”, “never” or “no longer”."""
    a, b = normalised(one), normalised(other)
    return len(_NOT.findall(a)) != len(_NOT.findall(b)) and _affirmed(a) == _affirmed(b)


def is_exchanged(one: str, other: str) -> bool:
    """Whether the two are one sentence but for a word or two exchanged (“the top drawer”, “the bottom
    drawer”) or for who is compared with whom (“tea over coffee”): to a model they are nearly one.
    """
    a, b = _WORD.findall(normalised(one)), _WORD.findall(normalised(other))
    if len(a) != len(b) or a == b:
        return False
    if sorted(a) == sorted(b):
        return not _COMPARING.isdisjoint(a)
    exchanged = [x for x, y in zip(a, b, strict=True) if x != y]
    return len(exchanged) <= _EXCHANGED


def _numbers(text: str) -> set[str]:
    text = _GERMAN_DATE.sub(r"\1 \3 ", _ISO.sub(r"\1 \3", text))
    found = {_number(match) for match in _NUMBER.finditer(_THOUSANDS.sub("", text))}
    for match in _COUNT.finditer(text):
        word = match[0].split()[0]
        found.add(f"{_COUNTS[word]} {_UNITS.get(match['unit'] or '', '')}".strip())
    return found


def _number(match: re.Match[str]) -> str:
    number = match["number"]
    if match["half"] or match["clock"]:
        hours, _, minutes = number.replace(".", ":").partition(":")
        late = 12 if match["half"] == "p" else 0
        hour = int(hours) % 12 + late if match["half"] else int(hours)
        return f"{hour}:{minutes or '00'}"
    unit = _UNITS.get((match["before"] or match["unit"] or "").strip(), "")
    return f"{number.lstrip('0') or '0'} {unit}".strip()


def _dates(text: str) -> set[str]:
    words = {MONTHS.get(w) or WEEKDAYS.get(w) or w for w in _DATE_WORD.findall(text)}
    if _MAY.search(text):
        words.add("m5")
    words |= {f"m{int(match[2])}" for match in _ISO.finditer(text)}
    return words | {f"m{int(match[2])}" for match in _GERMAN_DATE.finditer(text)}


def _are_poles(one: str, other: str) -> bool:
    a, b = set(_WORD.findall(one)), set(_WORD.findall(other))
    left = {_POLES[word] for word in a - b if word in _POLES}
    return bool(left & {_POLES[word] for word in b - a if word in _POLES})


def _affirmed(text: str) -> str:
    """The text without its denials and what goes with them: “do not like” and “likes” are one."""
    text = re.sub(
        r"\b(?:(?:does|do|did|is|are|was) )?(?:no longer|not|never|nicht mehr|nicht)\b"
        r"|\b(?:does|do|did|is|are|was|would|could|should|has|have)n't\b"
        r"|\b(?:any ?more|is|are|am|ever|kein\w{0,2})\b",
        " ",
        text,
    )
    return " ".join(word.removesuffix("s") for word in _WORD.findall(text))


def _names_differ(one: str, other: str) -> bool:
    a, b = _spelled(one), _spelled(other)
    return bool(_names(one) - b or _names(other) - a)


def _spelled(text: str) -> set[str]:
    return {_bare(word) for word in _WORD.findall(text)}


def _bare(word: str) -> str:
    return normalised(word).removesuffix("'s")


def _is_plain(word: str) -> bool:
    bare = _bare(word)
    return _PLAIN.fullmatch(bare) is not None or bare in MONTHS or bare in WEEKDAYS


def _names(text: str) -> set[str]:
    """Capitalised words; where nothing inside the text is capitalised, what stands where names do."""
    words = _WORD.findall(text)
    capital = {_bare(w) for w in words if _CAPITAL.search(w) and not _is_plain(w)}
    if any(_CAPITAL.match(word) for word in words[1:] if not _is_plain(word)):
        return capital
    placed = {_bare(w) for m in _AFTER.findall(normalised(text)) for w in m.split()}
    return capital | {
        word
        for word in placed
        if not (_is_plain(word) or word in _COUNTS or any(map(str.isdigit, word)))
    }
