"""Search that does not take for the present what facts say is past.

What was once true stays in transcripts and notes. The owner finds it, behind the fact that holds now
and marked with where that stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from agentd.domain.fact import FactStatus
from agentd.domain.memory import OWNER, Found, Hit, Source, audience_of
from agentd.domain.search import SearchQuery
from agentd.domain.turn import Kind, SessionKey
from agentd.domain.workspace import FACTS_PATH, FileView, Reader
from agentd.errors import AgentdError, FileMissing
from agentd.facts.succession import Succession
from agentd.ports import Facts, FactStore, Recall, Workspace
from agentd.ranking.packing import within

_READER = Reader(SessionKey("facts"), Kind.MAIN)
_PATIENCE = 1.0  # seconds that a search waits for facts to be level with their page
_LETTERS = 4  # of a token

log = structlog.get_logger()


class CurrentFirst:
    """A Recall by what another one finds. `max_tokens` is what a search may show that does not say."""

    def __init__(
        self,
        recall: Recall,
        facts: Facts,
        store: FactStore,
        workspace: Workspace,
        max_tokens: int = 0,
        patience: float = _PATIENCE,
    ) -> None:
        self._recall = recall
        self._facts = facts
        self._store = store
        self._workspace = workspace
        self._max_tokens = max_tokens
        self._patience = patience
        self._digest = ""
        self._succession = Succession((), "")

    async def search(self, query: SearchQuery, reader: Reader) -> Found:
        """See Recall. To the owner a hit that repeats a superseded fact names the line of the fact
        that holds, which stands before it.
        """
        found = await self._recall.search(query, reader)
        if not found.hits or audience_of(reader.session, reader.kind) != OWNER:
            return found
        read: Mapping[SessionKey, int] = {}
        try:
            async with asyncio.timeout(self._patience):
                await self._follow()
                if self._succession:
                    read = await self._store.marks()
        except TimeoutError:
            log.info("facts_too_late", seconds=self._patience)
        except AgentdError as error:
            log.warning(
                "facts_not_followed", reason=error.reason
            )  # the search has found what it has
        if not self._succession:
            return found
        adds = query.sources is None or Source.NOTES in query.sources
        marks = {f"sessions/{session}.jsonl": last for session, last in read.items()}
        hits = self._succession.arranged(found.hits, query.text, marks, adds=adds)
        if len(hits) > len(found.hits):
            hits = self._fitted(hits, query)
        return replace(found, hits=hits)

    async def read(self, path: str, reader: Reader) -> FileView:
        """See Recall."""
        return await self._recall.read(path, reader)

    async def _follow(self) -> None:
        """Be level with the facts, if they have changed."""
        facts = await self._facts.all()
        try:
            page = await self._workspace.read_damaged(FACTS_PATH, _READER)
        except FileMissing:
            self._digest, self._succession = "", Succession((), "")
            return
        if page.digest == self._digest:
            return
        past = [fact.id for fact in facts if fact.status is FactStatus.SUPERSEDED]
        seen = await self._store.sightings(past) if past else {}
        rows = {fact_id: [one.origin for one in each] for fact_id, each in seen.items()}
        self._succession = await asyncio.to_thread(Succession, facts, page.text, rows)
        self._digest = page.digest

    def _fitted(self, hits: Sequence[Hit], query: SearchQuery) -> tuple[Hit, ...]:
        costs = [-(-len(hit.chunk.text.encode(errors="replace")) // _LETTERS) for hit in hits]
        budget = query.max_tokens or self._max_tokens or None
        return tuple(hits[at] for at in within(costs, budget, query.limit))
