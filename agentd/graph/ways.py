"""The ways of recall: what is reached from where a question begins, and what that is worth."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agentd.domain.concept import ConceptHash
from agentd.graph.activation import spread
from agentd.graph.adjacency import View
from agentd.graph.found import Scores
from agentd.graph.importance import Importance, rank
from agentd.graph.path import Limits, Path, Way
from agentd.graph.traversal import Traversal, best_paths, fewest_hops
from agentd.ports import Walk


@dataclass(frozen=True, slots=True)
class Reached:
    """The facts that were walked, and the scores that the way gives: the importance along its paths,
    or activation.
    """

    by: Way
    traversal: Traversal
    scores: Scores

    def ranked(self, now: datetime) -> Sequence[tuple[Path, float]]:
        """The path to each concept that was reached, with its score: the highest first, BY breadth the
        fewest facts before that.
        """
        if self.by is Way.ACTIVATION:
            return [(path, self.scores.score(path)) for path in self.traversal.reached]
        scored = [(one.path, one.score) for one in rank(self.traversal, now)]
        return sorted(scored, key=lambda one: one[0].depth) if self.by is Way.BREADTH else scored


def reach(
    seeds: Sequence[ConceptHash],
    by: Way,
    depth: int,
    limits: Limits,
    view: View,
    now: datetime,
    *,
    preferred: Collection[str] = (),
) -> Walk[Reached]:
    """What is at most `depth` facts away from seeds, scored at this time. `preferred` are predicates
    that the question is about (Adjacency). Raises ValueError for a depth that the way does not go.
    """
    if by is Way.ACTIVATION:
        if not 1 <= depth <= by.most:
            raise ValueError(f"activation spreads for 1 to {by.most} rounds, not {depth}")
        spreading = yield from spread(seeds, limits, view, rounds=depth, preferred=preferred)
        return Reached(by, spreading.traversal, spreading)
    walk = fewest_hops if by is Way.BREADTH else best_paths
    limits = replace(limits, depth=depth)
    traversal = yield from walk(seeds, limits, view, preferred=preferred)
    return Reached(by, traversal, Importance(traversal, now))
