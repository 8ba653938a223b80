"""What the sayings of facts tell besides how sure it is: how often, since when, and whether it lasts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from agentd.core.evidence import Trace, independent, read_evidence
from agentd.core.graph import FactHash

SEMANTIC, EPISODIC = "semantic", "episodic"


@dataclass(frozen=True, slots=True)
class FactHistory:
    """How a fact came to be known.

    `said` are the independent sayings of it: those of one context, and all of another agent's, counted
    once, and those that faded away after a promotion counted with it; `denied` those against it. `first` and `last` are when. It
    `stands` where something that does not fade says it: then it belongs to semantic memory, else to
    episodic.
    """

    said: int
    denied: int
    promoted: int
    first: datetime
    last: datetime
    stands: bool

    @property
    def memory(self) -> str:
        """Where it is kept."""
        return SEMANTIC if self.stands else EPISODIC


def histories(traces: Iterable[Trace]) -> Mapping[FactHash, FactHistory]:
    """The history of each fact that these are the episodes of. An episode that is there twice counts
    once.
    """
    by_fact: dict[FactHash, list[Trace]] = {}
    for trace in {trace.relation.episode: trace for trace in traces}.values():
        by_fact.setdefault(trace.relation.fact, []).append(trace)
    return {fact: _history(found) for fact, found in by_fact.items()}


def _history(traces: list[Trace]) -> FactHistory:
    times = [at for trace in traces for at in _times(trace)]
    counting = independent(traces, lambda trace: trace.weight)
    return FactHistory(
        said=sum(_count(trace) for trace in counting if not trace.relation.denied),
        denied=sum(_count(trace) for trace in counting if trace.relation.denied),
        promoted=sum(one.observations for one in traces if one.is_promotion),
        first=min(times),
        last=max(times),
        stands=any(trace.stands and not trace.relation.denied for trace in traces),
    )


def _count(trace: Trace) -> int:
    """How many sayings it adds: its promotion counts what was promoted."""
    return trace.observations - trace.is_promoted


def _times(trace: Trace) -> list[datetime]:
    if not trace.is_promotion:
        return [trace.said]
    return [trace.said, *(read_evidence(ref)[1] for ref in trace.relation.refs)]
