"""Finds what looks like an attack on the agent in text that goes into prompts. Pure.

A phrase that is quoted in a line about such attacks counts as medium: notes on the subject are no
attack. Time is in proportion to the text.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from agentd.domain.suspicion import Severity, Suspicion
from agentd.screening import hidden
from agentd.screening.disguise import (
    DENSE,
    NATIVE,
    PLAIN,
    View,
    densely,
    opened,
    plainly,
    without_heads,
)
from agentd.screening.phrases import (
    DENSE_PHRASES,
    NATIVE_PHRASES,
    NEGATIONS,
    OVERRIDE,
    TELLTALES,
    Phrase,
)
from agentd.screening.shapes import (
    CARRIED,
    CARRIES,
    HIDDEN_STYLE,
    IMAGE,
    PLACE,
    REMARK,
    SECRET,
    SEND,
    SENSITIVE,
    SHAPES,
)

_MOST = 40  # places of one kind that are looked at
_STEP = 100
_WINDOW = 200
_SENTENCE_END = re.compile(r"\w\w[.!?][\"')\]]?\s+\w\w|\n[ \t]*\n")
_QUOTES = "\"'`“”„«»‘’「」『』‹›"
_ABOUT = re.compile(
    r"injection|jailbreak|attack|phish|scam|malicious|suspicious|exploit|vulnerab|example|e\.g\.|such as"
    r"|phrase|pattern|scan|detect|filter|article|talk|paper|blog|quote|tutorial|documentation|token"
    r"|beispiel|angriff|template|warn|spam|security|red team|owasp|format|syntax|called|means|api"
)
_CAREFUL = re.compile(r"\b(?:never|don'?t|do not|avoid|not to|nicht|nie|must not|should not|no)\b")

_Place = tuple[Severity, str, int, int]


def scan(text: str) -> tuple[Suspicion, ...]:
    """All that is suspicious, in the order in which it stands there."""
    return _told(text, _places(text, may_decode=True))


def scan_change(before: str, after: str) -> tuple[Suspicion, ...]:
    """What is suspicious in `after` and was not in `before`; what a change completes counts."""
    known = Counter(suspicion.key for suspicion in scan(before)) if before else Counter[str]()
    fresh = []
    for suspicion in scan(after):
        if known[suspicion.key]:
            known[suspicion.key] -= 1
        else:
            fresh.append(suspicion)
    return tuple(fresh)


def _places(text: str, *, may_decode: bool) -> Iterator[_Place]:
    source = opened(text)
    plain = View(source, PLAIN)
    yield from hidden.invisible(text)
    yield from _shapes(plain, source)
    yield from _unseen(plain)
    yield from _exfiltration(plain)
    yield from _pictures(plain, source)
    body = without_heads(source)
    dense = View(body, DENSE)
    for phrase in DENSE_PHRASES:
        yield from _phrases(dense, phrase, body)
    if not text.isascii():
        native = View(body, NATIVE)
        for phrase in NATIVE_PHRASES:
            yield from _phrases(native, phrase, body, has_words=False)
    if may_decode:
        yield from _turned(plain, dense, body)
        yield from _encoded(text)


def _phrases(
    view: View, phrase: Phrase, source: str, *, has_words: bool = True
) -> Iterator[_Place]:
    for found in islice(phrase.matches(view.text), _MOST):
        start, end = view.where(found.start()), view.where(found.end() - 1) + 1
        if has_words and start and source[start - 1].isalpha():
            continue  # the middle of a word: these letters are there by chance
        if phrase is not OVERRIDE and _SENTENCE_END.search(source, start, end):
            continue
        if _is_denied(view, found.start(), start, source):
            continue
        yield _unless_mentioned(source, start, end), phrase.reason, start, end


def _is_denied(view: View, index: int, start: int, source: str) -> bool:
    """Whether the words right before say not to do it."""
    if not index or not view.text.endswith(NEGATIONS, max(0, index - 10), index):
        return False
    return source[view.where(index - 1) + 1 : start].isspace()


def _turned(plain: View, dense: View, source: str) -> Iterator[_Place]:
    """Sentences written backwards or in ROT13."""
    why = "hides instructions by turning the letters round"
    if any(densely(word)[::-1] in dense.text for word in TELLTALES):
        size = len(dense.text)
        for found in islice(OVERRIDE.matches(dense.text[::-1]), _MOST):
            start, end = size - found.end(), size - 1 - found.start()
            yield Severity.HIGH, why, dense.where(start), dense.where(end) + 1
    if any(codecs.encode(word, "rot13") in plain.text for word in TELLTALES):
        turned = View(codecs.encode(source, "rot13"), DENSE)
        for found in islice(OVERRIDE.matches(turned.text), _MOST):
            start, end = turned.where(found.start()), turned.where(found.end() - 1) + 1
            yield Severity.HIGH, why, start, end


def _shapes(plain: View, source: str) -> Iterator[_Place]:
    for shape in SHAPES:
        for found in islice(shape.pattern.finditer(plain.text), _MOST):
            start, end = plain.where(found.start()), plain.where(found.end() - 1) + 1
            start += len(source[start:end]) - len(source[start:end].lstrip())
            severity = shape.severity
            if severity is Severity.HIGH:
                severity = _unless_mentioned(source, start, end)
                if shape.reason.startswith("would") and _is_warning(plain.text, found.start()):
                    severity = Severity.MEDIUM
            yield severity, shape.reason, start, end


def _unseen(plain: View) -> Iterator[_Place]:
    """Comments and hidden elements that speak to the agent."""
    for at, end, words in islice(hidden.comments(plain.text), 20 * _MOST):
        if hidden.speaks_to_the_agent(words):
            start, stop = plain.where(at), plain.where(max(at, end - 1)) + 1
            yield Severity.HIGH, "has instructions in a comment", start, stop
    for pattern, reason in ((REMARK, "a comment"), (HIDDEN_STYLE, "hidden text")):
        for found in islice(pattern.finditer(plain.text), _MOST):
            start, stop = plain.where(found.start()), plain.where(found.end() - 1) + 1
            if hidden.speaks_to_the_agent(found[1]):
                yield Severity.HIGH, f"has instructions in {reason}", start, stop
            elif pattern is HIDDEN_STYLE:
                yield Severity.MEDIUM, "has text that is not shown", start, stop


def _exfiltration(plain: View) -> Iterator[_Place]:
    text = plain.text
    has_secret = SECRET.search(text) is not None
    sends = [found.start() for found in SEND.finditer(text)] if has_secret else []
    places = [found.start() for found in PLACE.finditer(text)] if sends else []
    told = -_STEP
    for found in SECRET.finditer(text) if places else ():
        at = found.start()
        order = _nearest(sends, at - _STEP, at)
        where = _nearest(places, at - _STEP, at + _WINDOW)
        if order is None or where is None or at < told + _STEP or "\n\n" in text[order:at]:
            continue
        told = at
        severity = Severity.LOW if _is_warning(text, order) else Severity.HIGH
        start = plain.where(order)
        yield severity, "would send secrets away", start, plain.where(found.end() - 1) + 1
    told = -_STEP
    for found in SENSITIVE.finditer(text):
        at = found.start()
        if at >= told + _STEP:
            told = at
            first = max(0, at - _WINDOW)
            if carried := CARRIES.search(text, first, at + 2 * _WINDOW):
                severity = Severity.LOW if _is_warning(text, carried.start()) else Severity.HIGH
                start, end = plain.where(carried.start()), plain.where(carried.end() - 1) + 1
                yield severity, "would send secrets away", start, end


def _pictures(plain: View, source: str) -> Iterator[_Place]:
    for found in islice(IMAGE.finditer(plain.text), 10 * _MOST):
        address = found[1] or found[2]
        if "?" in address or "{" in address:
            start, end = plain.where(found.start()), plain.where(found.end() - 1) + 1
            carries = CARRIED.search(address) is not None
            severity = _unless_mentioned(source, start, end) if carries else Severity.LOW
            yield severity, "shows a picture whose address carries data away", start, end


def _encoded(text: str) -> Iterator[_Place]:
    runs = list(hidden.encoded(text))
    readable = [(start, end, said) for start, end, said in runs if said]
    inside = "\n\n".join(said for _, _, said in readable)
    for suspicion in _told(inside, _places(inside, may_decode=False)) if inside else ():
        if suspicion.is_high:
            start, end, _ = readable[(suspicion.line - 1) // 2]
            yield Severity.HIGH, "hides instructions in encoded text", start, end
    for start, end, _ in runs:
        if hidden.is_long(start, end):
            yield Severity.LOW, "has long encoded text", start, end


def _nearest(sorted_places: list[int], first: int, last: int) -> int | None:
    """The last place between the two."""
    index = bisect_right(sorted_places, last) - 1
    return sorted_places[index] if index >= 0 and sorted_places[index] >= first else None


def _is_warning(plain: str, start: int) -> bool:
    """Whether the line says before `start` not to do this."""
    begin = max(plain.rfind("\n", 0, start) + 1, start - 60)
    return _CAREFUL.search(plain, begin, start + 1) is not None


def _unless_mentioned(source: str, start: int, end: int) -> Severity:
    """MEDIUM for what stands in quotation marks in a line about attacks, else HIGH."""
    first = max(source.rfind("\n", 0, start) + 1, start - 300)
    last = source.find("\n", end)
    last = min(len(source) if last < 0 else last, end + 300)
    opens = any(mark in source[first : start + 1] for mark in _QUOTES)
    closes = any(mark in source[max(start, end - 1) : last] for mark in _QUOTES)
    around = plainly(f"{source[first:start]} {source[end:last]}")
    return Severity.MEDIUM if opens and closes and _ABOUT.search(around) else Severity.HIGH


def _told(text: str, places: Iterable[_Place]) -> tuple[Suspicion, ...]:
    """The places in words, each reason once a line; a high one counts before others."""
    rank = {Severity.HIGH: 0, Severity.MEDIUM: 1, Severity.LOW: 2}
    lines = [0, *(found.end() for found in re.finditer("\n", text))]
    told: dict[tuple[str, int], Suspicion] = {}
    for severity, reason, start, end in sorted(places, key=lambda p: (rank[p[0]], p[2])):
        line = bisect_left(lines, start + 1)
        key = (
            f"{severity} {reason} {' '.join(plainly(text[start : min(end, start + 200)]).split())}"
        )
        column = start - lines[line - 1] + 1
        told.setdefault((reason, line), Suspicion(severity, reason, line, column, key))
    return tuple(sorted(told.values(), key=lambda s: (s.line, s.column)))
