"""Which candidates the user has really said. Pure.

A model may cite a message for what nobody said. So a candidate counts only if its telling words stand
in the message that it cites: half of them, every number and name, and of the value that rules read out
of it at least one. A day that a message calls “tomorrow” may be told as a date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from agentd.domain.fact import FactSource, Provenance, Statement, Triple
from agentd.domain.turn import SessionKey
from agentd.facts.extraction.parsing import Candidate
from agentd.facts.extraction.reading import Said
from agentd.redaction import tells_secret
from agentd.statements.calendar import MONTHS, WEEKDAYS
from agentd.statements.claims import claims, triple_of
from agentd.statements.normal import normalised
from agentd.statements.telling import is_same_word, share_said, telling_words

_SHARE = 0.5
_SHARE_WITHOUT_NAMES = 0.6  # where a capital letter makes no name
_REWORDING = re.compile(  # verbs and such that a model puts in the place of the user's own
    r"longer|anymore|currently|recently|generally|typically|regularly|usually|named|likes|loves|enjoys"
    r"|prefers|dislikes|hates|wants|needs|owns|has|lives|works|plans|intends|thinks|feels|says|said"
    r"|stated|mentioned|asked|asks|decided|goes|gets|keeps|takes"
)

_USER = re.compile(
    r"(?i)\bthe user\b(?:['’]s)?|(?:de[rnms]|die) (?:be)?nutzer\w*|\bl['’]ut(?:ilisateur|ente)"
    r"|\b(?:el|la|o|a) usu[aá]ri[oa]|用户|使用者|ユーザー"
)
_FIRST_PERSON = re.compile(r"(?i)(?<![\w'’])(?:I|I['’](?:m|ve|d|ll)|my|mine|me)(?![\w'’])")
_NAME = re.compile(r"(?<![\w'’-])(?!I\b)[A-Z][\w'’-]*")
_STARTS = re.compile(r"(?:\A|[.!?:]\s+)[\"'“‘(]*\Z")
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DATE = re.compile(
    rf"(?i)\b(?:on )?(?:\d{{4}}-\d\d-\d\d|(?:{_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?(?:{_MONTH})\.?(?:,? \d{{4}})?)\b"
)
_RELATIVE = re.compile(
    r"(?i)\b(?:today|tonight|tomorrow|yesterday|next|last|this|coming|ago|in (?:a|one|two|three|\d+)"
    rf"|heute|morgen|gestern|nächste\w*|letzte\w*|{'|'.join(WEEKDAYS)})\b"
)
_TO_TWELVE = "zero one two three four five six seven eight nine ten eleven twelve"
_WRITTEN_OUT = {word: str(number) for number, word in enumerate(_TO_TWELVE.split())}
_UNSPACED = re.compile("[\u0e00-\u0eff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Grounded:
    """What may be learnt, in order of the candidates, and how many nobody said."""

    statements: tuple[Statement, ...]
    dropped: int


def ground(
    candidates: Sequence[Candidate], messages: Sequence[Said], session: SessionKey
) -> Grounded:
    """The candidates that stand in the messages, which are numbered from 1."""
    statements: list[Statement] = []
    for candidate in candidates:
        said = _cited(candidate, messages)
        if said is not None:
            statements.append(_statement(candidate, said, session))
    return Grounded(tuple(statements), len(candidates) - len(statements))


def denials(messages: Sequence[Said], session: SessionKey, zone: tzinfo) -> tuple[Statement, ...]:
    """What the messages say for certain to hold no longer: of “I switched from A to B” a model often
    lists B alone.
    """
    found = []
    for said in messages:
        for claim in claims(said.text, said_on=said.at.astimezone(zone).date()):
            if claim.is_negated:
                origin = Provenance(session, said.seq)
                found.append(
                    Statement(
                        claim.text,
                        claim.category,
                        FactSource.EXTRACTED,
                        said.at,
                        origin,
                        claim.triple,
                    )
                )
    return tuple(found)


def stands_in(content: str, said: str) -> bool:
    """Whether somebody who says `said` says `content`, as far as words can tell."""
    told = _USER.sub(" ", content)
    if _RELATIVE.search(said):
        told = _DATE.sub(" ", told)
    if not _numbers(told) <= _numbers(said):
        return False
    if _UNSPACED.search(told):
        return _share_of_pairs(told, said) >= _SHARE
    words = _WORD.findall(normalised(said))
    if _has_other_value(content, words):
        return False
    names = frozenset(_names(told))
    share = _share(told, names, words)
    if "the user" not in content.casefold():
        return share >= _SHARE_WITHOUT_NAMES
    return all(_is_among(name, words) for name in names) and share >= _SHARE


def _cited(candidate: Candidate, messages: Sequence[Said]) -> Said | None:
    if tells_secret(candidate.content):
        return None
    if candidate.message is not None:
        messages = (
            messages[candidate.message - 1 : candidate.message] if candidate.message > 0 else ()
        )
    holding = [said for said in messages if stands_in(candidate.content, said.text)]
    return holding[-1] if holding else None


def _statement(candidate: Candidate, said: Said, session: SessionKey) -> Statement:
    content = candidate.content
    if _FIRST_PERSON.search(content) and not _USER.search(content):
        content = f"The user said: “{content}”"
    triple = candidate.triple
    if triple is not None and not _is_told(triple, f"{candidate.content} {said.text}"):
        triple = None
    return Statement(
        content,
        candidate.category,
        FactSource.EXTRACTED,
        said.at,
        Provenance(session, said.seq),
        triple,
    )


def _is_told(triple: Triple, told: str) -> bool:
    """Whether the value stands in what is told: a triple must say no more than its sentence."""
    return triple.value.casefold() in told.casefold() or share_said(triple.value, told) == 1.0


def _names(content: str) -> list[str]:
    """Capitalised words that do not begin a sentence, one by one as they are compared."""
    names = (
        match[0]
        for match in _NAME.finditer(content)
        if not _STARTS.search(content[: match.start()])
    )
    return [word for name in names for word in telling_words(name)]


def _share(told: str, names: frozenset[str], words: Sequence[str]) -> float:
    """How many of the telling words are among these, 0..1. Names and numbers tell twice as much."""
    said = wanted = 0
    for word in telling_words(told):
        if not _REWORDING.fullmatch(word):
            weight = 2 if word in names or _NUMBER.search(word) else 1
            wanted += weight
            said += weight * (_NUMBER.fullmatch(word) is not None or _is_among(word, words))
    return said / wanted if wanted else 0.0


def _has_other_value(content: str, words: Sequence[str]) -> bool:
    """Whether none of these words is of the sentence's value: of “allergic to nuts” half the words
    are said by who is allergic to milk.
    """
    triple = triple_of(content)
    value = telling_words(_DATE.sub(" ", triple.value)) if triple else ()
    told = [word for word in value if word in telling_words(content) and not _numbers(word)]
    return bool(told) and not any(_is_among(word, words) for word in told)


def _is_among(word: str, words: Sequence[str]) -> bool:
    pieces = _WORD.findall(word)
    each = bool(pieces) and all(any(is_same_word(p, w) for w in words) for p in pieces)
    return each or "".join(pieces) in words


def _numbers(text: str) -> frozenset[str]:
    found = {run for match in _NUMBER.finditer(text) for run in re.findall(r"\d+", match[0])}
    written = (_WRITTEN_OUT.get(word) for word in re.findall(r"[a-z]+", text.casefold()))
    return frozenset({run.lstrip("0") or "0" for run in found} | {n for n in written if n})


def _share_of_pairs(told: str, said: str) -> float:
    """How many of the pairs of letters in scripts without blanks both have in common, 0..1."""
    wanted, there = _pairs(told), _pairs(said)
    return len(wanted & there) / len(wanted) if wanted else 0.0


def _pairs(text: str) -> frozenset[str]:
    runs = _UNSPACED.findall(text)
    return frozenset(run[n : n + 2] for run in runs for n in range(len(run) - 1))
