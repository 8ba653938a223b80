"""What upkeep would do to facts: all of them looked at together, by the rule of the judge. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from agentd.domain.fact import Category, Fact, FactSource, Neighbour, Refusal, Statement
from agentd.facts.findings import STALE, Findings
from agentd.facts.judge import Bands, Judgement, judge
from agentd.facts.known import Known
from agentd.ranking.facts import DAILY, OLDEST, importance
from agentd.ranking.pairs import neighbours
from agentd.statements.claims import triple_of

MOST_COMPARED = 10_000  # facts, the newest, that are compared with all by meaning
_NEAR = 8
_AT_FLOOR = timedelta(days=math.log(OLDEST) / math.log(DAILY))  # the age from which it lies there
_AGEING = frozenset({Category.PROJECT, Category.DECISION, Category.OUTCOME})
_LEFT = 0.9  # of the cap, after an eviction


def review(
    facts: Iterable[Fact],
    vectors: Mapping[str, bytes],
    limits: Bands,
    repeated: Collection[str],
    now: datetime,
    most: int,
) -> Findings:
    """Active facts, judged the oldest first as if they were said once more.

    `vectors` are those of one model, for which `limits` are the bands; `repeated` are the ids of old
    facts that were said more than once; `most` facts may be active. 10,000 facts take some seconds.
    """
    in_order = sorted(facts, key=_age)
    found = Findings(checked=len(in_order))
    newest = [fact.id for fact in in_order[-MOST_COMPARED:]]
    held = {fact.id: vectors[fact.id] for fact in in_order if fact.id in vectors}
    near = neighbours(held, newest, limits.related, _NEAR)
    kept = Known()
    for fact in in_order:
        _replay(fact, kept, near.get(fact.id, ()), limits, found)
    standing = list(kept)
    again = {*repeated, *found.duplicates.values()}
    found.stale = [f.id for f in standing if _is_old(f, now) and f.id not in again]
    gone = frozenset(found.stale)
    found.evicted = _evicted([f for f in standing if f.id not in gone], now, most)
    return found


def _replay(
    fact: Fact, kept: Known, near: Sequence[tuple[str, float]], limits: Bands, found: Findings
) -> None:
    """Judge the fact beside those before it, and keep it, or keep it in their place."""
    triple = fact.triple or triple_of(fact.text)
    said = Statement(
        fact.text, fact.category, fact.source, fact.valid_from, fact.origin, triple, fact.confidence
    )
    there = [Neighbour(other, cos) for i, cos in near if (other := kept.get(i)) is not None]
    related = kept.related(said)
    judged = judge(said, related, there, _is_not_buried, limits)
    if judged.reason is Refusal.AUTHORITY:
        found.conflicts[fact.id] = _stronger(said, related, there, limits, kept)
        return
    if judged.kind == "refused":
        kept.put(fact)
        return
    same = kept.get(judged.duplicate_of)
    if same is not None and _worth(same) <= _worth(fact):
        found.duplicates[fact.id] = same.id
        return
    if same is not None:
        found.duplicates[same.id] = fact.id
        kept.restore(same.id, None)
    for old in judged.supersedes:
        found.conflicts[old] = fact.id
        kept.restore(old, None)
    kept.put(replace(fact, triple=triple))


def _stronger(
    said: Statement, related: Sequence[Fact], near: Sequence[Neighbour], limits: Bands, kept: Known
) -> str:
    """The fact of higher authority that the statement contradicts."""
    equal: Judgement = judge(
        replace(said, source=FactSource.EXPLICIT), related, near, _is_not_buried, limits
    )
    rivals = [fact for i in equal.supersedes if (fact := kept.get(i)) is not None]
    return max(rivals, key=lambda fact: (fact.source.authority, fact.valid_from)).id


def _is_old(fact: Fact, now: datetime) -> bool:
    """Whether it was read out of a conversation, and age has left nothing of it for long. What one is
    and likes does not age; what one works on does.
    """
    if fact.source is not FactSource.EXTRACTED or fact.category not in _AGEING:
        return False
    return now - fact.valid_from >= _AT_FLOOR + STALE


def _evicted(facts: Sequence[Fact], now: datetime, most: int) -> list[str]:
    """Those that go so that 90 % of the cap are left; what the user said himself goes last."""
    if len(facts) <= most:
        return []
    count = len(facts) - math.floor(_LEFT * most)
    in_order = sorted(
        facts, key=lambda fact: (fact.source.authority, importance(fact, now), *_age(fact))
    )
    return [fact.id for fact in in_order[:count]]


def _age(fact: Fact) -> tuple[datetime, datetime, str]:
    return (fact.valid_from, fact.noted_at, fact.id)


def _worth(fact: Fact) -> tuple[object, ...]:
    """Of two that say the same, the lesser one stays."""
    return (-fact.source.authority, -fact.confidence, *_age(fact))


def _is_not_buried(_: Statement) -> bool:
    return False
