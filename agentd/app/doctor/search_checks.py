"""Checks of search: that it finds the newest note, and that the chosen embedder works."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from agentd.app.doctor.memory_checks import NoteFiles
from agentd.core.health import Finding
from agentd.core.ports import Clock, Recall
from agentd.core.search import Hit, IndexState, SearchQuery, SearchResult, SearchShortfall, Source
from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import Reader
from agentd.interfaces.commands.status import model_names

_DOCTOR = Reader(SessionKey("doctor"), SessionKind.OWNER)
_NOTES = 5  # newest notes that are tried
_HITS = 5
_NOTE = re.compile(r"memory/\d{4}-\d{2}-\d{2}\.md")
_WORD = re.compile(r"[^\W_]+")
_FEWEST, _MOST = 2, 8  # words of the test query
_TRIES = 8  # searches, a second apart, while the embedder's process starts
_BUSY = frozenset({"indexing", "rebuilding"})


class SearchCheck(Struct, frozen=True):
    """Checks that search finds a note: consecutive words of the newest one serve as query."""

    files: NoteFiles
    recall: Recall
    index: Callable[[], Awaitable[IndexState]]
    code: str = "search"

    async def look(self) -> Finding:
        """Fail if no hit contains the words; warn while the index is being built."""
        state = await self.index()
        if state.state in _BUSY:
            text = f"the index is being built: {state.pending} files are left"
            return Finding.warn(self.code, text, "wait, then run this again")
        entries = await self.files.tree("memory", 1, _DOCTOR)
        notes = sorted((e.path for e in entries if _NOTE.fullmatch(e.path)), reverse=True)[:_NOTES]
        views, _ = await self.files.snapshot(notes, _DOCTOR)
        for path in notes:
            if path in views and (words := _telling(views[path].text)):
                return await self._search_for(path, words)
        return Finding.ok(self.code, "there is no note to look for yet")

    async def _search_for(self, path: str, words: Sequence[str]) -> Finding:
        query = SearchQuery(" ".join(words), limit=_HITS, sources=frozenset({Source.NOTES}))
        found = await self.recall.search(query, _DOCTOR)
        if any(_holds(hit, words) for hit in found.hits):
            return Finding.ok(self.code, f"words of {path} are found")
        why = f" ({found.reason})" if found.reason else ""
        text = f"words of {path} are not found{why}"
        return Finding.fail(self.code, text, "`agentd memory index`")


class EmbedderCheck(Struct, frozen=True):
    """Checks that search by meaning works with the chosen embedder. `chosen` returns
    `{provider, why}`.
    """

    recall: Recall
    index: Callable[[], Awaitable[IndexState]]
    chosen: Callable[[], Mapping[str, str]]
    clock: Clock
    code: str = "meaning"

    async def look(self) -> Finding:
        """Warn if the embedder fails or is too slow, or if chunks still wait for their vectors."""
        choice = self.chosen()
        if choice["provider"] == "none":
            return Finding.ok(self.code, f"words alone are searched: {choice['why']}")
        found = await self._search_patiently()
        if found.reason in {SearchShortfall.EMBEDDER_DOWN, SearchShortfall.EMBEDDER_SLOW}:
            what = "fails" if found.reason == SearchShortfall.EMBEDDER_DOWN else "takes too long"
            text = (
                f"{choice['provider']} {what}, another one or words alone answer: {choice['why']}"
            )
            cure = "see why with `agentd memory status`, and look at [memory_search.embedder]"
            return Finding.warn(self.code, text, cure)
        state = await self.index()
        if state.vectors:
            text = f"{state.vectors} pieces have no vector of {choice['provider']} yet"
            cure = "wait; `agentd memory index` shows how long"
            return Finding.warn(self.code, text, cure)
        told = f"search by meaning: {model_names(state.embedder)}, {choice['why']}"
        return Finding.ok(self.code, told)

    async def _search_patiently(self) -> SearchResult:
        """Search, again while the embedder is too slow: the first search may have started it."""
        query = SearchQuery("memory", limit=1)
        found = await self.recall.search(query, _DOCTOR)
        for _ in range(_TRIES - 1):
            if found.reason != SearchShortfall.EMBEDDER_SLOW:
                break
            await self.clock.sleep(1.0)
            found = await self.recall.search(query, _DOCTOR)
        return found


def _telling(text: str) -> Sequence[str]:
    """Return up to eight consecutive words, the last of the first line with the most words (more
    than eight count as eight); none if no line has two. Headings are left out.
    """
    lines = [_WORD.findall(line) for line in text.split("\n") if not line.startswith("#")]
    best = max(lines, key=lambda words: min(len(words), _MOST), default=[])
    return best[-_MOST:] if len(best) >= _FEWEST else ()


def _holds(hit: Hit, words: Sequence[str]) -> bool:
    return " ".join(words) in " ".join(_WORD.findall(hit.chunk.text))
