"""The tool `memory_search`: searches notes and past conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentd.core.ports import Recall, ToolHost
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.search import Chunk, EmptyReason, Hit, SearchQuery, SearchShortfall, Source
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.workspace import Reader
from agentd.interfaces.tools.fence import in_backticks, lines_heading, places_output

_CHARS = 1_500  # shown of one hit
_LIMIT = 5
_SHORT = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "queries": {"type": "array", "items": {"type": "string"}},
        "limit": {"type": "integer"},
    },
    "required": ["query"],
}
_SCHEMA = {
    **_SHORT,
    "additionalProperties": False,
    "properties": {
        "query": {"type": "string"},
        "queries": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
        "limit": {"type": "integer", "minimum": 1, "maximum": 20},
        "recencyBoost": {"type": "boolean"},
        "halfLifeDays": {"type": "number", "minimum": 0.01},
        "max_tokens": {"type": "integer", "minimum": 1},
        "sources": {
            "type": "array",
            "items": {"enum": [str(source) for source in Source]},
        },
    },
}
_SPEC = ToolSpec(
    "memory_search",
    "Search notes and chats. queries: 3 other wordings, as notes may say it.",
    _SCHEMA,
    Effect.READ_ONLY,
    "search",
    short_schema=_SHORT,
)
EMPTY: Mapping[str, str] = {
    EmptyReason.NOTHING_INDEXED: "No notes or conversations are indexed yet.",
    EmptyReason.EMPTY_QUERY: "The query has no words to search for.",
    EmptyReason.NO_MATCH: "Nothing matches. Try other words.",
    EmptyReason.BELOW_THRESHOLD: "Nothing matches well enough. Try other words.",
    EmptyReason.NOTHING_FITS: "Nothing that was found seems to answer. Try other words.",
    EmptyReason.BUDGET: "Something matches, but it is longer than max_tokens.",
    EmptyReason.SCOPE: "These sources cannot be searched from this session.",
    SearchShortfall.INDEXING: "Nothing matches so far, but the index is still being built.",
    SearchShortfall.WARMING: (
        "No word of it stands anywhere; search by meaning is still being loaded."
    ),
    SearchShortfall.VECTORS_MISSING: (
        "Nothing matches so far, but not all is ready for search by meaning."
    ),
    SearchShortfall.EMBEDDER_DOWN: (
        "No word of it stands anywhere; search by meaning is out of order."
    ),
    SearchShortfall.EMBEDDER_SLOW: (
        "No word of it stands anywhere; search by meaning took too long."
    ),
}
DEGRADED: Mapping[str, str] = {
    EmptyReason.BUDGET: "The best of what matches is longer than max_tokens and is left out.",
    SearchShortfall.INDEXING: "The index is still being built.",
    SearchShortfall.WARMING: "Found by words alone; search by meaning is still being loaded.",
    SearchShortfall.VECTORS_MISSING: "Not all is ready for search by meaning yet.",
    SearchShortfall.EMBEDDER_DOWN: (
        "The best search by meaning is out of order: try the words that may stand there."
    ),
    SearchShortfall.EMBEDDER_SLOW: "The best search by meaning took too long and was left out.",
}


class MemorySearch:
    """Searches what this kind of session may find."""

    spec = _SPEC

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return the hits in backticks, the best first; if there are none, the reason in words and
        as a code.
        """
        found = await self._recall.search(_query(call.input), Reader(call.session, call.kind))
        if not found.hits or found.reason == EmptyReason.NOTHING_FITS:
            reason = found.reason or EmptyReason.NO_MATCH
            return ToolOutput(f"{EMPTY.get(reason, EMPTY[EmptyReason.NO_MATCH])} [{reason}]")
        note = f"\n[{DEGRADED[found.reason]}]" if found.reason in DEGRADED else ""
        outside = [await self._is_outside(hit.chunk) for hit in found.hits]
        text = "\n".join(map(_as_text, found.hits)) + note
        places = (name for hit in found.hits for name in (hit.chunk.path, hit.newer) if name)
        return await places_output(self._recall, text, places, outside=any(outside))

    async def _is_outside(self, chunk: Chunk) -> bool:
        return await self._recall.is_outside(
            chunk.path, chunk.start_line, chunk.end_line, chunk.text
        )


def _query(given: Mapping[str, Any]) -> SearchQuery:
    """Return the query that the model asks for; omitted options are left to the configuration."""
    sources, days = given.get("sources"), given.get("halfLifeDays")
    return SearchQuery(
        str(given["query"]),
        limit=int(given.get("limit", _LIMIT)),
        sources=frozenset(map(Source, sources)) if sources else None,
        max_tokens=given.get("max_tokens"),
        recency=given.get("recencyBoost"),
        half_life_days=None if days is None else float(days),
        queries=tuple(map(str, given.get("queries", ()))),
        waits=False,  # a turn does not wait for the index
    )


def _as_text(hit: Hit) -> str:
    chunk = hit.chunk
    told = f"{chunk.date.isoformat()}, {chunk.source}" if chunk.date else str(chunk.source)
    if hit.newer:
        told += f"; older, see {hit.newer}"
    text = chunk.text if len(chunk.text) <= _CHARS else f"{chunk.text[:_CHARS]} […]"
    return (
        f"{lines_heading(chunk.path, chunk.start_line, chunk.end_line)} "
        f"({told})\n{in_backticks(text)}"
    )
