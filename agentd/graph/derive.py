"""What facts and their evidence say to the graph: episodes, each with what vouches for it. Pure.

Each time a fact was said is an episode of its own. The first stands, since the page of facts vouches for
it; the others fade, reinforce it meanwhile, and are promoted where they are many. What was replaced or has
ended is history: its episodes stay, and one that denies it says since when it is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.belief import ENDED, FACTS, SAID
from agentd.domain.concept import EpisodeHash, Record
from agentd.domain.fact import Evidence, Fact, FactStatus, Triple
from agentd.errors import GraphError
from agentd.graph.compiler import record_of
from agentd.graph.hashing import context_hash, episode_hash, fact_hash
from agentd.graph.joining import Names
from agentd.graph.naming import Aliases
from agentd.graph.tuples import CompilerInput, ContextMeta, SemanticTuple

SCOPE = "main"  # facts are the owner's, and seen in his sessions alone

_LITERAL = Aliases({})
_SAYING = frozenset({FactStatus.ACTIVE, FactStatus.SUPERSEDED, FactStatus.ENDED})


@dataclass(frozen=True, slots=True)
class Saying:
    """An episode that facts vouch for: those that say the same thing at the same time and place are
    one. It is as sure as the surest of them, and `refs` are their ids.
    """

    triple: Triple  # in labels that are resolved
    at: datetime
    source: str
    session: str
    confidence: float
    refs: tuple[str, ...]

    @property
    def is_denial(self) -> bool:
        """Whether it says that the fact holds no longer."""
        return self.source == ENDED

    def joined(self, other: Saying) -> Saying:
        """Both, which are the same episode."""
        refs = tuple(sorted({*self.refs, *other.refs}))
        sure = max(self.confidence, other.confidence)
        return Saying(self.triple, self.at, self.source, self.session, sure, refs)

    def record(self) -> Record:
        """It, compiled."""
        said = self.triple.subject, self.triple.relation, self.triple.value
        one = SemanticTuple(*said, self.confidence, denied=self.is_denial, refs=self.refs)
        context = ContextMeta(self.at, self.source, SCOPE, session=self.session)
        return record_of(CompilerInput((one,), context), _LITERAL)


@dataclass(frozen=True, slots=True)
class Derived:
    """What the graph is to hold of the facts, under these names. `holding` are the facts that hold now,
    by id, each with its triple in these names; `unfit` are ids of facts whose words are no labels.
    """

    sayings: Mapping[EpisodeHash, Saying]
    names: Names
    holding: Mapping[str, tuple[Fact, Triple]]
    unfit: tuple[str, ...] = ()


def derived(
    facts: Iterable[Fact], evidence: Mapping[str, Sequence[Evidence]], own: Aliases
) -> Derived:
    """The episodes of all facts with a triple that are neither forgotten nor proposed. `own` is the
    owner's table of aliases.
    """
    known = [one for one in facts if one.status in _SAYING and one.triple is not None]
    names = Names(own, (one.triple for one in known if one.is_active and one.triple is not None))
    found: dict[EpisodeHash, Saying] = {}
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
            _put(found, Saying(triple, at, ENDED, "", 1.0, (fact.id,)))
    return Derived(found, names, holding, tuple(unfit))


def _sayings(fact: Fact, triple: Triple, evidence: Sequence[Evidence]) -> Iterator[Saying]:
    told = sorted((one.at, one.session) for one in evidence if not one.is_context)
    times = list(dict.fromkeys(told)) or [(fact.valid_from, fact.origin.session)]
    for number, (at, session) in enumerate(times):
        source = SAID if number else FACTS
        yield Saying(triple, at, source, session, fact.confidence, (fact.id,))


def _put(found: dict[EpisodeHash, Saying], saying: Saying) -> None:
    name = _episode(saying)
    known = found.get(name)
    found[name] = known.joined(saying) if known else saying


def _episode(saying: Saying) -> EpisodeHash:
    """The name that the compiler gives it."""
    triple = saying.triple
    said = fact_hash(triple.subject, triple.relation, triple.value)
    return episode_hash(said, context_hash(saying.at, saying.source, SCOPE, "", saying.session))
