"""What agents tell each other of their graphs: shared spaces alone, checked, and believed in part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from agentd.domain.belief import CONSOLIDATION
from agentd.domain.concept import (
    Concept,
    ConceptHash,
    Context,
    EpisodeHash,
    Inserted,
    Record,
    Relation,
)
from agentd.errors import GraphError
from agentd.graph.delta import diff, merged
from agentd.graph.formats.changes import read_delta, write_delta
from agentd.graph.formats.integrity import canonical
from agentd.graph.naming import normal_label, normal_predicate
from agentd.ports import GraphStore

SPACE = "space:"  # begins the scope of what is shared; any other scope is private
NOTHING = Record()


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of a message: what was added, and how many episodes were withdrawn."""

    inserted: Inserted
    withdrawn: int


def shared(state: Record, spaces: Collection[str]) -> Record:
    """What of a state may be told to those who share these spaces.

    These are the episodes said in them, and of concepts what these episodes tell: times and confidence
    are theirs. Aliases and refs stay here, because nobody knows any more who said them where, and so
    do promotions, which each agent makes for itself. Raises GraphError for a space that is none: its
    scope does not begin with `space:`.
    """
    _check_spaces(spaces)
    contexts = {
        one.hash: one
        for one in state.contexts
        if one.scope in spaces and one.source != CONSOLIDATION
    }
    told = [replace(one, refs=()) for one in state.relations if one.context in contexts]
    said: dict[ConceptHash, list[Relation]] = {}
    for relation in told:
        for end in {relation.subject, relation.object}:
            said.setdefault(end, []).append(relation)
    return canonical(
        Record(
            tuple(_as_told(one, said[one.hash]) for one in state.concepts if one.hash in said),
            tuple(contexts[digest] for digest in {one.context for one in told}),
            tuple(told),
        )
    )


def message(
    state: Record,
    spaces: Collection[str],
    *,
    since: Record = NOTHING,
    withdrawn: Collection[EpisodeHash] = (),
) -> str:
    """What to tell those who share these spaces, who know the state `since` already: a delta as text.
    Of what is there no longer, only the `withdrawn` episodes are taken back: what has faded here may
    well be remembered elsewhere.

    Raises GraphError as `shared` does, and for states that are not what their hashes say.
    """
    known = shared(since, spaces)
    kept = tuple(one for one in known.relations if one.episode not in withdrawn)
    left = shared(replace(known, relations=kept), spaces)
    return write_delta(diff(known, merged([shared(state, spaces), left])))


async def take(
    store: GraphStore, text: str, *, sender: str, trust: float, spaces: Collection[str]
) -> Taken:
    """Learn what another agent tells, in confidence times `trust`. What is known here already keeps its
    confidence, so a message that comes twice, or one's own word come back, changes nothing. Of what the
    sender takes back, only what it said itself in these spaces goes.

    Additions are one transaction and withdrawals another: after a failure between them, take the message
    again. Raises GraphError, and leaves the store as it is, for a text that `read_delta` refuses, for
    one with anything that `shared` would not tell, for labels and predicates that are not in normal
    form, and for a trust outside (0, 1].
    """
    if not 0 < trust <= 1:
        raise GraphError(f"the trust {trust} is not above 0 and at most 1", cure="set it between")
    _check_spaces(spaces)
    delta = read_delta(text)
    _check_message(delta.record, spaces)
    inserted = await store.insert([discounted(delta.record, trust)])
    gone = await _withdrawable(store, frozenset(delta.episodes), sender, spaces)
    return Taken(inserted, await store.remove(gone) if gone else 0)


def discounted(record: Record, trust: float) -> Record:
    """The record with every confidence times `trust`."""
    return replace(
        record,
        concepts=tuple(replace(one, confidence=one.confidence * trust) for one in record.concepts),
        relations=tuple(
            replace(one, confidence=one.confidence * trust) for one in record.relations
        ),
    )


def _as_told(concept: Concept, said: Sequence[Relation]) -> Concept:
    times = [one.created for one in said]
    surest = max(one.confidence for one in said)
    return Concept(concept.hash, concept.label, surest, min(times), max(times))


def _check_spaces(spaces: Collection[str]) -> None:
    for space in spaces:
        if not space.startswith(SPACE) or space == SPACE:
            cure = f"name a shared space, such as {SPACE}household"
            raise GraphError(f"the scope {space[:40]!r} is private", cure=cure)


def _check_message(record: Record, spaces: Collection[str]) -> None:
    for context in record.contexts:
        if context.source == CONSOLIDATION:
            raise _unfit("it brings a promotion, which each agent makes for itself")
        if context.scope not in spaces:
            raise _unfit(
                f"it speaks of {context.scope[:40]!r}, which is not shared with its sender"
            )
    for concept in record.concepts:
        if concept.aliases:
            raise _unfit(f"it gives {concept.label[:40]!r} other names, which no message may")
        if normal_label(concept.label) != concept.label:
            raise _unfit(f"its label {concept.label[:40]!r} is not in normal form")
    for relation in record.relations:
        if relation.refs:
            raise _unfit("it gives a fact refs, which mean nothing here")
        if normal_predicate(relation.predicate) != relation.predicate:
            raise _unfit(f"its predicate {relation.predicate[:40]!r} is not in normal form")


def _unfit(why: str) -> GraphError:
    return GraphError(f"the message is refused: {why}", cure="ask the sender for another")


async def _withdrawable(
    store: GraphStore, gone: Collection[EpisodeHash], sender: str, spaces: Collection[str]
) -> Sequence[EpisodeHash]:
    if not gone:
        return ()
    here = [one for one in await store.episodes() if one.episode in gone]
    contexts = await store.contexts(sorted({one.context for one in here}))
    return [one.episode for one in here if _is_own(contexts[one.context], sender, spaces)]


def _is_own(context: Context, sender: str, spaces: Collection[str]) -> bool:
    return bool(sender) and context.agent == sender and context.scope in spaces
