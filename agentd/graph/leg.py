"""The graph as a third leg of search: what the things that a query names have to do with is looked for, too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import structlog

from agentd.domain.memory import Found, Hit
from agentd.domain.search import SearchQuery
from agentd.domain.turn import Kind
from agentd.domain.workspace import FileView, Reader
from agentd.errors import AgentdError
from agentd.graph.answer import Row
from agentd.graph.recall import Recollection
from agentd.ports import Recall
from agentd.ranking.packing import within

FACTS = 5  # around what the query names
SHARE = 0.8  # of its score that a hit of this leg alone keeps: nobody asked for its words
OWNER = "user"  # stands in most facts, so it leads nowhere

_LETTERS = 4  # of a token
_WORD = re.compile(r"\w+")

log = structlog.get_logger()


class GraphLeg:
    """A Recall by what another one finds. The owner's search is done once more with the names that the
    graph relates to those in the query. What that finds better is put where its score, less a fifth,
    belongs; all else stays in its order. `max_tokens` is what a search may show that does not say.

    The graph is asked as it stands: to make it level takes longer than to ask it, and what changes it
    makes it level anyway.
    """

    def __init__(self, recall: Recall, graph: Recollection, max_tokens: int = 0) -> None:
        self._recall = recall
        self._graph = graph
        self._max_tokens = max_tokens

    async def search(self, query: SearchQuery, reader: Reader) -> Found:
        """See Recall."""
        found = await self._recall.search(query, reader)
        if reader.kind is not Kind.MAIN:
            return found
        try:
            more = await self._names(query.text)
            if not more:
                return found
            wider = replace(query, text=f"{query.text} {more}")
            related = await self._recall.search(wider, reader)
        except AgentdError as error:  # words and meaning have found what they have
            log.warning("graph_not_followed", reason=error.reason)
            return found
        hits = joined(found.hits, related.hits)
        if hits == found.hits:
            return found
        kept = self._fitted(hits, query)
        return Found(kept, (found if found.hits else related).reason) if kept else found

    async def read(self, path: str, reader: Reader) -> FileView:
        """See Recall."""
        return await self._recall.read(path, reader)

    async def _names(self, text: str) -> str:
        """What the facts around the names in a text name besides, in words."""
        answer = await self._graph.about(text, FACTS)
        rows = [row for row in answer.rows if not _leads_over_the_owner(row)]
        names = (
            name
            for row in rows
            for name in (row.fact.predicate, row.fact.subject, row.fact.object)
            if name != OWNER
        )
        words = (
            word for name in names for word in name.replace("-", " ").replace("_", " ").split()
        )
        asked = set(_WORD.findall(text.casefold()))
        return " ".join(dict.fromkeys(word for word in words if word not in asked))

    def _fitted(self, hits: Sequence[Hit], query: SearchQuery) -> tuple[Hit, ...]:
        costs = [-(-len(hit.chunk.text.encode(errors="replace")) // _LETTERS) for hit in hits]
        budget = query.max_tokens or self._max_tokens or None
        return tuple(hits[at] for at in within(costs, budget, query.limit))


def joined(found: Sequence[Hit], related: Sequence[Hit]) -> tuple[Hit, ...]:
    """What was found in its order, and between it what the related names found better, with SHARE of
    its score, before the first hit that is below it.
    """
    hits = list(found)
    for one in related:
        score = one.score * SHARE
        known = next((hit for hit in hits if _overlap(hit, one)), None)
        if known is not None and known.score >= score:
            continue
        if known is not None:
            hits.remove(known)
        place = next((at for at, hit in enumerate(hits) if hit.score < score), len(hits))
        told = replace(known or one, score=score, scores={**one.scores, "graph": score})
        hits.insert(place, told if known else replace(told, superseded_by=""))
    return tuple(hits)


def _overlap(one: Hit, other: Hit) -> bool:
    a, b = one.chunk, other.chunk
    return a.path == b.path and a.start_line <= b.end_line and b.start_line <= a.end_line


def _leads_over_the_owner(row: Row) -> bool:
    fact = row.fact
    return row.start == OWNER or (row.depth > 1 and OWNER in (fact.subject, fact.object))
