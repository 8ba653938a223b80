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
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import log

from agentd.core.fact import Fact
from agentd.core.text import UNSPACED
from agentd.memory.facts.known import comparable

STEPS = 3  # along facts, from the one that a question finds
MOST = 500  # facts that are looked at for one question
BEAM = 64  # ways that are followed at each step
STEMS = (4, 5)  # first letters by which two forms of a word are known to be one, perhaps and surely
KNOWN_LEAST = 200  # facts: with fewer, how rare a word is says nothing yet
WAYS_TO_SAY = 8  # relations by which one thing is called
NAMED = 0.5  # of the weight of the words of a name or relation, that a question has to hold
NEARNESS = 1.0  # what a cosine of 1 counts for beside all words of the question
STEP = 0.03  # what a further fact has to bring
MEANT, MEANT_BY_WORDS = 0.4, 0.2  # relation from which on a name is no chance, without vectors too
CALLED = 0.15  # what it counts for that a way begins with a fact that the question calls by name

_USER = "user"
_WORD = re.compile(f"[{UNSPACED}]+|[^\\W_{UNSPACED}]+")
_RUN = re.compile(f"[{UNSPACED}]")
_MY = "my "
_OF = "'s "
_CALLED = " name"  # ends the relation of things whose name is known: ("user", "dog name", "Rex")


@dataclass(frozen=True, slots=True)
class LinkWay:
    """Facts each of which hangs on the one before. `score` says how well they answer together, `relation`
    how much they have to do with all that was asked: shared words and nearness in meaning, 0..2.
    """

    facts: tuple[Fact, ...]
    score: float
    relation: float = 0.0


@dataclass(frozen=True, slots=True)
class _Joint:
    """A fact as it is joined to others: the names at its ends, and its relation."""

    subject: str
    relation: str
    value: str

    @property
    def handles(self) -> Iterator[str]:
        """What a question can call it by."""
        yield self.relation if self.subject == _USER else self.subject
        yield self.value


class FactLinks:
    """Active facts by the names in them. A change takes no longer where there are more facts, a question
    only as far as more have to do with it.
    """

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: dict[str, Fact] = {}
        self._joints: dict[str, _Joint] = {}
        self._by_subject: dict[str, dict[str, None]] = defaultdict(dict)
        self._longer: dict[str, dict[str, None]] = defaultdict(
            dict
        )  # subjects by each word of theirs
        self._by_value: dict[str, dict[str, None]] = defaultdict(dict)
        self._by_handle: dict[str, dict[str, None]] = defaultdict(dict)  # by each word of one
        self._values: dict[str, Counter[str]] = defaultdict(Counter)  # by the name of a relation
        self._holding: Counter[str] = Counter()  # facts by a word in them
        self._nexts: dict[str, tuple[Fact, ...]] = {}  # what hangs on a fact, once it was asked for
        for fact in facts:
            self.put(fact)

    def __len__(self) -> int:
        return len(self._facts)

    def put(self, fact: Fact) -> None:
        """Add an active fact, or replace the one of its id."""
        self.remove(fact.id)
        self._nexts.clear()
        self._facts[fact.id] = fact
        self._holding.update(terms(_said(fact)))
        if (joint := _joint(fact)) is None:
            return
        self._joints[fact.id] = joint
        self._values[_owned(joint)][joint.value] += 1
        for table, key in self._places(joint):
            table[key][fact.id] = None
        for word in joint.subject.split():
            self._longer[word][joint.subject] = None

    def remove(self, fact_id: str) -> None:
        """Take it out, if it is there."""
        if (fact := self._facts.pop(fact_id, None)) is None:
            return
        self._nexts.clear()
        _take(self._holding, terms(_said(fact)))
        if (joint := self._joints.pop(fact_id, None)) is None:
            return
        name = _owned(joint)
        _take(self._values[name], (joint.value,))
        if not self._values[name]:
            del self._values[name]
        for table, key in self._places(joint):
            table[key].pop(fact_id, None)
            if not table[key]:
                del table[key]
        if joint.subject not in self._by_subject:
            for word in dict.fromkeys(joint.subject.split()):
                del self._longer[word][joint.subject]
                if not self._longer[word]:
                    del self._longer[word]

    def named(self, question: str, most: int = MOST) -> list[Fact]:
        """The facts that a question calls by name: by that of its subject or value, or, of what is said
        of the user, by its relation.
        """
        asked = terms(question)
        found: dict[str, None] = {}
        for term in sorted(asked & self._by_handle.keys(), key=lambda t: len(self._by_handle[t])):
            found.update(islice(self._by_handle[term].items(), most - len(found)))
        return [self._facts[i] for i in found if self._is_named(self._joints[i], asked)]

    def around(self, starts: Iterable[Fact], steps: int = STEPS, most: int = MOST) -> list[Fact]:
        """These facts, and what hangs on them in at most so many steps, the nearest first."""
        found = {fact.id: fact for fact in starts}
        layer = list(found.values())
        for _ in range(steps):
            fresh: dict[str, Fact] = {}
            for fact in layer:
                fresh |= {one.id: one for one in self._next(fact) if one.id not in found}
                if len(found) + len(fresh) >= most:
                    break
            found |= fresh
            layer = list(fresh.values())
        return list(found.values())[:most]

    def ways(
        self,
        question: str,
        found: Sequence[Fact],
        named: Sequence[Fact],
        cosines: Mapping[str, float],
        steps: int = STEPS,
    ) -> list[LinkWay]:
        """The ways from facts on that a question finds or calls by name, the best first. They are told
        apart by the words of the question that their facts hold, the rare ones above all, and by the
        facts' cosines with it, 0 where there is none. Names that stand in the question by chance begin
        none.
        """
        called = {fact.id: CALLED for fact in named}
        weigher = _Weigher({term: self._rarity(term) for term in terms(question)}, self._rarest)

        def scored(facts: tuple[Fact, ...], held: int) -> tuple[LinkWay, int]:
            near = [cosines.get(fact.id, 0.0) for fact in facts]
            score = weigher.share(held) + called.get(facts[0].id, 0.0) - STEP * (len(facts) - 1)
            relation = weigher.whole_share(held) + max(near)
            return LinkWay(facts, score + NEARNESS * sum(near) / len(near), relation), held

        starts = {fact.id: fact for fact in (*named, *found)}
        layer = [scored((fact,), weigher.held(fact)) for fact in starts.values()]
        ways = [way for way, _ in layer]
        for _ in range(steps):
            layer = [
                scored((*way.facts, fact), held | weigher.held(fact))
                for way, held in sorted(layer, key=lambda one: -one[0].score)[:BEAM]
                for fact in self._next(way.facts[-1])
                if not any(fact is one for one in way.facts)
            ]
            ways += [way for way, _ in layer]
        by_chance = called.keys() - {fact.id for fact in found}
        least = MEANT if cosines else MEANT_BY_WORDS
        if all(way.relation < least for way in ways if way.facts[0].id in by_chance):
            ways = [way for way in ways if way.facts[0].id not in by_chance]
        return sorted(ways, key=lambda way: -way.score)

    def _places(self, joint: _Joint) -> Iterator[tuple[dict[str, dict[str, None]], str]]:
        yield self._by_subject, joint.subject
        yield self._by_value, joint.value
        for handle in joint.handles:
            for term in terms(handle):
                yield self._by_handle, term

    def _is_named(self, joint: _Joint, asked: AbstractSet[str]) -> bool:
        for handle in joint.handles:
            weights = {term: self._rarity(term) for term in terms(handle)}
            said = sum(weight for term, weight in weights.items() if term in asked)
            if said >= NAMED * sum(weights.values()) > 0:
                return True
        return False

    def _rarity(self, term: str) -> float:
        """The weight of a word: 0 for one that no fact holds."""
        held = self._holding[term]
        return log(1 + max(len(self), KNOWN_LEAST) / held) if held else 0.0

    @property
    def _rarest(self) -> float:
        """The weight of a word that no fact holds, where all of a question counts."""
        return log(1 + 2 * max(len(self), KNOWN_LEAST))

    def _next(self, fact: Fact) -> tuple[Fact, ...]:
        """What is said of the things that a fact is about."""
        if fact.id not in self._nexts:
            found: dict[str, None] = {}
            if (joint := self._joints.get(fact.id)) is not None:
                for name in (*self._names(joint.value, joint), *self._names(joint.subject)):
                    found |= self._by_subject.get(self._spelled(name), {})
            found.pop(fact.id, None)
            self._nexts[fact.id] = tuple(self._facts[i] for i in found)
        return self._nexts[fact.id]

    def _spelled(self, name: str) -> str:
        """The name as facts have it for a subject: itself, or the only one that has all of its words, or
        whose words it has all: “Klara” for “Klara Voss”. "" where there is none.
        """
        if name in self._by_subject or _OF in name:
            return name
        words = set(name.split())
        near = {other for word in words for other in islice(self._longer.get(word, ()), BEAM)}
        found = [one for one in near if (own := set(one.split())) <= words or words <= own]
        is_clear = len(found) == 1 and found[0] != _USER and _OF not in found[0]
        return found[0] if is_clear else ""

    def _names(self, name: str, by: _Joint | None = None, steps: int = 1) -> Iterator[str]:
        """The names of one thing, none for the user; `by` is a fact that has it as its value. In so many
        steps more those follow that are made of other names of what has it.
        """
        if name == _USER:
            return
        yield name
        if (other := self._only(name)) and other != _USER:
            yield other
            name = other
        known = [by] if by else []
        known += [self._joints[i] for i in islice(self._by_value.get(name, ()), WAYS_TO_SAY)]
        for joint in known:
            if self._only(_owned(joint)) != name:
                continue
            yield _owned(joint)
            for subject in self._names(joint.subject, steps=steps - 1) if steps else ():
                yield f"{subject}{_OF}{joint.relation}"

    def _only(self, owned: str, steps: int = STEPS) -> str:
        """The value that a relation of something names; "" unless there is exactly one."""
        values = self._values.get(owned)
        if values is not None:
            return next(iter(values)) if len(values) == 1 else ""
        owner, _, relation = owned.rpartition(_OF)
        other = self._only(owner, steps - 1) if owner and steps else ""
        return self._only(f"{other}{_OF}{relation}", steps - 1) if other else ""


class _Weigher:
    """How much of a question facts say: its words are bits, as many questions are put to each fact."""

    def __init__(self, asked: Mapping[str, float], unknown: float) -> None:
        self._bits = {term: 1 << place for place, term in enumerate(asked)}
        self._weights = {self._bits[term]: weight for term, weight in asked.items()}
        self._known = sum(asked.values()) or 1.0
        self._whole = sum(weight or unknown for weight in asked.values()) or 1.0
        self._said: dict[int, float] = {}
        self._held: dict[str, int] = {}

    def held(self, fact: Fact) -> int:
        """The words of the question that a fact holds."""
        if fact.id not in self._held:
            shared = terms(_said(fact)) & self._bits.keys()
            self._held[fact.id] = sum(self._bits[term] for term in shared)
        return self._held[fact.id]

    def share(self, held: int) -> float:
        """The share that words have of the weight of those that any fact holds."""
        return self._weight(held) / self._known

    def whole_share(self, held: int) -> float:
        """The share that words have of the weight of the whole question."""
        return self._weight(held) / self._whole

    def _weight(self, held: int) -> float:
        if held not in self._said:
            self._said[held] = sum(w for bit, w in self._weights.items() if bit & held)
        return self._said[held]


@lru_cache(maxsize=20_000)
def terms(text: str) -> frozenset[str]:
    """The words of a text by their first letters; of scripts without blanks each pair of letters."""
    found: set[str] = set()
    for word in _WORD.findall(comparable(text)):
        if _RUN.match(word):
            found.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        else:
            found.update(word[:letters] for letters in STEMS)
    return frozenset(found)


def _joint(fact: Fact) -> _Joint | None:
    if fact.triple is None:
        return None
    triple = fact.triple
    relation = _name(triple.relation).removesuffix(_CALLED)
    found = _Joint(_name(triple.subject), relation, _name(triple.value))
    return found if found.subject and found.relation and found.value else None


@lru_cache(maxsize=20_000)
def _name(text: str) -> str:
    """A name in the form in which it is compared."""
    name = comparable(text).replace("s' ", f"s{_OF}")
    return f"{_USER}{_OF}{name.removeprefix(_MY)}" if name.startswith(_MY) else name


def _owned(joint: _Joint) -> str:
    """How a relation of something is spelled as a name."""
    return f"{joint.subject}{_OF}{joint.relation}"


def _said(fact: Fact) -> str:
    return f"{fact.text} {fact.triple.relation}" if fact.triple else fact.text


def _take(counter: Counter[str], keys: Iterable[str]) -> None:
    for key in keys:
        counter[key] -= 1
        if counter[key] <= 0:
            del counter[key]
