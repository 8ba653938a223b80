"""What the sayings of a fact come to: fading, standing, promotion and denial."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from agentd.core.errors import GraphError
from agentd.core.graph import EpisodeHash, Record, Relation

HALF_LIFE = timedelta(days=7)
LEAST = 0.01  # what fades below it counts for nothing, and is swept
SURVIVING = 0.1  # above it an episode is evidence enough to be promoted
GROUP = 3  # surviving episodes that are promoted together
FACTS = "facts"  # the source of what the page of facts vouches for
SAID = "said"  # the source of what the owner said of a fact once more
ENDED = "ended"  # the source of what says that a fact holds no longer
CONSOLIDATION = "consolidation"  # the source of promotions
SHARED = "shared"  # the source of what another agent says: it takes back what no longer holds
STANDING = frozenset({FACTS, ENDED, CONSOLIDATION, SHARED})  # sources whose episodes do not fade
OWN = frozenset({FACTS, SAID, ENDED, CONSOLIDATION})  # sources of what nobody but the owner says
_SECONDS = HALF_LIFE.total_seconds()
_Said = TypeVar("_Said")


@dataclass(frozen=True, slots=True)
class Trace:
    """An episode with what its weight depends on.

    It was `said` at the time of its context, and fades `since` then or since it was last touched.
    `is_promoted`: a promotion counts it, so that it does not count once more itself. `teller` is the
    other agent that says it, "" where none does.
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
        """Whether it does not fade."""
        return self.source in STANDING

    @property
    def is_promotion(self) -> bool:
        """Whether it counts other episodes."""
        return self.source == CONSOLIDATION

    @property
    def weight(self) -> Weight:
        """See `independent`."""
        said = self.relation
        return Weight(self.teller, said.denied, self.is_promoted, said.confidence)

    @property
    def observations(self) -> int:
        """How many sayings it counts: of a promotion, those it was made of."""
        return max(1, len(self.relation.refs)) if self.is_promotion else 1

    def effective(self, now: datetime) -> float:
        """Its own confidence as it is at `now`."""
        if self.stands:
            return self.relation.confidence
        return faded(self.relation.confidence, (now - self.since).total_seconds())


class Weight(NamedTuple):
    """What of an episode decides whether it counts beside others of its fact."""

    teller: str
    denied: bool
    is_promoted: bool
    confidence: float


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What a consolidation did: how many facts it promoted, then how many episodes it swept."""

    promoted: int
    swept: int
    at: datetime


def faded(confidence: float, seconds: float) -> float:
    """`confidence · 2^(−seconds / 7 days)`, 0 where that is below 0.01. What lies in the future, or
    behind a clock that was put back, has not begun to fade.
    """
    left = confidence if seconds <= 0 else confidence * 0.5 ** (seconds / _SECONDS)
    return left if left >= LEAST else 0.0


def independent(said: Iterable[_Said], weight: Callable[[_Said], Weight]) -> list[_Said]:
    """Of the episodes of one fact those that count: of what another agent says, in whichever spaces and
    however often, the surest alone, for the fact and against it. One that a promotion counts stands
    for all of its teller's.
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
    """The other agent that says what has this source; "" where none does."""
    return agent if source == SHARED else ""


def belief(support: Iterable[float], denial: Iterable[float] = ()) -> float:
    """The confidence in what independent observations say, in [0, 1] and whatever their order:
    `p · (1 − q)`, with `p` and `q` the noisy-OR `1 − Π(1 − c)` (Pearl, 1988) of those for and
    against it.
    """
    return _noisy_or(support) * (1.0 - _noisy_or(denial))


def evidence(episode: EpisodeHash, said: datetime) -> str:
    """How a promotion names in its `refs` an episode that it counts."""
    return f"{episode.hex}@{said.isoformat()}"


def read_evidence(ref: str) -> tuple[EpisodeHash, datetime]:
    """The episode that `evidence` named, and when it was said. Raises GraphError."""
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
    """Raises GraphError for a time without a zone, a confidence outside [0, 1], half a surrogate pair,
    a relation to what is not in the record, and a promotion of what is no episode.
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
    if not 0.0 <= confidence <= 1.0:  # nor NaN
        raise GraphError(f"the confidence of {of} is {confidence}, not between 0 and 1")


def _noisy_or(confidences: Iterable[float]) -> float:
    together = 0.0
    for confidence in sorted(confidences):  # floats: the order would show in the last digit
        together += confidence * (1.0 - together)
    return together
