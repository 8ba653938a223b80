"""Links facts by the names in their triples, and finds the chains of facts a question asks for.
Pure.

“The user's sister is Klara” links to the facts with Klara as subject. While a subject has only one
value of a relation, that relation names the value: “the user's sister”, “my sister” and “Klara” are
the same. No link goes through the user himself, the subject of nearly everything.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import islice
from math import log

from msgspec import Struct

from agentd.core.fact import Fact
from agentd.core.text import UNSPACED
from agentd.memory.facts.known import comparable

STEPS = 3  # links followed from a fact that a question finds
MOST = 500  # facts considered for one question
BEAM = 64  # best ways that are extended at each step
STEMS = (4, 5)  # prefix lengths by which two forms of a word match: probably, surely
KNOWN_LEAST = 200  # rarity is computed as if there were at least this many facts
WAYS_TO_SAY = 8  # relations considered as names of one thing
NAMED = 0.5  # share of the weight of a name's words that a question must contain
NEARNESS = 1.0  # weight of a cosine of 1, where all words of the question weigh 1
STEP = 0.03  # cost of each further fact
MEANT, MEANT_BY_WORDS = 0.4, 0.2  # least relation of a name (and without vectors)
CALLED = 0.15  # bonus for a way that begins with a fact the question names

_USER = "user"
_WORD = re.compile(f"[{UNSPACED}]+|[^\\W_{UNSPACED}]+")
_RUN = re.compile(f"[{UNSPACED}]")
_MY = "my "
_OF = "'s "
_CALLED = " name"  # ends relations such as ("user", "dog name", "Rex")


class FactChain(Struct, frozen=True):
    """A chain of facts, each linked to the one before. `score` is how well they answer together,
    `relation` how closely they relate to the whole question: shared words plus highest cosine,
    0..2.
    """

    facts: tuple[Fact, ...]
    score: float
    relation: float = 0.0


class _Joint(Struct, frozen=True):
    """The linking parts of a fact: subject, relation and value, as normalised names."""

    subject: str
    relation: str
    value: str

    @property
    def handles(self) -> Iterator[str]:
        """The names by which a question can refer to the fact."""
        yield self.relation if self.subject == _USER else self.subject
        yield self.value


class FactLinks:
    """Active facts by the names in them. The cost of a change does not grow with the number of
    facts; that of a question only with the facts that relate to it.
    """

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: dict[str, Fact] = {}
        self._joints: dict[str, _Joint] = {}
        self._by_subject: dict[str, dict[str, None]] = defaultdict(dict)
        # Subjects by each word in them.
        self._longer: dict[str, dict[str, None]] = defaultdict(dict)
        self._by_value: dict[str, dict[str, None]] = defaultdict(dict)
        self._by_handle: dict[str, dict[str, None]] = defaultdict(dict)  # by each word of a handle
        # Values by the name of a subject's relation.
        self._values: dict[str, Counter[str]] = defaultdict(Counter)
        self._holding: Counter[str] = Counter()  # number of facts by term
        self._nexts: dict[str, tuple[Fact, ...]] = {}  # linked facts, computed when first needed
        for fact in facts:
            self.put(fact)

    def __len__(self) -> int:
        return len(self._facts)

    def put(self, fact: Fact) -> None:
        """Add an active fact, or replace the one with its id."""
        self.remove(fact.id)
        self._nexts.clear()
        self._facts[fact.id] = fact
        self._holding.update(terms(_words_of(fact)))
        if (joint := _joint(fact)) is None:
            return
        self._joints[fact.id] = joint
        self._values[_possessive(joint)][joint.value] += 1
        for table, key in self._places(joint):
            table[key][fact.id] = None
        for word in joint.subject.split():
            self._longer[word][joint.subject] = None

    def remove(self, fact_id: str) -> None:
        """Remove the fact, if it is there."""
        if (fact := self._facts.pop(fact_id, None)) is None:
            return
        self._nexts.clear()
        _take(self._holding, terms(_words_of(fact)))
        if (joint := self._joints.pop(fact_id, None)) is None:
            return
        name = _possessive(joint)
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
        """Return the facts that a question names: by subject or value, or for facts about the user
        by relation.
        """
        asked = terms(question)
        found: dict[str, None] = {}
        for term in sorted(asked & self._by_handle.keys(), key=lambda t: len(self._by_handle[t])):
            found.update(islice(self._by_handle[term].items(), most - len(found)))
        return [self._facts[i] for i in found if self._is_named(self._joints[i], asked)]

    def around(self, starts: Iterable[Fact], steps: int = STEPS, most: int = MOST) -> list[Fact]:
        """Return these facts and all that are linked to them in at most `steps` links, nearest
        first.
        """
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
    ) -> list[FactChain]:
        """Return the chains that begin with a fact which the question finds or names, best first.
        They are ranked by the question's words that their facts contain, weighted by rarity, and by
        the facts' cosines with the question (0 if missing). Facts named only by coincidence begin
        no chain.
        """
        called = {fact.id: CALLED for fact in named}
        weigher = _Weigher({term: self._rarity(term) for term in terms(question)}, self._rarest)

        def scored(facts: tuple[Fact, ...], held: int) -> tuple[FactChain, int]:
            near = [cosines.get(fact.id, 0.0) for fact in facts]
            score = weigher.share(held) + called.get(facts[0].id, 0.0) - STEP * (len(facts) - 1)
            relation = weigher.whole_share(held) + max(near)
            return FactChain(facts, score + NEARNESS * sum(near) / len(near), relation), held

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
        """Return the weight of a term: 0 if no fact contains it."""
        held = self._holding[term]
        return log(1 + max(len(self), KNOWN_LEAST) / held) if held else 0.0

    @property
    def _rarest(self) -> float:
        """The weight of a term that no fact contains, where the whole question counts."""
        return log(1 + 2 * max(len(self), KNOWN_LEAST))

    def _next(self, fact: Fact) -> tuple[Fact, ...]:
        """Return the facts linked to a fact."""
        if fact.id not in self._nexts:
            found: dict[str, None] = {}
            if (joint := self._joints.get(fact.id)) is not None:
                for name in (*self._names(joint.value, joint), *self._names(joint.subject)):
                    found |= self._by_subject.get(self._spelled(name), {})
            found.pop(fact.id, None)
            self._nexts[fact.id] = tuple(self._facts[i] for i in found)
        return self._nexts[fact.id]

    def _spelled(self, name: str) -> str:
        """Return the name as it occurs as a subject: itself, or the only subject that contains all
        of its words or whose words it contains: “Klara” for “Klara Voss”. "" if there is none.
        """
        if name in self._by_subject or _OF in name:
            return name
        words = set(name.split())
        near = {other for word in words for other in islice(self._longer.get(word, ()), BEAM)}
        found = [one for one in near if (own := set(one.split())) <= words or words <= own]
        is_clear = len(found) == 1 and found[0] != _USER and _OF not in found[0]
        return found[0] if is_clear else ""

    def _names(self, name: str, by: _Joint | None = None, steps: int = 1) -> Iterator[str]:
        """Yield the names of one thing, none for the user; `by` is a fact with it as value. With
        `steps`, also names composed of other names of its owner.
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
            if self._only(_possessive(joint)) != name:
                continue
            yield _possessive(joint)
            for subject in self._names(joint.subject, steps=steps - 1) if steps else ():
                yield f"{subject}{_OF}{joint.relation}"

    def _only(self, owned: str, steps: int = STEPS) -> str:
        """Return the value that a relation of something names; "" unless there is exactly one."""
        values = self._values.get(owned)
        if values is not None:
            return next(iter(values)) if len(values) == 1 else ""
        owner, _, relation = owned.rpartition(_OF)
        other = self._only(owner, steps - 1) if owner and steps else ""
        return self._only(f"{other}{_OF}{relation}", steps - 1) if other else ""


class _Weigher:
    """Computes how much of a question facts cover. The question's words are bits, because each fact
    is checked against many questions.
    """

    def __init__(self, asked: Mapping[str, float], unknown: float) -> None:
        self._bits = {term: 1 << place for place, term in enumerate(asked)}
        self._weights = {self._bits[term]: weight for term, weight in asked.items()}
        self._known = sum(asked.values()) or 1.0
        self._whole = sum(weight or unknown for weight in asked.values()) or 1.0
        self._said: dict[int, float] = {}
        self._held: dict[str, int] = {}

    def held(self, fact: Fact) -> int:
        """Return the question's words that a fact contains, as bits."""
        if fact.id not in self._held:
            shared = terms(_words_of(fact)) & self._bits.keys()
            self._held[fact.id] = sum(self._bits[term] for term in shared)
        return self._held[fact.id]

    def share(self, held: int) -> float:
        """Return the weight of words as a share of the weight of those that any fact contains."""
        return self._weight(held) / self._known

    def whole_share(self, held: int) -> float:
        """Return the weight of words as a share of the weight of the whole question."""
        return self._weight(held) / self._whole

    def _weight(self, held: int) -> float:
        if held not in self._said:
            self._said[held] = sum(w for bit, w in self._weights.items() if bit & held)
        return self._said[held]


@lru_cache(maxsize=20_000)
def terms(text: str) -> frozenset[str]:
    """Return the prefixes of a text's words; bigrams in scripts without blanks."""
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
    """Return a name in normal form."""
    name = comparable(text).replace("s' ", f"s{_OF}")
    return f"{_USER}{_OF}{name.removeprefix(_MY)}" if name.startswith(_MY) else name


def _possessive(joint: _Joint) -> str:
    """Return the relation of a subject as a name."""
    return f"{joint.subject}{_OF}{joint.relation}"


def _words_of(fact: Fact) -> str:
    return f"{fact.text} {fact.triple.relation}" if fact.triple else fact.text


def _take(counter: Counter[str], keys: Iterable[str]) -> None:
    for key in keys:
        counter[key] -= 1
        if counter[key] <= 0:
            del counter[key]
