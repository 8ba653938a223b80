"""The messages that agents exchange about their graphs: only shared spaces, checked, and believed
in part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import GraphError
from agentd.core.evidence import CONSOLIDATION, SHARED
from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    EpisodeHash,
    Record,
    Relation,
)
from agentd.zero.delta import (
    Delta,
    apply,
    checkpoint,
    diff,
    read_delta,
    unite_concepts,
    write_delta,
)
from agentd.zero.formats.records import canonical, concepts_told
from agentd.zero.hashes import concept_hash, context_hash, episode_hash, fact_hash
from agentd.zero.naming import normal_label, normal_predicate

SPACE = "space:"  # prefix of shared scopes; all other scopes are private
MAIN = "main"  # the scope that only the owner sees
OWNER = "user"  # each agent's label for its own owner
NOTHING = Record()

_AGENT = re.compile(r"[0-9a-f]{16}")
_SALT = re.compile(r"[0-9a-f]{32}")
_AHEAD = timedelta(days=1)  # how far another clock may be ahead


_Context = Callable[[ConceptContext, str], ConceptContext]


class ShareMessage(Struct, frozen=True):
    """A checked message of another agent: its episodes, and those of its own that it withdraws.
    `sender` is how it names itself, "" if it has no episodes.
    """

    sender: str
    record: Record
    withdrawn: frozenset[EpisodeHash]


def scope_of(space: str) -> str:
    """Return the scope of a space."""
    return f"{SPACE}{space}"


def shared_part(state: Record, scopes: Collection[str]) -> Record:
    """Return the part of a state that may be sent to those who share these spaces.

    It has the episodes said in these scopes, and concepts with only the times and confidence that
    these episodes give. Aliases and refs are left out, because nobody knows any more who said them
    where; promotions too, because each agent makes its own. Raises GraphError for a scope that does
    not begin with `space:`.
    """
    _check_scopes(scopes)
    contexts = {
        one.hash: one
        for one in state.contexts
        if one.scope in scopes and one.source != CONSOLIDATION
    }
    told = [replace(one, refs=()) for one in state.relations if one.context in contexts]
    concepts = concepts_told({one.hash: one for one in state.concepts}, told)
    used = tuple(contexts[digest] for digest in {one.context for one in told})
    return canonical(Record(concepts, used, tuple(told)))


def message(state: Record, scopes: Collection[str], withdrawn: Collection[EpisodeHash] = ()) -> str:
    """Return the message to those who share these spaces, as text: a delta from nothing to the part
    of the state that may be sent, which withdraws the `withdrawn` episodes.

    Raises GraphError as `shared_part` does, and for a state that does not match its hashes.
    """
    told = diff(NOTHING, shared_part(state, scopes))
    return write_delta(replace(told, episodes=tuple(sorted(withdrawn))))


def read_message(text: str, scopes: Collection[str], now: datetime) -> ShareMessage:
    """Parse and check the message of another agent. Raises GraphError for a text that `read_delta`
    refuses, content that `message` would not write for these spaces, times in the future, and a
    delta that does not begin with the empty state or does not end with the state it names.
    """
    _check_scopes(scopes)
    delta = read_delta(text)
    for context in delta.record.contexts:
        _check_context(context, scopes)
        _check_time(context.event_time, now)
    for concept in delta.record.concepts:
        _check_concept(concept)
        _check_time(concept.updated, now)
    for relation in delta.record.relations:
        _check_relation(relation)
        _check_time(relation.created, now)
    agents = {context.agent for context in delta.record.contexts}
    if len(agents) > 1:
        raise _unfit("it speaks for several agents")
    _check_way(delta)
    return ShareMessage("".join(agents), delta.record, frozenset(delta.episodes))


def as_told_by(message: ShareMessage, name: str, trust: float) -> Record:
    """Return the message's episodes as they are stored here: said by `name`, with confidence times
    `trust`, and with the sender's episode hash as ref. The sender's `user` is called `name` here.
    Raises GraphError for a trust outside (0, 1], and for a name that is not a normal label.
    """
    return _rewrite(message.record, name, trust, name, _context_here)


def import_record(record: Record, name: str, trust: float, owner: str = "") -> Record:
    """Return the episodes of a graph text as they are stored here: visible to the owner alone, else
    as in `as_told_by`. Its `user` is called `owner` here, or stays `user`. Raises as `as_told_by`
    does.
    """
    return _rewrite(record, name, trust, owner or OWNER, _context_imported)


def _rewrite(record: Record, name: str, trust: float, owner: str, context: _Context) -> Record:
    if not 0 < trust <= 1:
        raise GraphError(f"the trust {trust} is not above 0 and at most 1", cure="set it between")
    if normal_label(name) != name:
        raise GraphError(f"{name[:40]!r} is no name in normal form", cure="write it as a label")
    contexts = {one.hash: context(one, name) for one in record.contexts}
    labels = {one.hash: owner if one.label == OWNER else one.label for one in record.concepts}
    concepts: dict[ConceptHash, Concept] = {}
    for one in record.concepts:
        label = labels[one.hash]
        here = replace(
            one, hash=concept_hash(label), label=label, confidence=one.confidence * trust
        )
        concepts[here.hash] = unite_concepts(concepts.get(here.hash, here), here)
    said = [_relation_here(one, labels, contexts, trust) for one in record.relations]
    return canonical(Record(tuple(concepts.values()), tuple(contexts.values()), tuple(said)))


def sender_of(context: ConceptContext) -> str:
    """Return how the agent that said this names itself; "" if it is not from another agent."""
    return context.session.partition(":")[0] if context.source == SHARED else ""


def _context_here(context: ConceptContext, name: str) -> ConceptContext:
    session = f"{context.agent}:{context.session}"
    names = context.source, context.scope, name, session
    return ConceptContext(context_hash(context.event_time, *names), context.event_time, *names)


def _context_imported(context: ConceptContext, name: str) -> ConceptContext:
    names = SHARED, MAIN, name, f":{context.hash.hex[:32]}"
    return ConceptContext(context_hash(context.event_time, *names), context.event_time, *names)


def _relation_here(
    one: Relation,
    labels: dict[ConceptHash, str],
    contexts: dict[ContextHash, ConceptContext],
    trust: float,
) -> Relation:
    subject, object_ = labels[one.subject], labels[one.object]
    fact = fact_hash(subject, one.predicate, object_)
    context = contexts[one.context].hash
    ends = concept_hash(subject), one.predicate, concept_hash(object_)
    said = one.confidence * trust, one.created
    return Relation(
        fact,
        episode_hash(fact, context),
        context,
        *ends,
        *said,
        denied=one.denied,
        refs=(one.episode.hex,),
    )


def _check_scopes(scopes: Collection[str]) -> None:
    for scope in scopes:
        if not scope.startswith(SPACE) or scope == SPACE:
            cure = f"name a shared space, such as {SPACE}household"
            raise GraphError(f"the scope {scope[:40]!r} is private", cure=cure)


def _check_context(context: ConceptContext, scopes: Collection[str]) -> None:
    if context.source == CONSOLIDATION:
        raise _unfit("it brings a promotion, which each agent makes for itself")
    if context.scope not in scopes:
        raise _unfit(f"it speaks of {context.scope[:40]!r}, which is not shared here")
    if context.source != SHARED:
        raise _unfit(f"it brings what was read from {context.source[:40]!r}")
    if not (_AGENT.fullmatch(context.agent) and _SALT.fullmatch(context.session)):
        raise _unfit("it does not say which agent it is of")


def _check_time(at: datetime, now: datetime) -> None:
    if at > now + _AHEAD:
        raise _unfit(f"it speaks of the future, {at:%Y-%m-%d}")


def _check_concept(concept: Concept) -> None:
    if concept.aliases:
        raise _unfit(f"it gives {concept.label[:40]!r} other names, which no message may")
    if normal_label(concept.label) != concept.label:
        raise _unfit(f"its label {concept.label[:40]!r} is not in normal form")


def _check_relation(relation: Relation) -> None:
    if relation.refs:
        raise _unfit("it gives a fact refs, which mean nothing here")
    if relation.denied:
        raise _unfit("it denies a fact, which no message may")
    if normal_predicate(relation.predicate) != relation.predicate:
        raise _unfit(f"its predicate {relation.predicate[:40]!r} is not in normal form")


def _check_way(delta: Delta) -> None:
    if delta.base != checkpoint(NOTHING).hash:
        raise _unfit(f"it begins at the state {delta.base.hex[:12]}, and messages at nothing")
    if delta.contexts or delta.concepts:
        raise _unfit("it takes back what is no fact")
    apply(NOTHING, delta)


def _unfit(why: str) -> GraphError:
    return GraphError(f"the message is refused: {why}", cure="ask the sender for another")
