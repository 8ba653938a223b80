"""The tool `memory_search`: what the notes and past conversations say."""

from __future__ import annotations

from agentd.domain.memory import Hit, Source
from agentd.domain.prompt import Effect, ToolSpec
from agentd.domain.tool import Intent, ToolCall, ToolOutput
from agentd.errors import ToolFailed
from agentd.ports import Gate, Recall
from agentd.tools.fence import fenced, located
from agentd.tools.origin import is_foreign

_CHARS = 1_500  # shown of one hit
_MOST = 20  # hits at once
_SPEC = ToolSpec(
    "memory_search",
    "Search notes and past chats. Use before answering about people, decisions, dates or to-dos.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    Effect.READ_ONLY,
    "search",
)
_REASONS = {
    "nothing_indexed": "No notes or conversations are indexed yet.",
    "no_match": "Nothing matches.",
    "empty_query": "The query has no words to search for.",
    "indexing": "Nothing matches so far, but the index is still being built.",
}


class MemorySearch:
    """Searches what this kind of session may find."""

    spec = _SPEC

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    async def run(self, call: ToolCall, gate: Gate) -> ToolOutput:
        """The hits, fenced, notes first; without any, the reason."""
        limit = min(max(1, int(call.input.get("limit", 5))), _MOST)
        found = await self._recall.search(str(call.input["query"]), call.kind, limit)
        if not found.hits:
            return ToolOutput(_REASONS.get(found.reason, _REASONS["no_match"]))
        hits = sorted(found.hits, key=lambda hit: hit.chunk.source is not Source.NOTES)
        note = "\n[The index is still being built.]" if found.reason == "indexing" else ""
        return ToolOutput(
            "\n".join(map(_shown, hits)) + note,
            tainted=any(is_foreign(hit.chunk.path, hit.chunk.text) for hit in hits),
        )

    async def settle(self, intent: Intent) -> ToolOutput:
        """Never asked for: searching has no effect."""
        raise ToolFailed("a search was cut by a restart", cure="Search again.")


def _shown(hit: Hit) -> str:
    chunk = hit.chunk
    date = f" ({chunk.date.isoformat()})" if chunk.date else ""
    text = chunk.text if len(chunk.text) <= _CHARS else f"{chunk.text[:_CHARS]} […]"
    place = located(chunk.path, chunk.start_line, chunk.end_line)
    return f"{place}{date}\n{fenced(text)}"
