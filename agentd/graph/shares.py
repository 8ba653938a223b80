"""Which facts are shared with whom, and what they say there. Pure.

A fact is shared under a salt of its own, which is a part of what others are told. So what it was told
as is known by a hash that says nothing once the fact is forgotten and the salt with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime

from agentd.domain.belief import SHARED
from agentd.domain.concept import EpisodeHash, Record
from agentd.domain.exchange import Share
from agentd.domain.fact import Triple
from agentd.graph.compiler import record_of
from agentd.graph.hashing import context_hash, episode_hash, fact_hash
from agentd.graph.naming import Aliases
from agentd.graph.tuples import CompilerInput, ContextMeta, SemanticTuple

MOST = 2_000  # facts of one space, and as many that are taken back

_LITERAL = Aliases({})

Name = Callable[[str, str, str], EpisodeHash]  # of a fact's id, a space and a salt


def kept(shares: Iterable[Share]) -> tuple[Share, ...]:
    """Those that are worth keeping: of what is taken back in a space, the newest."""
    found: list[Share] = []
    gone: dict[str, int] = {}
    for share in reversed(tuple(shares)):
        gone[share.space] = gone.get(share.space, 0) + share.is_gone
        if not share.is_gone or gone[share.space] <= MOST:
            found.append(share)
    return tuple(reversed(found))


def told_of(triple: Triple, at: datetime, sure: float, scope: str, agent: str, salt: str) -> Record:
    """What others are told of a fact with this triple, in normal words: an episode of the scope, at the
    time from which it holds.
    """
    said = SemanticTuple(triple.subject, triple.relation, triple.value, sure)
    where = ContextMeta(at, SHARED, scope, agent, salt)
    return record_of(CompilerInput((said,), where), _LITERAL)


def name_of(triple: Triple, at: datetime, scope: str, agent: str, salt: str) -> EpisodeHash:
    """The name of what `told_of` says."""
    said = fact_hash(triple.subject, triple.relation, triple.value)
    return episode_hash(said, context_hash(at, SHARED, scope, agent, salt))


def settled(
    shares: Iterable[Share], holding: Collection[str], name: Name, salt: Callable[[], str]
) -> tuple[Share, ...]:
    """The shares as they are now that these facts hold: what no longer holds is taken back, and what is
    called otherwise by now is taken back and shared anew.
    """
    kept: list[Share] = []
    for share in shares:
        holds = share.fact in holding
        if share.is_gone or (holds and name(share.fact, share.space, share.salt) == share.episode):
            kept.append(share)
            continue
        if share.is_sent:
            kept.append(share.ended())
        if holds:
            anew = salt()
            episode = name(share.fact, share.space, anew)
            kept.append(Share(share.space, episode, share.fact, anew))
    return tuple(kept)
