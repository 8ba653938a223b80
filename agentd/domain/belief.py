"""What the sayings of a fact come to: fading, standing, promotion and denial."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import prod

from agentd.domain.concept import EpisodeHash, Relation
from agentd.errors import GraphError

HALF_LIFE = timedelta(days=7)
LEAST = 0.01  # what fades below it counts for nothing, and is swept
SURVIVING = 0.1  # above it an episode is evidence enough to be promoted
GROUP = 3  # surviving episodes that are promoted together
FACTS = "facts"  # the source whose own page vouches for what it says
CONSOLIDATION = "consolidation"  # the source of promotions
STANDING = frozenset({FACTS, CONSOLIDATION})  # sources whose episodes do not fade

_SECONDS = HALF_LIFE.total_seconds()


@dataclass(frozen=True, slots=True)
class Trace:
    """An episode with what its weight depends on.

    It was `said` at the time of its context, and fades `since` then or since it was last touched.
    `is_promoted`: a promotion counts it, so that it does not count once more itself.
    """

    relation: Relation
    source: str
    scope: str
    said: datetime
    since: datetime
    is_promoted: bool = False

    @property
    def stands(self) -> bool:
        """Whether it does not fade."""
        return self.source in STANDING

    def effective(self, now: datetime) -> float:
        """Its own confidence as it is at `now`."""
        if self.stands:
            return self.relation.confidence
        return faded(self.relation.confidence, (now - self.since).total_seconds())


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
    try:
        episode, said = EpisodeHash.from_hex(name), datetime.fromisoformat(time)
    except ValueError:
        said = None
    if said is None or said.tzinfo is None:
        raise GraphError(
            f"{ref[:80]!r} names no episode that could have been promoted",
            cure="restore the text of the promotion, or take the promotion out",
        )
    return episode, said


def _noisy_or(confidences: Iterable[float]) -> float:
    # Sorted: a product of floats depends on the order of its factors.
    return 1.0 - prod(sorted(1.0 - confidence for confidence in confidences))
