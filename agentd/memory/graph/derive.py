"""Derives the graph's content from facts and their evidence: names for the same thing, and
episodes. Pure.

Each time a fact was said is an episode. The first one does not fade, since the page of facts
vouches for it; the others fade, reinforce it meanwhile, and are promoted if they are many. A
replaced or ended fact is history: its episodes stay, and an episode that denies it says since when
it no longer holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from agentd.core.errors import GraphError
from agentd.core.evidence import ENDED, FACTS, SAID
from agentd.core.fact import Evidence, Fact, FactStatus, Triple
from agentd.core.graph import EpisodeHash, Record
from agentd.zero.compiler import record_of
from agentd.zero.hashes import context_hash, episode_hash, fact_hash
from agentd.zero.naming import Aliases, normal_label, normal_predicate
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple

OWNER = "user"
OWNER_TOO = {"me": OWNER, "myself": OWNER}  # how the owner refers to himself

_OF = "'s-"  # joins an owner and a relation
_OWN = ("my-", f"the-{OWNER}{_OF}")  # prefixes of names of something that the owner has
# Suffixes of relations such as ("user", "dog name", "Rex").
_NAMED = ("'s-name", "-name")
_ROUNDS = 4  # rounds of deriving names from other names


class Names:
    """The names that are valid while these triples hold. `own` is the owner's table, which has
    precedence.

    While the user's only sister is Klara, "sister", "my sister", "the user's sister" and "sister
    Klara" are names of Klara, in whatever language the relation is; and while Klara's employer is
    Bosch, "my sister's employer" is a name of Bosch. No word of any language is built in except
    `user`, the possessive `'s`, and the words in which triples are written.
    """

    def __init__(self, own: Aliases, triples: Iterable[Triple] = ()) -> None:
        self._own = dict(own.table)
        self._one: Mapping[tuple[str, str], str] = {}  # relations with a single value
        self._bare: Mapping[str, str] = {}  # names without an owner
        fit = [one for one in map(_labels_or_none, triples) if one is not None]
        for _ in range(_ROUNDS):
            before = self._one
            self._learn(fit)
            if self._one == before:
                break

    def resolve(self, name: str) -> str:
        """Return the normal label that a name stands for; a bare "sister" means the owner's. Raises
        GraphError for an invalid label.
        """
        return self._whom(normal_label(name))

    def triple(self, triple: Triple) -> Triple:
        """Return the triple in normal labels, about the thing it concerns: the user's "sister's
        employer" becomes Klara's employer. In a value "sister" is an ordinary word. Raises
        GraphError for invalid labels.
        """
        return self._triple_of(_labels(triple))

    def _triple_of(self, said: _Written) -> Triple:
        about, relation = self._whom(said.subject), said.relation
        head, possessive, last = f"{about}{_OF}{said.has}".rpartition(_OF)
        if possessive and (holder := self._owned(head)) != head:
            about, relation = holder, normal_predicate(last)
        return Triple(about, relation, self._what(said.value))

    def _whom(self, label: str) -> str:
        found = self._what(label)
        return self._aliased(self._bare.get(found, found))

    def _what(self, label: str) -> str:
        label = self._aliased(label)
        for start in _OWN:
            if label.startswith(start):
                label = f"{OWNER}{_OF}{label.removeprefix(start)}"
        return self._aliased(self._owned(label))

    def _aliased(self, label: str) -> str:
        return self._own.get(label, label)

    def _owned(self, label: str) -> str:
        """Return what "klara's employer" refers to, resolved from the front; the label itself if
        that is unknown.
        """
        holder, possessive, rest = label.partition(_OF)
        if not possessive:
            return label
        has = self._aliased(self._bare.get(holder, holder))
        if (OWNER, spoken := label.replace(_OF, "-")) in self._one:
            return self._one[OWNER, spoken]
        while rest:
            for whole in (rest, rest.replace(_OF, "-")):  # "sister's employer" or "sister employer"
                if (has, whole) in self._one:
                    return self._one[has, whole]
            relation, _, rest = rest.partition(_OF)
            if (has, relation) not in self._one:
                return label
            has = self._one[has, relation]
        return has

    def _learn(self, triples: Iterable[_Written]) -> None:
        values: dict[tuple[str, str], set[str]] = {}
        for said in triples:
            told = self._triple_of(said)
            for name in _relations(told.relation.replace("_", "-")):
                values.setdefault((told.subject, name), set()).add(told.value)
        one = {key: next(iter(found)) for key, found in values.items() if len(found) == 1}
        self._one = {key: value for key, value in one.items() if value != key[0]}
        bare: dict[str, str] = {}
        for (subject, relation), value in self._one.items():
            if subject == OWNER:
                bare[relation] = value
                bare[f"{relation}-{value}"] = value
        self._bare = bare


class _Written(NamedTuple):
    """A triple in normal labels; `has` is the relation as a label."""

    subject: str
    relation: str
    has: str
    value: str


def _labels(triple: Triple) -> _Written:
    """Normalise a triple. Raises GraphError."""
    subject, value = normal_label(triple.subject), normal_label(triple.value)
    return _Written(
        subject, normal_predicate(triple.relation), normal_label(triple.relation), value
    )


def _labels_or_none(triple: Triple) -> _Written | None:
    try:
        return _labels(triple)
    except GraphError:
        return None  # not valid labels, so it names nothing


def _relations(relation: str) -> Iterable[str]:
    """Yield the relation, and the relation without a name suffix: "dog" for "dog name"."""
    yield relation
    for ending in _NAMED:
        if relation.endswith(ending) and relation != ending:
            yield relation.removesuffix(ending)
            return


SCOPE = "main"  # facts are visible only in the owner's sessions

_LITERAL = Aliases({})
_SAYING = frozenset({FactStatus.ACTIVE, FactStatus.SUPERSEDED, FactStatus.ENDED})


class DerivedEpisode(Struct, frozen=True):
    """An episode derived from facts: facts that say the same at the same time and place share one.
    Its confidence is the highest of theirs, and `refs` are their ids.
    """

    triple: Triple  # in resolved labels
    at: datetime
    source: str
    session: str
    confidence: float
    refs: tuple[str, ...]

    @property
    def is_denial(self) -> bool:
        """Whether it says that the fact no longer holds."""
        return self.source == ENDED

    def joined(self, other: DerivedEpisode) -> DerivedEpisode:
        """Merge two sayings of the same episode."""
        refs = tuple(sorted({*self.refs, *other.refs}))
        sure = max(self.confidence, other.confidence)
        return DerivedEpisode(self.triple, self.at, self.source, self.session, sure, refs)

    def record(self) -> Record:
        """Compile the saying to a record."""
        said = self.triple.subject, self.triple.relation, self.triple.value
        one = SemanticTuple(*said, self.confidence, denied=self.is_denial, refs=self.refs)
        context = ContextMeta(self.at, self.source, SCOPE, session=self.session)
        return record_of(CompilerInput((one,), context), _LITERAL)


class Derived(Struct, frozen=True):
    """The graph's content from facts, under these names. `holding` are the facts that hold now, by
    id, with their triples in these names; `unfit` are ids of facts whose words are not valid
    labels.
    """

    sayings: Mapping[EpisodeHash, DerivedEpisode]
    names: Names
    holding: Mapping[str, tuple[Fact, Triple]]
    unfit: tuple[str, ...] = ()


def derive(
    facts: Iterable[Fact], evidence: Mapping[str, Sequence[Evidence]], own: Aliases
) -> Derived:
    """Derive the episodes of all facts with a triple, except forgotten and proposed ones. `own` is
    the owner's table of aliases.
    """
    known = [one for one in facts if one.status in _SAYING and one.triple is not None]
    names = Names(own, (one.triple for one in known if one.is_active and one.triple is not None))
    found: dict[EpisodeHash, DerivedEpisode] = {}
    holding: dict[str, tuple[Fact, Triple]] = {}
    past: list[tuple[Fact, Triple]] = []
    unfit: list[str] = []
    for fact in known:
        try:
            assert fact.triple is not None
            triple = names.triple(fact.triple)
            for saying in _sayings(fact, triple, evidence.get(fact.id, ())):
                _put(found, saying)
        except GraphError:
            unfit.append(fact.id)
            continue
        if fact.is_active:
            holding[fact.id] = (fact, triple)
        else:
            past.append((fact, triple))
    believed = {triple for _, triple in holding.values()}
    for fact, triple in past:
        if triple not in believed:
            at = fact.valid_to or fact.noted_at
            _put(found, DerivedEpisode(triple, at, ENDED, "", 1.0, (fact.id,)))
    return Derived(found, names, holding, tuple(unfit))


def _sayings(fact: Fact, triple: Triple, evidence: Sequence[Evidence]) -> Iterator[DerivedEpisode]:
    told = sorted((one.at, one.session) for one in evidence if not one.is_context)
    times = list(dict.fromkeys(told)) or [(fact.valid_from, fact.origin.session)]
    for number, (at, session) in enumerate(times):
        source = SAID if number else FACTS
        yield DerivedEpisode(triple, at, source, session, fact.confidence, (fact.id,))


def _put(found: dict[EpisodeHash, DerivedEpisode], saying: DerivedEpisode) -> None:
    name = _episode(saying)
    known = found.get(name)
    found[name] = known.joined(saying) if known else saying


def _episode(saying: DerivedEpisode) -> EpisodeHash:
    """Return the episode hash, as the compiler computes it."""
    triple = saying.triple
    said = fact_hash(triple.subject, triple.relation, triple.value)
    return episode_hash(said, context_hash(saying.at, saying.source, SCOPE, "", saying.session))
