"""Words the results of the tools for facts, and finds the facts that a user chooses. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentd.providers.offline import phrases
from agentd.providers.offline.intent import (
    ForgetIntent,
    intent,
)
from agentd.providers.offline.language import word_forms

_KEPT, _KNOWN, _OLD = "Remembered: ", "Known already: ", " It replaces: "
_REFUSED = re.compile(r"Not kept: (?P<why>.*)|(?P<no>The user did not want this remembered\.)")
_LISTED = re.compile(r"(?P<id>[^\s:]{1,40}): (?P<text>.+)")
_KEPT_BY_USER = "The user wants to keep this."
_ANSWER_CHARS = 100  # longest reply to “which one?”; a longer text is about something else
_MOST = 10  # facts that are offered
_NONE = re.compile(
    r"(?:no(?:ne|thing|pe)?|neither|keep\b.{0,30}|stop|cancel|never ?mind|nein|nichts"
    r"|kein\w{0,2})(?: .{0,20})?"
)
_EACH = re.compile(r"(?:all|both)(?: of (?:them|these|those))?|alle(?: \w+)?|beide")
_PLACES = (
    "1|first|erste|ersten", "2|second|zweite|zweiten", "3|third|dritte|dritten",
    "4|fourth|vierte|vierten", "5|fifth|fünfte|fünften",
)  # fmt: skip
_FILLER = re.compile(
    r"\b(?:number|nummer|the|a|an|ones?|of|them|these|those|my|our|please|that|is|it|about|with"
    r"|called|named|das|der|die"
    r"|den|mit|meinen?|bitte|i|mean|meant|ich|user|s)\b"
)
_HIMSELF = ("The user wrote it himself here, where it stays", phrases.WROTE_YOURSELF)


def kept_answer(result: str) -> str:
    """Turn the result of `remember` into an answer."""
    return "\n".join(line for told in result.split("\n") for line in _facts_in(told))


def refusal_reason(result: str) -> str:
    """Return why `remember` refused a fact for its content; "" where it was not refused, but cannot
    be kept here.
    """
    match = _REFUSED.match(result)
    if match is None:
        return ""
    return match["why"] or phrases.NO_YES


def not_erased(why: str) -> str:
    """Return an answer that says why `forget` has erased nothing."""
    told = phrases.NOT_AGREED if why == _KEPT_BY_USER else why
    return phrases.NOT_ERASED.format(why=told)


def erased_answer(results: Sequence[str]) -> str:
    """Turn the results of `forget` into an answer."""
    return "\n".join(_erased_line(result) for result in results)


def which(facts: Sequence[tuple[str, str]]) -> str:
    """Ask which of the facts, given as (id, text), is meant."""
    shown = (
        phrases.OFFERED.format(number=n, id=known, text=text)
        for n, (known, text) in enumerate(facts[:_MOST], start=1)
    )
    return "\n".join([phrases.WHICH, *shown, phrases.CHOOSE])


def offered_facts(answer: str) -> tuple[tuple[str, str], ...]:
    """Return the facts, as (id, text), that our previous answer offered as a choice; () if it
    offered none.
    """
    title, _, rest = answer.partition("\n")
    if title != phrases.WHICH:
        return ()
    found = map(phrases.IS_OFFERED.fullmatch, rest.split("\n"))
    return tuple((match["id"], match["text"]) for match in found if match)


def chosen_ids(said: str, facts: Sequence[tuple[str, str]]) -> tuple[str, ...] | None:
    """Return the ids that the user's reply names, by number, id or words; () when the reply
    declines all, None when it is about something else.
    """
    if not facts or len(said) > _ANSWER_CHARS or "?" in said:
        return None
    wanted = intent(said)
    asked = wanted.topic if isinstance(wanted, ForgetIntent) else said.strip()
    plain = word_forms.normal(asked)
    if _NONE.fullmatch(plain):
        return ()
    if _EACH.fullmatch(plain):
        return tuple(known for known, _ in facts)
    bare = " ".join(_FILLER.sub(" ", plain).split())
    ids = [known for known, _ in facts if known == asked.strip(" .()")]
    places = [n for n, names in enumerate(_PLACES) if bare in names.split("|")]
    places = places or ([int(bare) - 1] if bare.isdecimal() else [])
    named = set(word_forms.terms(bare))
    meant = [known for known, text in facts if named and named <= set(word_forms.terms(text))]
    found = ids or [facts[n][0] for n in places if 0 <= n < len(facts)] or meant
    return (found[0],) if len(found) == 1 else None


def _facts_in(told: str) -> list[str]:
    if told.startswith(_KEPT):
        text, *old = told.removeprefix(_KEPT).split(_OLD)
        replaced = (phrases.REPLACED.format(text=one) for one in old)
        return [phrases.REMEMBERED.format(text=text), *replaced]
    if told.startswith(_KNOWN):
        return [phrases.KNOWN.format(text=told.removeprefix(_KNOWN))]
    why = refusal_reason(told)
    return [phrases.NOT_REMEMBERED.format(why=why) if why else told]


def _erased_line(result: str) -> str:
    lines = result.split("\n")
    found = [match for line in lines[1:] if (match := _LISTED.fullmatch(line))]
    return which([(m["id"], m["text"]) for m in found]) if found else result.replace(*_HIMSELF)
