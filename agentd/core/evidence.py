"""How the episodes of a fact add up to a confidence: fading, promotion, denial, independent
tellers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from msgspec import Struct

from agentd.core.errors import GraphError
from agentd.core.graph import EpisodeHash, Record, Relation

HALF_LIFE = timedelta(days=7)
LEAST = 0.01  # an episode that has faded below this counts for nothing and is swept
SURVIVING = 0.1  # an episode above this may be promoted
GROUP = 3  # number of surviving episodes that make a promotion
FACTS = "facts"  # source of episodes from `memory/facts.md`
SAID = "said"  # source of episodes in which the owner repeated a fact
ENDED = "ended"  # source of episodes that end a fact
CONSOLIDATION = "consolidation"  # source of promotions
SHARED = "shared"  # source of what another agent says, and takes back when it no longer holds
STANDING = frozenset({FACTS, ENDED, CONSOLIDATION, SHARED})  # sources whose episodes do not fade
OWN = frozenset({FACTS, SAID, ENDED, CONSOLIDATION})  # sources of the owner's own episodes
_SECONDS = HALF_LIFE.total_seconds()
_Said = TypeVar("_Said")


class Trace(Struct, frozen=True):
    """An episode with everything that its weight depends on.

    `said` is the time of its context; it fades from `since` on, which is that time or the last
    touch. `is_promoted`: a promotion counts it, so it does not count again by itself. `teller` is
    the other agent that says it, "" if none does.
    """

    relation: Relation
    source: str
    scope: str
    said: datetime
    since: datetime
    is_promoted: bool = False
    teller: str = ""

    @property
    def stands(self) -> bool:
        """Whether the episode does not fade."""
        return self.source in STANDING

    @property
    def is_promotion(self) -> bool:
        """Whether the episode is a promotion, which counts other episodes."""
        return self.source == CONSOLIDATION

    @property
    def weight(self) -> Weight:
        """The values by which `independent` chooses."""
        said = self.relation
        return Weight(self.teller, said.denied, self.is_promoted, said.confidence)

    @property
    def observations(self) -> int:
        """How many sayings the episode counts: for a promotion, the number of episodes it was made
        of, else 1.
        """
        return max(1, len(self.relation.refs)) if self.is_promotion else 1

    def effective(self, now: datetime) -> float:
        """Return the episode's own confidence at `now`, faded."""
        if self.stands:
            return self.relation.confidence
        return faded_confidence(self.relation.confidence, (now - self.since).total_seconds())


class Weight(NamedTuple):
    """The values by which `independent` decides whether an episode counts."""

    teller: str
    denied: bool
    is_promoted: bool
    confidence: float


class Consolidated(Struct, frozen=True):
    """The result of a consolidation: how many facts it promoted, how many episodes it swept."""

    promoted: int
    swept: int
    at: datetime


def faded_confidence(confidence: float, seconds: float) -> float:
    """Return `confidence · 2^(−seconds / 7 days)`, or 0 if that is below 0.01. Negative `seconds`
    (a time in the future, or a clock that was put back) mean no fading yet.
    """
    left = confidence if seconds <= 0 else confidence * 0.5 ** (seconds / _SECONDS)
    return left if left >= LEAST else 0.0


def independent(said: Iterable[_Said], weight: Callable[[_Said], Weight]) -> list[_Said]:
    """Return the episodes of one fact that count as independent evidence: all that have no teller,
    and for each other agent its surest episode for the fact and its surest against it, in whichever
    spaces and however often it says so. A promoted episode of an agent takes precedence over all
    others of that agent.
    """
    own: list[_Said] = []
    surest: dict[tuple[str, bool], tuple[tuple[bool, float], _Said]] = {}
    for one in said:
        teller, denied, is_promoted, confidence = weight(one)
        if not teller:
            own.append(one)
            continue
        worth = is_promoted, confidence
        if (teller, denied) not in surest or worth > surest[teller, denied][0]:
            surest[teller, denied] = worth, one
    return own + [one for _, one in surest.values()]


def teller_of(source: str, agent: str) -> str:
    """Return the other agent that says an episode of this source; "" if none does."""
    return agent if source == SHARED else ""


def belief(support: Iterable[float], denial: Iterable[float] = ()) -> float:
    """Return the confidence, in [0, 1], that independent observations give, whatever their order:
    `p · (1 − q)`, where `p` and `q` are the noisy-OR `1 − Π(1 − c)` (Pearl, 1988) of the
    confidences for and against.
    """
    return _noisy_or(support) * (1.0 - _noisy_or(denial))


def evidence(episode: EpisodeHash, said: datetime) -> str:
    """Return the reference by which a promotion's `refs` name an episode it counts: `HASH@TIME`."""
    return f"{episode.hex}@{said.isoformat()}"


def read_evidence(ref: str) -> tuple[EpisodeHash, datetime]:
    """Parse a reference made by `evidence`: the episode and when it was said. Raises GraphError."""
    name, _, time = ref.partition("@")
    wrong = GraphError(
        f"{ref[:80]!r} names no episode that could have been promoted",
        cure="restore the text of the promotion, or take the promotion out",
    )
    try:
        episode, said = EpisodeHash.from_hex(name), datetime.fromisoformat(time)
    except ValueError:
        raise wrong from None
    if said.tzinfo is None:
        raise wrong
    return episode, said


def check(record: Record) -> None:
    """Raise GraphError for a time without a zone, a confidence outside [0, 1], an unpaired
    surrogate, a relation to something the record does not hold, or a promotion whose refs name no
    episode.
    """
    sources = {context.hash: context.source for context in record.contexts}
    concepts = {concept.hash for concept in record.concepts}
    times = [context.event_time for context in record.contexts]
    texts = [t for c in record.contexts for t in (c.source, c.scope, c.agent, c.session)]
    for concept in record.concepts:
        _check_confidence(concept.confidence, f"the concept {concept.label[:80]!r}")
        times += (concept.created, concept.updated)
        texts += (concept.label, *concept.aliases)
    for relation in record.relations:
        _check_confidence(relation.confidence, f"the episode {relation.episode}")
        times.append(relation.created)
        texts += (relation.predicate, *relation.refs)
        ends_are_there = relation.subject in concepts and relation.object in concepts
        if relation.context not in sources or not ends_are_there:
            raise GraphError(f"the episode {relation.episode} names what its record does not hold")
        if sources[relation.context] == CONSOLIDATION:
            for ref in relation.refs:
                read_evidence(ref)
    for time in times:
        if time.tzinfo is None:
            raise GraphError(f"the time {time.isoformat()} has no zone", cure="give it one: UTC")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise GraphError(
            "a text of the record holds half a character", cure="write it again"
        ) from None


def _check_confidence(confidence: float, of: str) -> None:
    if not 0.0 <= confidence <= 1.0:  # NaN fails this, too
        raise GraphError(f"the confidence of {of} is {confidence}, not between 0 and 1")


def _noisy_or(confidences: Iterable[float]) -> float:
    together = 0.0
    for confidence in sorted(confidences):  # sorted, so that rounding does not depend on the order
        together += confidence * (1.0 - together)
    return together
