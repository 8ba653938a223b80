"""Which facts are shared with whom, as `memory/graph/shared.txt` keeps it, and what they say there. Pure.

A fact is shared under a salt of its own, which is a part of what others are told. So what it was told
as is known by a hash that says nothing once the fact is forgotten and the salt with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from agentd.domain.belief import SHARED
from agentd.domain.concept import EpisodeHash, Record
from agentd.domain.fact import Fact
from agentd.domain.workspace import SHARED_PATH
from agentd.errors import GraphError
from agentd.graph.compiler import record_of
from agentd.graph.hashing import context_hash, episode_hash, fact_hash
from agentd.graph.naming import Aliases, normal_predicate
from agentd.graph.tuples import CompilerInput, ContextMeta, SemanticTuple

MOST = 2_000  # facts of one space, and as many that are taken back

_HEADER = "# Which facts are shared in which space. agentd keeps this: use `agentd facts share`.\n"
_LINE = re.compile(
    r"(?P<space>[a-z0-9-]{1,40}) (?:(?P<fact>[0-9a-f]{1,64}) (?P<salt>[0-9a-f]{32})|gone)"
    r" (?P<episode>[0-9a-f]{64}) (?P<sent>sent|new)"
)

Name = Callable[[str, str, str], EpisodeHash]  # of a fact's id, a space and a salt


@dataclass(frozen=True, slots=True)
class Share:
    """A fact that is shared in a space, as this episode. `is_sent`: a message said it. Without `fact`
    it is taken back.
    """

    space: str
    episode: EpisodeHash
    fact: str = ""
    salt: str = ""
    is_sent: bool = False

    @property
    def is_gone(self) -> bool:
        """Whether it is taken back."""
        return not self.fact

    def ended(self) -> Share:
        """It, taken back; no message has said so yet."""
        return Share(self.space, self.episode)

    def __str__(self) -> str:
        what = f"{self.fact} {self.salt}" if self.fact else "gone"
        return f"{self.space} {what} {self.episode} {'sent' if self.is_sent else 'new'}"


def parse(text: str) -> tuple[Share, ...]:
    """The shares of the file. Raises GraphError, with the line, for what `written` would not write."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        said = _LINE.fullmatch(line)
        if said is None:
            raise GraphError(
                f"{SHARED_PATH} cannot be read: it says of no fact that it is shared",
                cure="take the line out, or put the file back from a backup",
                line=number,
            )
        found.append(
            Share(
                said["space"],
                EpisodeHash.from_hex(said["episode"]),
                said["fact"] or "",
                said["salt"] or "",
                said["sent"] == "sent",
            )
        )
    return tuple(found)


def written(shares: Iterable[Share]) -> str:
    """The file; of what is taken back in a space, the newest."""
    kept: list[Share] = []
    gone: dict[str, int] = {}
    for share in reversed(tuple(shares)):
        gone[share.space] = gone.get(share.space, 0) + share.is_gone
        if not share.is_gone or gone[share.space] <= MOST:
            kept.append(share)
    return _HEADER + "".join(f"{share}\n" for share in reversed(kept)) if kept else ""


def told_of(fact: Fact, scope: str, agent: str, salt: str, aliases: Aliases) -> Record:
    """What others are told of the fact: an episode of the scope, at the time from which it holds. Raises
    GraphError for words that are no labels.
    """
    assert fact.triple is not None
    said = fact.triple.subject, fact.triple.relation, fact.triple.value
    where = ContextMeta(fact.valid_from, SHARED, scope, agent, salt)
    return record_of(CompilerInput((SemanticTuple(*said, fact.confidence),), where), aliases)


def name_of(fact: Fact, scope: str, agent: str, salt: str, aliases: Aliases) -> EpisodeHash:
    """The name of what `told_of` says. Raises GraphError as it does."""
    assert fact.triple is not None
    ends = aliases.resolve(fact.triple.subject), aliases.resolve(fact.triple.value)
    said = fact_hash(ends[0], normal_predicate(fact.triple.relation), ends[1])
    return episode_hash(said, context_hash(fact.valid_from, SHARED, scope, agent, salt))


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
