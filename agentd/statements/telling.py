"""The words of a sentence that tell what it is about."""

from __future__ import annotations

import re

from agentd.statements.normal import normalised

# What a sentence is about that names nobody and nothing: who says it, and who is told.
PERSONS = ("user", "i", "my", "me", "you", "your", "ich", "mein", "meine", "du", "dein", "deine")
_WORD = re.compile(r"[^\W_]+(?:[.:'@/_-][^\W_]+)*")
_LEAST = 4  # letters that two forms of one word share at least
_LISTED = """
    a about again ago all already also always am an and any are as at back be because been before
    being but by call called can could did do does doing done down each else even ever every few
    for forget from get give go goes got had has have having he her here him his how i i'd i'll i'm i've if in
    into is isn't it it's its just keep know last let like made make many may me might mine more
    most much must my myself name named never new next no not note now of off ok old on once one
    only or other our out over own please put really remember said same say she should since so
    some still such take tell than thank thanks that that's the their them then there these they
    thing things think this those though time to today tomorrow too two up us use used user user's
    very want wants was way we well were what what's when where which while who whom whose why will
    with without would yes yesterday yet you your yours
    aber alle als also am an auch auf aus bei bin bis bist bitte da das dass dein deine dem den der
    des dich die dies diese dieser dir doch du ein eine einem einen einer er es für gibt habe haben
    hat hatte heißt heisst ich ihm ihn ihr im in ist ja jetzt kann kein keine mal man mehr mein meine
    meinem meinen meiner mich mir mit nach nicht noch nur oder schon sein seine sich sie sind so
    über um und uns unser vergiss von vor war was wenn wer wie wir wird wo zu zum zur
"""
_COMMON = frozenset(_LISTED.split())


def telling_words(text: str) -> tuple[str, ...]:
    """Names, numbers and other words of content, each once, in order, case folded."""
    words = (match[0] for match in _WORD.finditer(normalised(text)))
    bare = (word.removesuffix("'s") for word in words)
    return tuple(dict.fromkeys(word for word in bare if word not in _COMMON))


def is_same_word(one: str, other: str) -> bool:
    """Whether two case-folded words are forms of one: “allergic” and “allergy”, “dog” and “dogs”."""
    if one == other:
        return True
    if any(sign.isdigit() for sign in one + other):
        return False
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) <= 2 and long.startswith(short):
        return len(short) >= _LEAST - 1
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    return shared >= _LEAST and shared >= len(short) - 2 and len(long) - shared <= 3


def share_said(text: str, said: str) -> float:
    """How much of the text's telling words `said` has, 0..1; 0 for a text without any."""
    wanted = telling_words(text)
    if not wanted:
        return 0.0
    there = telling_words(said)
    exact = frozenset(there)
    held = sum(
        word in exact or any(is_same_word(word, other) for other in there) for word in wanted
    )
    return held / len(wanted)
