"""`_agentd/memory/*`: the owner's own hand in the workspace, so nothing here asks for approval."""

from __future__ import annotations

import re
from typing import Any, Protocol

from pydantic import Field

from agentd.domain.memory import IndexState, Source
from agentd.domain.tool import FileAction
from agentd.domain.turn import MAIN, Kind
from agentd.domain.workspace import Reader
from agentd.errors import FileMissing, InvalidRequest
from agentd.ports import Recall, Workspace
from agentd.server.methods.params import NoParams, Params, handler
from agentd.server.methods.status import index_json
from agentd.server.peer import Handler

# As the index counts them: other line separators of Unicode are ordinary characters.
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_OWNER = Reader(MAIN, Kind.MAIN)
_LONGEST_PAGE = 400_000  # characters of a file in one answer
_TARGETS = {"memory": "MEMORY.md", "heartbeat": "HEARTBEAT.md", "bootstrap": "BOOTSTRAP.md"}


class Indexing(Protocol):
    """What keeps the index true to the files."""

    async def rebuild(self) -> None:
        """Begin again from nothing."""

    async def wait_idle(self) -> None:
        """Return when nothing is pending."""

    async def state(self) -> IndexState:
        """How far it is."""


class SearchParams(Params):
    """A search."""

    query: str
    limit: int = Field(5, ge=1, le=100)
    sources: list[str] | None = None


class ReadParams(Params):
    """A file, or `lines` lines of it from line `from` on."""

    path: str
    from_line: int = Field(1, ge=1, alias="from")
    lines: int | None = Field(None, ge=1)


class WriteParams(Params):
    """Text for a file. `target` is memory, daily_log, heartbeat, bootstrap or a path. With
    `old_string` that text is replaced by `new_string`, and `content` does not count.
    """

    content: str = ""
    target: str = "daily_log"
    append: bool = True
    old_string: str | None = None
    new_string: str | None = None
    replace_all: bool = False


class TreeParams(Params):
    """A listing."""

    path: str = ""
    depth: int = Field(1, ge=1, le=20)


class MemoryMethods:
    """The workspace and what is found in it."""

    def __init__(self, workspace: Workspace, recall: Recall, index: Indexing) -> None:
        self._workspace = workspace
        self._recall = recall
        self._index = index

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/memory/search": handler(SearchParams, self._search),
            "_agentd/memory/read": handler(ReadParams, self._read),
            "_agentd/memory/write": handler(WriteParams, self._write),
            "_agentd/memory/tree": handler(TreeParams, self._tree),
            "_agentd/memory/index": handler(NoParams, self._rebuild),
            "_agentd/memory/status": handler(NoParams, self._status),
        }

    async def _search(self, params: SearchParams) -> dict[str, Any]:
        known = None
        if params.sources is not None:
            known = frozenset(source for source in Source if source in params.sources)
        found = await self._recall.search(params.query, Kind.MAIN, params.limit, known)
        return {"results": [hit.as_json() for hit in found.hits], "reason": found.reason}

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
        workspace = self._workspace
        path = workspace.canonical(self._path(params.target))
        action = FileAction.WRITE
        async with workspace.lock(path):
            if params.old_string is not None:
                text = await self._replaced(path, params.old_string, params)
            elif params.append:
                action = FileAction.APPEND
                text = await self._as_lines(path, params.content)
            else:
                text = params.content
            intent = await workspace.plan(path, action, text.encode())
            await workspace.apply(intent, _OWNER)
        size = len(intent.data)
        words = f"{size} bytes {'added to' if action is FileAction.APPEND else 'written to'} {path}"
        return {"path": path, "bytes": size, "digest": intent.after, "text": words}

    async def _replaced(self, path: str, old: str, params: WriteParams) -> str:
        """The file with the replacement made. Raises InvalidRequest unless the place is clear."""
        before = (await self._workspace.read(path, _OWNER)).text
        count = before.count(old) if old else 0
        if count == 0:
            raise InvalidRequest(f"old_string: does not stand in {path}")
        if count > 1 and not params.replace_all:
            raise InvalidRequest(
                f"old_string: stands {count} times in {path}",
                cure="give more of the text around it, or replace all",
            )
        return before.replace(old, params.new_string or "")

    async def _as_lines(self, path: str, text: str) -> str:
        """The text on lines of its own."""
        try:
            before = (await self._workspace.read(path, _OWNER)).text
        except FileMissing:
            before = ""
        head = "\n" if before and not before.endswith("\n") else ""
        return f"{head}{text}" if text.endswith("\n") else f"{head}{text}\n"

    def _path(self, target: str) -> str:
        if target == "daily_log":
            return self._workspace.daily_note()
        return _TARGETS.get(target, target)

    async def _tree(self, params: TreeParams) -> dict[str, Any]:
        entries = await self._workspace.tree(params.path, params.depth, _OWNER)
        return {"entries": [{"path": e.path, "size": e.size, "is_dir": e.is_dir} for e in entries]}

    async def _rebuild(self, params: NoParams) -> dict[str, Any]:
        await self._index.rebuild()
        await self._index.wait_idle()
        return index_json(await self._index.state())

    async def _status(self, params: NoParams) -> dict[str, Any]:
        return {
            **index_json(await self._index.state()),
            "problems": [problem.as_json() for problem in self._workspace.problems()],
        }
