"""What facts say to the graph: those that hold and have a triple, each as an episode of its own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentd.domain.belief import FACTS
from agentd.domain.concept import EpisodeHash
from agentd.domain.fact import Fact
from agentd.errors import GraphError
from agentd.graph.hashing import context_hash, episode_hash, fact_hash
from agentd.graph.naming import Aliases, normal_label, normal_predicate
from agentd.graph.tuples import CompilerInput, ContextMeta, SemanticTuple

_NAME = " name"  # ends the relation of those whose name is known
SCOPE = "main"  # facts are the owner's, and seen in his sessions alone


@dataclass(frozen=True, slots=True)
class Saying:
    """An episode that facts vouch for: those that say the same thing of the same moment are one. It is
    as sure as the surest of them, and `refs` are their ids.
    """

    facts: tuple[Fact, ...]

    @property
    def confidence(self) -> float:
        """Of the episode."""
        return max(fact.confidence for fact in self.facts)

    @property
    def refs(self) -> tuple[str, ...]:
        """The ids of its facts, sorted."""
        return tuple(sorted(fact.id for fact in self.facts))

    def source(self) -> CompilerInput:
        """It, for the compiler."""
        return CompilerInput(tuple(map(_statement, self.facts)), _context(self.facts[0]))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the graph is to hold of the facts, under these names. `unfit` are ids of facts whose words
    are no labels.
    """

    sayings: Mapping[EpisodeHash, Saying]
    aliases: Aliases
    unfit: tuple[str, ...] = ()


def wanted(facts: Iterable[Fact], aliases: Aliases) -> Wanted:
    """The episodes of the facts that hold now and have a triple. What has none says nothing here, and
    what no longer holds is left out. While it holds that the user's sister is called Klara, "sister
    Klara" is another name of Klara's.
    """
    holding = [fact for fact in facts if fact.is_active and fact.triple is not None]
    aliases = _with_kin(holding, aliases)
    found: dict[EpisodeHash, list[Fact]] = {}
    unfit: list[str] = []
    for fact in holding:
        try:
            found.setdefault(_episode(fact, aliases), []).append(fact)
        except GraphError:
            unfit.append(fact.id)
    sayings = {name: Saying(tuple(said)) for name, said in found.items()}
    return Wanted(sayings, aliases, tuple(unfit))


def _with_kin(facts: Iterable[Fact], aliases: Aliases) -> Aliases:
    """The table with the names that facts give: what the owner wrote into it himself wins."""
    table = dict(aliases.table)
    for fact in facts:
        triple = fact.triple
        if triple is None or triple.subject != "user" or not triple.relation.endswith(_NAME):
            continue
        try:
            full = normal_label(f"{triple.relation.removesuffix(_NAME)} {triple.value}")
            table.setdefault(full, normal_label(triple.value))
        except GraphError:
            continue  # it is no label anyway
    try:
        return Aliases(table)
    except GraphError:  # the owner's own names lead back to these
        return aliases


def _episode(fact: Fact, aliases: Aliases) -> EpisodeHash:
    """The name that the compiler gives it."""
    said, context = _statement(fact), _context(fact)
    subject, object_ = aliases.resolve(said.subject), aliases.resolve(said.object)
    named = fact_hash(subject, normal_predicate(said.predicate), object_)
    return episode_hash(
        named,
        context_hash(
            context.event_time, context.source, context.scope, context.agent, context.session
        ),
    )


def _statement(fact: Fact) -> SemanticTuple:
    triple = fact.triple
    assert triple is not None
    return SemanticTuple(
        triple.subject, triple.relation, triple.value, fact.confidence, refs=(fact.id,)
    )


def _context(fact: Fact) -> ContextMeta:
    return ContextMeta(fact.valid_from, FACTS, SCOPE)
