"""Splits sentences into clauses and finds what each claims by itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from agentd.core.fact import Triple
from agentd.providers.offline.language.claims import claims_of, slot
from agentd.providers.offline.language.relations import canonical, normalise

# The joints between clauses. A comma or an “and” before a capital is no joint, since the name may
# belong to the words before: “Lyon, Texas”, “Smith and Sons”.
_JOINT = re.compile(
    r"(?<!\s)\s*+(?:[;:()–—“”„«»\"]++(?:\s*+[;:()–—“”„«»\"]++)*+\s*+"
    r"|,\s*+(?=(?-i:I\b|[a-zß-ÿ]))(?:(?:and|but|or|und|aber|oder|dass)\s++)?)"
    r"|(?<!\s)\s++(?:(?:and|or|und|oder)\s++(?=(?-i:I\b|[a-zß-ÿ]))"
    r"|(?:but|so|because|while|where|which|who|with|that|aber|weil|wo|mit|dass)\s++)",
    re.IGNORECASE,
)
_CLAUSES, _CLAUSES_AS_ONE = 12, 3  # joints looked at in a sentence, and clauses joined to one
# The sentence's subject, for clauses without one of their own: “I live in Lyon and work at …”.
_SUBJECT = re.compile(
    (
        r"(?:(?:the )?user|i|we|you|ich|wir|du|(?:my|your|our|the user['’]s|meine?|deine?|unsere?) "
        r"[\w-]+)\b"
    ),
    re.IGNORECASE,
)
_TO_ME = (
    (
        re.compile(
            r"\A(?:noted|remembered|ok(?:ay)?|got it|you told me|i'?ll remember(?: that)?)[:,.!]? ",
            re.IGNORECASE,
        ),
        "",
    ),
    (re.compile(r"\byour\b", re.IGNORECASE), "my"),
    (re.compile(r"\byou are\b|\byou're\b", re.IGNORECASE), "I am"),
    (re.compile(r"\byou\b", re.IGNORECASE), "I"),
)


def saying(said: str, is_wanted: Callable[[Triple], bool]) -> list[tuple[str, Triple]]:
    """Return the shortest parts of the sentence that claim a wanted triple, each with
    that triple.
    """
    found: list[tuple[int, int, Triple]] = []
    for begin, end, told in _clauses(said):
        wanted = next(filter(is_wanted, told), None)
        if wanted and not any(begin < last and first < end for first, last, _ in found):
            found.append((begin, end, wanted))
    return [(said[begin:end], wanted) for begin, end, wanted in found]


def _clauses(said: str) -> Iterator[tuple[int, int, tuple[Triple, ...]]]:
    """Yield begin, end and triples of each part of the sentence that claims something: single
    clauses first, then two and three in a row.
    """
    joints = [(match.start(), match.end()) for match in islice(_JOINT.finditer(said), _CLAUSES)]
    begins = [0, *(end for _, end in joints)]
    ends = [*(start for start, _ in joints), len(said)]
    subject = _SUBJECT.match(said)
    for size in range(1, _CLAUSES_AS_ONE + 1):
        for begin, end in zip(begins, ends[size - 1 :], strict=False):
            clause = said[begin:end]
            told = [*triples_claimed(clause)]
            if subject and begin:
                told += triples_claimed(f"{subject[0]} {clause}")
            if told:
                yield begin, end, tuple(told)


def triples_claimed(said: str) -> list[Triple]:
    """Return the triples that the text claims, said by the user or, with “you”, to the user."""
    spoken = said
    for pattern, instead in _TO_ME:
        spoken = pattern.sub(instead, spoken)
    return [claim.triple for form in dict.fromkeys((said, spoken)) for claim in claims_of(form)]


def is_same(one: Triple, other: Triple) -> bool:
    """Whether two triples say the same of the same subject."""
    if slot(one) != slot(other) or canonical(one.relation) != canonical(other.relation):
        return False
    return normalise(one.value) == normalise(other.value)
