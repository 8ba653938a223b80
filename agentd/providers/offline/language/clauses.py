"""The clauses of a sentence, and what each of them claims by itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from agentd.core.fact import Triple
from agentd.providers.offline.language.claims import claims_of, slot
from agentd.providers.offline.language.relations import canonical, normalise

# Where a sentence goes on with something else. A name behind a comma or an “and” may belong to what is
# before it: “Lyon, Texas”, “Smith and Sons”.
_JOINT = re.compile(
    r"(?<!\s)\s*+(?:[;:()–—“”„«»\"]++(?:\s*+[;:()–—“”„«»\"]++)*+\s*+"
    r"|,\s*+(?=(?-i:I\b|[a-zß-ÿ]))(?:(?:and|but|or|und|aber|oder|dass)\s++)?)"
    r"|(?<!\s)\s++(?:(?:and|or|und|oder)\s++(?=(?-i:I\b|[a-zß-ÿ]))"
    r"|(?:but|so|because|while|where|which|who|with|that|aber|weil|wo|mit|dass)\s++)",
    re.IGNORECASE,
)
_CLAUSES, _CLAUSES_AS_ONE = 12, 3  # of a sentence that are looked at, and that may say it together
# Whom the clauses are about that have no subject of their own: “I live in Lyon and work at …”.
_SUBJECT = re.compile(
    r"(?:(?:the )?user|i|we|you|ich|wir|du|(?:my|your|our|the user['’]s|meine?|deine?|unsere?) [\w-]+)\b",
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
    """The shortest parts of a sentence that claim something wanted, and what."""
    found: list[tuple[int, int, Triple]] = []
    for begin, end, told in _clauses(said):
        wanted = next(filter(is_wanted, told), None)
        if wanted and not any(begin < last and first < end for first, last, _ in found):
            found.append((begin, end, wanted))
    return [(said[begin:end], wanted) for begin, end, wanted in found]


def _clauses(said: str) -> Iterator[tuple[int, int, tuple[Triple, ...]]]:
    """Where the clauses of a sentence that claim something begin and end, and what; the shortest first,
    then several that only together claim it.
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
    """What the words claim, said by the user or to him."""
    spoken = said
    for pattern, instead in _TO_ME:
        spoken = pattern.sub(instead, spoken)
    return [claim.triple for form in dict.fromkeys((said, spoken)) for claim in claims_of(form)]


def is_same(one: Triple, other: Triple) -> bool:
    """Whether both say the same of the same."""
    if slot(one) != slot(other) or canonical(one.relation) != canonical(other.relation):
        return False
    return normalise(one.value) == normalise(other.value)
