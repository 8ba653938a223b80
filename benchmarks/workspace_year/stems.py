"""Words and their rough stems: enough to tell that a question shares no content word with a
line.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d_]+")
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "edly", "ers", "ies", "ed", "er", "es", "ly", "s", "e", "y")  # fmt: skip
_FREQUENT = frozenset(
    """
    a about after again all also am an and any are as at away back be been before being both but by
    call came can come could day did do does done down each else end ever every few first for found
    from get go goes gone good got had has have he her here hers him his how i if in into is it its
    just keep kept know last left less let like long made make many may me mean means might mine more
    most much must my need needs never new no nor not nothing now of off old on once one only or
    other our out over own people put rest said same say says see shall she should since so some
    something still such take than that the their them then there these they thing things think
    this those through till time to too took two up upon us use used very was way we well went were
    what whatever when where whether which while who whom whose why will with without work would
    year yes yet you your
    der die das den dem des ein eine einen einem und oder aber ist war sind hat haben wird wer was
    wann wo wie warum uns wir ich mich mir sie er es im in am an auf aus bei mit von zu zum zur
    el la los las un una y o pero es son fue que qué quién cuándo dónde cómo por para de del al en
    le la les un une et ou est qui que quand où dans du des à pour par pas
    """.split()  # noqa: SIM905 - a table of words reads better as text
)


def words(text: str) -> list[str]:
    """Its words in lower case, without digits."""
    return [word.lower() for word in _WORD.findall(text)]


def content_stems(text: str) -> frozenset[str]:
    """The stems of its words that are not merely frequent."""
    return frozenset(_stem(word) for word in words(text) if word not in _FREQUENT and len(word) > 2)


def shares_a_stem(one: str, other: str) -> set[str]:
    """The stems that stand in both, counting words that begin with the same five letters."""
    mine, theirs = content_stems(one), content_stems(other)
    return {
        stem
        for stem in mine
        for also in theirs
        if stem == also or (len(stem) > 5 and len(also) > 5 and stem[:5] == also[:5])
    }


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
