"""The graph as a third leg of search: what the things that a query names have to do with is looked for, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import structlog

from agentd.domain.memory import Found, Hit
from agentd.domain.search import SearchQuery
from agentd.domain.turn import Kind
from agentd.domain.workspace import FileView, Reader
from agentd.errors import AgentdError
from agentd.graph.answer import Row
from agentd.graph.desk import GraphDesk
from agentd.ports import Recall
from agentd.ranking.packing import within

FACTS = 5  # around what the query names
SHARE = 0.8  # of its score that a hit of this leg alone keeps: nobody asked for its words
OWNER = "user"  # stands in most facts, so it leads nowhere

_LETTERS = 4  # of a token

log = structlog.get_logger()


class GraphLeg:
    """A Recall by what another one finds. The owner's search is done once more with the names that the
    graph relates to those in the query. What that finds is put in where its score, less a fifth,
    belongs; what was found anyway stays in its order. `max_tokens` is what a search may show that does
    not say.
    """

    def __init__(self, recall: Recall, desk: GraphDesk, max_tokens: int = 0) -> None:
        self._recall = recall
        self._desk = desk
        self._max_tokens = max_tokens

    async def search(self, query: SearchQuery, reader: Reader) -> Found:
        """See Recall."""
        found = await self._recall.search(query, reader)
        if reader.kind is not Kind.MAIN:
            return found
        try:
            more = await self._names(query.text)
        except AgentdError as error:  # words and meaning have found what they have
            log.warning("graph_not_asked", reason=error.reason)
            return found
        if not more:
            return found
        related = await self._recall.search(replace(query, text=f"{query.text} {more}"), reader)
        hits = joined(found.hits, related.hits)
        if len(hits) == len(found.hits):
            return found
        kept = self._fitted(hits, query)
        return Found(kept, "" if kept and not found.hits else found.reason)

    async def read(self, path: str, reader: Reader) -> FileView:
        """See Recall."""
        return await self._recall.read(path, reader)

    async def _names(self, text: str) -> str:
        """What the facts around the names in a text name besides, in words."""
        answer = await self._desk.about(text, FACTS)
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
        asked = text.casefold()
        return " ".join(dict.fromkeys(word for word in words if word not in asked))

    def _fitted(self, hits: Sequence[Hit], query: SearchQuery) -> tuple[Hit, ...]:
        costs = [-(-len(hit.chunk.text.encode(errors="replace")) // _LETTERS) for hit in hits]
        budget = query.max_tokens or self._max_tokens or None
        return tuple(hits[at] for at in within(costs, budget, query.limit))


def joined(found: Sequence[Hit], related: Sequence[Hit]) -> tuple[Hit, ...]:
    """What was found in its order, and between it what only the related names found, with SHARE of its
    score, before the first hit that is below it.
    """
    known = {(hit.chunk.path, line) for hit in found for line in _lines(hit)}
    hits = list(found)
    for hit in related:
        if any((hit.chunk.path, line) in known for line in _lines(hit)):
            continue
        score = hit.score * SHARE
        new = replace(hit, score=score, scores={**hit.scores, "graph": score}, superseded_by="")
        hits.insert(next((at for at, one in enumerate(hits) if one.score < score), len(hits)), new)
    return tuple(hits)


def _leads_over_the_owner(row: Row) -> bool:
    fact = row.fact
    return row.start == OWNER or (row.depth > 1 and OWNER in (fact.subject, fact.object))


def _lines(hit: Hit) -> range:
    return range(hit.chunk.start_line, hit.chunk.end_line + 1)
