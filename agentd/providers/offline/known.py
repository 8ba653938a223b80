"""What the offline provider does with facts: which words become one, what the tools have answered,
and which fact is meant. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from agentd.providers.offline import phrases
from agentd.providers.offline.sentences import bare, split
from agentd.statements.choosing import is_none, places, says_only
from agentd.statements.claims import claims
from agentd.statements.explicit import requested
from agentd.statements.telling import share_said, telling_words

_CHARS = 500  # of a sentence that may be a fact: what is longer is a note
_SAME = 0.75  # of the telling words: a claim with fewer leaves something out
_NOTE = re.compile(
    r"note\b|(?:make|take) a note|(?:write|jot)\b|for the record|(?:save|store)\b|notier|anota|apunta",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]|\[[ xX]?\])\s")
_TASK = re.compile(r"Remember to\b")
_KEPT = re.compile(r"Remembered: (?P<text>.*?)(?P<old>(?: It replaces: .*)?)", re.DOTALL)
_OLD = " It replaces: "
_REFUSED = re.compile(r"Not kept: (?P<why>.*)|(?P<no>The user did not want this remembered\.)")
_LISTED = re.compile(r"(?P<id>[^\s:]{1,40}): (?P<text>.+)")
_KEPT_BY_USER = "The user wants to keep this."
_HIMSELF = ("The user wrote it himself here, where it stays", phrases.WROTE_YOURSELF)


def fact_in(said: str, asked: str, today: date | None) -> str:
    """The one sentence to keep as a fact where `said` asks to remember `asked`; "" for what is a
    note: more than a sentence, an entry of a list, a task, or words that go to a diary.
    """
    text = asked.strip()
    if len(text) > _CHARS or "\n" in text or len(list(split(text))) != 1:
        return ""
    if _ENTRY.match(text) or _TASK.match(text) or not telling_words(text):
        return ""
    found = claims(text, said_on=today)
    if _NOTE.match(bare(said)) and (requested(said) is None or len(found) != 1):
        return ""
    claim = found[0].text if len(found) == 1 else text
    shares = (share_said(text, claim), share_said(claim, text))
    return claim if min(shares) >= _SAME else text


def kept(result: str) -> str:
    """What `remember` has answered, in the words of an answer."""
    if match := _KEPT.fullmatch(result):
        lines = [phrases.REMEMBERED.format(text=match["text"])]
        old = match["old"].split(_OLD)[1:]
        return "\n".join([*lines, *(phrases.REPLACED.format(text=text) for text in old)])
    _, _, text = result.partition(": ")
    return phrases.KNOWN.format(text=text or result)


def refused(result: str) -> str:
    """Why a fact was refused for what it says; "" when it was not, and only cannot be kept here."""
    match = _REFUSED.match(result)
    if match is None:
        return ""
    return match["why"] or phrases.NO_YES


def not_erased(why: str) -> str:
    """Why `forget` has done nothing, in the words of an answer."""
    told = phrases.NOT_AGREED if why == _KEPT_BY_USER else why
    return phrases.NOT_ERASED.format(why=told)


def erased(results: Sequence[str]) -> str:
    """What `forget` has answered, in the words of an answer."""
    return "\n".join(_erased(result) for result in results)


def offered(answer: str) -> tuple[tuple[str, str], ...]:
    """The facts, as id and text, between which an answer of ours lets the user choose."""
    title, _, rest = answer.partition("\n")
    if title != phrases.WHICH:
        return ()
    found = map(phrases.IS_OFFERED.fullmatch, rest.split("\n"))
    return tuple((match["id"], match["text"]) for match in found if match)


def chosen(said: str, facts: Sequence[tuple[str, str]]) -> tuple[str, ...] | None:
    """The ids that an answer names, by number, id or words; () when none is meant, None when it is
    about something else.
    """
    if not facts or is_none(said):
        return () if facts else None
    asked = requested(said)
    words = said.strip() if asked is None or asked.kind != "forget" else asked.text
    if ids := [known for known, _ in facts if known == words.strip(" .()")]:
        return tuple(ids)
    if named := places(words, len(facts)):
        return tuple(facts[place][0] for place in named)
    meant = [known for known, text in facts if says_only(words, text)]
    return (meant[0],) if len(meant) == 1 else None


def _erased(result: str) -> str:
    lines = result.split("\n")
    found = [match for line in lines[1:] if (match := _LISTED.fullmatch(line))]
    if not found:
        return result.replace(*_HIMSELF)
    shown = (
        phrases.OFFERED.format(number=n, **m.groupdict()) for n, m in enumerate(found, start=1)
    )
    return "\n".join([phrases.WHICH, *shown, phrases.CHOOSE])
