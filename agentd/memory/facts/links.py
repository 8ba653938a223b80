"""Which facts hang on which, and which of them a question asks for. Pure.

Facts are joined by the names in their triples: on “the user's sister is Klara” hangs what has Klara as
its subject. While a subject has only one value of a relation, that relation of it names the value: “the
user's sister”, “my sister” and “Klara” are one. No step goes through the user himself, of whom nearly
everything is said.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log

from agentd.domain.fact import Fact
from agentd.domain.scripts import UNSPACED
from agentd.memory.facts.known import comparable

USER = "user"
STEPS = 3  # along facts, from the one that a question finds
MOST = 500  # facts that are looked at for one question
BEAM = 64  # ways that are followed at each step
STEM = 4  # letters by which two forms of a word are known to be one
NAMED = 0.5  # of the weight of a name's or relation's words that a question has to hold
NEARNESS = 1.0  # what a cosine of 1 counts for beside all words of the question
SHORTER = 0.03  # what each further fact of a way has to bring

_WORD = re.compile(f"[{UNSPACED}]+|[^\\W_{UNSPACED}]+")
_RUN = re.compile(f"[{UNSPACED}]")
_OWNED = re.compile(r"(?P<owner>.+)'s? (?P<relation>.+)")


@dataclass(frozen=True, slots=True)
class Way:
    """Facts each of which hangs on the one before. `score` says how well they answer together."""

    facts: tuple[Fact, ...]
    score: float


class FactLinks:
    """Active facts by the names in them. Changes and questions take time that does not grow with the
    number of facts that have nothing to do with them.
    """

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: dict[str, Fact] = {}
        self._ends: dict[str, dict[str, None]] = defaultdict(dict)  # facts by a name in them
        self._values: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._holding: Counter[str] = Counter()  # facts by a word in them
        self._names: dict[str, dict[str, None]] = defaultdict(dict)  # facts by a word of their names
        for fact in facts:
            self.put(fact)

    def __len__(self) -> int:
        return len(self._facts)

    def put(self, fact: Fact) -> None:
        """Add an active fact, or replace the one of its id."""
        self.remove(fact.id)
        self._facts[fact.id] = fact
        self._holding.update(terms(fact.text))
        if (triple := _labels(fact)) is None:
            return
        subject, relation, value = triple
        self._values[subject, relation][value] += 1
        for end in _ends(fact):
            self._ends[end][fact.id] = None
        for term in _handles(fact):
            self._names[term][fact.id] = None

    def remove(self, fact_id: str) -> None:
        """Take it out."""
        fact = self._facts.pop(fact_id, None)
        if fact is None:
            return
        _take(self._holding, terms(fact.text))
        if (triple := _labels(fact)) is None:
            return
        subject, relation, value = triple
        _take(values := self._values[subject, relation], (value,))
        if not values:
            del self._values[subject, relation]
        for known, keys in ((self._ends, _ends(fact)), (self._names, _handles(fact))):
            for key in keys:
                known[key].pop(fact_id, None)
                if not known[key]:
                    del known[key]
