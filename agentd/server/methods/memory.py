"""`_agentd/memory/*`: the owner's own hand in the workspace, so nothing here asks for approval."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from pydantic import Field

from agentd.domain.health import Problem
from agentd.domain.memory import IndexState, Source
from agentd.domain.search import Fusion, SearchQuery
from agentd.domain.suspicion import Suspicion
from agentd.domain.tool import FileAction, FileIntent
from agentd.domain.turn import MAIN, Kind
from agentd.domain.workspace import TARGETS, Reader
from agentd.errors import FileMissing, FileUnreadable, InvalidRequest
from agentd.ports import Recall, Workspace
from agentd.screening.scanner import scan_change
from agentd.server.methods.params import NoParams, Params, handler
from agentd.server.methods.status import index_json
from agentd.server.peer import Handler

# As the index counts them: other line separators of Unicode are ordinary characters.
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_OWNER = Reader(MAIN, Kind.MAIN)
_LONGEST_PAGE = 400_000  # characters of a file in one answer


class Indexing(Protocol):
    """What keeps the index true to the files."""

    async def rebuild(self, *, vectors: bool = True) -> None:
        """Begin again from nothing; return when vectors are there too, or before."""

    async def wait_idle(self) -> None:
        """Return when nothing is pending."""

    async def state(self) -> IndexState:
        """How far it is."""


class SearchParams(Params):
    """A search. What is left out is as configured in `[memory_search]`."""

    query: str
    queries: list[str] = Field([], max_length=5)
    limit: int = Field(5, ge=1, le=100)
    sources: list[Literal["notes", "sessions"]] | None = Field(None, min_length=1)
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    min_score: float | None = Field(None, ge=0, le=1)
    recency: bool | None = None
    half_life_days: float | None = Field(None, ge=0.01, le=100_000)
    fusion: Literal["structured", "weighted", "rrf"] | None = None


class ReadParams(Params):
    """A file, or `lines` lines of it from line `from` on."""

    path: str
    from_line: int = Field(1, ge=1, alias="from")
    lines: int | None = Field(None, ge=1)


class WriteParams(Params):
    """Text for a file. `target` is memory, daily_log, heartbeat, bootstrap or a path. With
    `old_string` that text is replaced by `new_string`, and `content` does not count. `dry_run` only
    tells what would come of it.
    """

    content: str = ""
    target: str = "daily_log"
    append: bool = True
    old_string: str | None = None
    new_string: str | None = None
    replace_all: bool = False
    dry_run: bool = False


class TreeParams(Params):
    """A listing."""

    path: str = ""
    depth: int = Field(1, ge=1, le=20)


class IndexParams(Params):
    """Begin the index again; or, instead, export the model of the vectors to ONNX. With `words` the
    answer comes before the vectors are made.
    """

    export_onnx: bool = False
    words: bool = False


class MemoryMethods:
    """The workspace and what is found in it."""

    def __init__(
        self,
        workspace: Workspace,
        recall: Recall,
        index: Indexing,
        export: Callable[[], Awaitable[dict[str, Any]]],
        embedder: Callable[[], Mapping[str, str]] = dict,
        problems: Callable[[], Sequence[Problem]] = tuple,
    ) -> None:
        """`export` makes a quicker form of the embedder's model, and says what it made; `embedder`
        answers `{provider, why}`, and `problems` are those of the index and what it is made from.
        """
        self._workspace = workspace
        self._recall = recall
        self._index = index
        self._export = export
        self._embedder = embedder
        self._problems = problems

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/memory/search": handler(SearchParams, self._search),
            "_agentd/memory/read": handler(ReadParams, self._read),
            "_agentd/memory/write": handler(WriteParams, self._write),
            "_agentd/memory/tree": handler(TreeParams, self._tree),
            "_agentd/memory/index": handler(IndexParams, self._rebuild),
            "_agentd/memory/status": handler(NoParams, self._status),
        }

    async def _search(self, params: SearchParams) -> dict[str, Any]:
        known = None
        if params.sources is not None:
            known = frozenset(map(Source, params.sources))
        query = SearchQuery(
            params.query,
            limit=params.limit,
            sources=known,
            max_tokens=params.max_tokens,
            min_score=params.min_score,
            recency=params.recency,
            half_life_days=params.half_life_days,
            fusion=None if params.fusion is None else Fusion(params.fusion),
            queries=tuple(params.queries),
        )
        return (await self._recall.search(query, _OWNER)).as_json()

    async def _read(self, params: ReadParams) -> dict[str, Any]:
        """`next` is the line to go on from when the answer was cut, else None."""
        view = await self._recall.read(params.path, _OWNER)
        lines = _LINES.findall(view.text)
        start = params.from_line - 1
        wanted = lines[start:] if params.lines is None else lines[start : start + params.lines]
        shown: list[str] = []
        size = 0
        for line in wanted:
            size += len(line)
            if shown and size > _LONGEST_PAGE:
                break
            shown.append(line)
        return {
            "path": view.path,
            "text": "".join(shown),
            "from": params.from_line,
            "lines": len(shown),
            "total_lines": len(lines),
            "next": params.from_line + len(shown) if len(shown) < len(wanted) else None,
            "digest": view.digest,
        }

    async def _write(self, params: WriteParams) -> dict[str, Any]:
        _check(params)
        workspace = self._workspace
        path = workspace.canonical(self._path(params.target))
        action = FileAction.WRITE
        async with workspace.lock(path):
            if params.old_string is not None:
                text = await self._replaced(path, params.old_string, params)
            elif params.append:
                action = FileAction.APPEND
                text = params.content.removesuffix("\n") + "\n"
            else:
                text = params.content
            intent = await workspace.plan(path, action, text.encode())
            warnings = await self._screened(path, intent)
            if not params.dry_run:
                await workspace.apply(intent, _OWNER)
        size = len(intent.data)
        done = "added to" if action is FileAction.APPEND else "written to"
        words = f"{size} bytes {'would be ' if params.dry_run else ''}{done} {path}"
        return {
            "path": path,
            "bytes": size,
            "digest": intent.after,
            "text": words,
            "warnings": [suspicion.as_json() for suspicion in warnings],
        }

    async def _screened(self, path: str, intent: FileIntent) -> tuple[Suspicion, ...]:
        """What of it looks like an attack where prompts carry the file: the owner is warned, and
        writes what he wants.
        """
        if not self._workspace.is_injected(path):
            return ()
        try:
            before = (await self._workspace.read(path, _OWNER)).text
        except (FileMissing, FileUnreadable):
            before = ""
        after = intent.data.decode()
        if intent.action is FileAction.APPEND:
            after = before + after
        return await asyncio.to_thread(scan_change, before, after)

    async def _replaced(self, path: str, old: str, params: WriteParams) -> str:
        """The file with the replacement made. Raises InvalidRequest unless the place is clear."""
        before = (await self._workspace.read(path, _OWNER)).text
        count = before.count(old) if old else 0
        if count == 0:
            raise InvalidRequest(
                f"old_string: does not stand in {path}",
                cure="read the file, and give its very words",
            )
        if count > 1 and not params.replace_all:
            raise InvalidRequest(
                f"old_string: stands {count} times in {path}",
                cure="give more of the text around it, or replace all",
            )
        return before.replace(old, params.new_string or "")

    def _path(self, target: str) -> str:
        if target == "daily_log":
            return self._workspace.daily_note()
        return TARGETS.get(target, target)

    async def _tree(self, params: TreeParams) -> dict[str, Any]:
        entries = await self._workspace.tree(params.path, params.depth, _OWNER)
        return {"entries": [{"path": e.path, "size": e.size, "is_dir": e.is_dir} for e in entries]}

    async def _rebuild(self, params: IndexParams) -> dict[str, Any]:
        if params.export_onnx:
            made = await self._export()
            return {**index_json(await self._index.state()), "exported": made}
        await self._index.rebuild(vectors=not params.words)
        await self._index.wait_idle()
        return index_json(await self._index.state())

    async def _status(self, params: NoParams) -> dict[str, Any]:
        return {
            **index_json(await self._index.state()),
            **self._embedder(),
            "problems": [problem.as_json() for problem in self._problems()],
        }


def _check(params: WriteParams) -> None:
    """Raises InvalidRequest for a write that would do nothing, or not all that was asked."""
    if params.old_string is not None:
        return
    if params.new_string is not None or params.replace_all:
        raise InvalidRequest(
            "old_string: is missing, and nothing else says what to replace",
            cure="give the text that is to be replaced",
        )
    if params.append and not params.content:
        raise InvalidRequest("content: is empty", cure="say what to add")
