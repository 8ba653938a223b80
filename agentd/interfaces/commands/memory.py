"""`memory`: the owner's own hand in the workspace, so nothing here asks for approval."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from agentd.core.errors import FileMissing, FileUnreadable, InvalidRequest
from agentd.core.screening.scanner import scan_change
from agentd.core.search import Fusion, Hit, SearchQuery, Source
from agentd.core.tool import FileAction
from agentd.core.turn import MAIN, SessionKind
from agentd.core.workspace import GRAPH_FOLDER, TARGETS, Reader, require_note
from agentd.interfaces.commands import fact_words
from agentd.interfaces.commands.declaration import NOTES, Group, Param, require_argument
from agentd.interfaces.commands.facts import ERASING_SECONDS
from agentd.interfaces.commands.plain import fields

if TYPE_CHECKING:
    from agentd.core.fact import ErasureReport
    from agentd.core.health import Problem
    from agentd.core.ports import Recall, Workspace
    from agentd.core.screening.scanner import Suspicion
    from agentd.core.search import IndexState
    from agentd.core.tool import FileIntent
    from agentd.core.turn import SessionKey

IN_NOTES = Group("memory")

_OWNER = Reader(MAIN, SessionKind.OWNER)
_MOST = 20


class NoteLineFinder:
    """Finds the lines of notes that contain a text, for `/forget` when no fact matches. No model is
    called.
    """

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    @IN_NOTES.slash("forget", "Name the lines of notes that hold a text", "a text", owners=NOTES)
    async def forget_typed(self, session: SessionKey, text: str) -> str:
        """Return which lines of the notes contain the text. Raises InvalidRequest for an empty
        text.
        """
        return await self.named(require_argument(text, "/forget boiler code"))

    async def named(self, said: str) -> str:
        """Return which lines of the notes contain a text, in words for the user."""
        found = await self._recall.search(
            SearchQuery(said, limit=_MOST, sources=frozenset({Source.NOTES})), _OWNER
        )
        lines = sorted({line for hit in found.hits for line in _lines(hit, said.casefold())})
        if not lines:
            return f"No line of the notes holds “{said}”. Nothing was changed."
        places = "\n".join(f"{path}:{number}: {line}" for path, number, line in lines)
        return (
            "Nothing was changed. These lines hold it; delete them, or have `agentd memory forget` "
            f"erase what agentd itself wrote:\n{places}"
        )


def _lines(hit: Hit, wanted: str) -> list[tuple[str, int, str]]:
    chunk = hit.chunk
    numbered = enumerate(chunk.text.split("\n"), start=chunk.start_line)
    return [(chunk.path, n, line.strip()) for n, line in numbered if wanted in line.casefold()]


MEMORY = Group("memory")

# As the index counts them: other line separators of Unicode are ordinary characters.
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_LONGEST_PAGE = 400_000  # characters of a file in one answer
_A_DAY = 86_400.0  # seconds: a large archive and a model that thinks about each line

_Sources = list[Literal["notes", "sessions"]]


class Indexing(Protocol):
    """Port: keeps the index in step with the files."""

    async def rebuild(self, *, vectors: bool = True) -> None:
        """Begin again from nothing; return when vectors are there too, or before."""

    async def wait_idle(self) -> None:
        """Return when the index has no pending work."""

    async def state(self) -> IndexState:
        """Return the state of the index."""


def text_of(result: Any) -> str:
    """Return the `text` of an answer that has one, otherwise all its fields as text."""
    if isinstance(result, dict) and isinstance(result.get("text"), str):
        text: str = result["text"]
        return text.removesuffix("\n")
    return fields(result)


def _tree_of(result: dict[str, Any]) -> str:
    return "\n".join(
        entry["path"] if entry.get("is_dir") else f"{entry['path']}  {entry.get('size', 0)}"
        for entry in result["entries"]
    )


class MemoryCommands:
    """Commands for the files of the workspace and for search."""

    def __init__(
        self,
        workspace: Workspace,
        recall: Recall,
        index: Indexing,
        export: Callable[[], Awaitable[dict[str, Any]]],
        erase: Callable[[str], Awaitable[ErasureReport]],
        preview: Callable[[str], Awaitable[ErasureReport]],
        *,
        embedder: Callable[[], Mapping[str, str]] = dict,
        problems: Callable[[], Sequence[Problem]] = tuple,
    ) -> None:
        """`export` makes a quicker form of the embedder's model, and says what it made; `erase`
        masks words wherever agentd wrote them, and `preview` tells which that would be; `embedder`
        answers `{provider, why}`, and `problems` are those of the index and what it is made from.
        """
        self._workspace = workspace
        self._recall = recall
        self._index = index
        self._export = export
        self._erase = erase
        self._preview = preview
        self._embedder = embedder
        self._problems = problems

    @MEMORY.command(fields)
    async def search(
        self,
        query: Annotated[
            str,
            Param(
                "What to look for, in your own words; `-` reads standard input. Put `--` before a "
                "query that begins with a dash."
            ),
        ],
        *,
        queries: Annotated[
            Sequence[str],
            Param(
                "The same in other words or another language; up to five times.",
                ("--also",),
                length=(0, 5),
            ),
        ] = (),
        limit: Annotated[int, Param("How many hits.", least=1, most=100)] = 5,
        sources: Annotated[_Sources | None, Param(length=(1, 100))] = None,
        max_tokens: Annotated[
            int | None, Param("Of all hits together.", least=1, most=1_000_000)
        ] = None,
        min_score: Annotated[
            float | None, Param("Leave out hits that score less.", least=0, most=1)
        ] = None,
        recency: bool | None = None,
        half_life_days: Annotated[
            float | None, Param("How quickly hits age.", least=0.01, most=100_000)
        ] = None,
        fusion: Annotated[
            Literal["structured", "weighted", "rrf"] | None,
            Param("How words and meaning add up."),
        ] = None,
    ) -> dict[str, Any]:
        """Find pieces of memory."""
        wanted = SearchQuery(
            query,
            limit=limit,
            sources=None if sources is None else frozenset(map(Source, sources)),
            max_tokens=max_tokens,
            min_score=min_score,
            recency=recency,
            half_life_days=half_life_days,
            fusion=None if fusion is None else Fusion(fusion),
            queries=tuple(queries),
        )
        return (await self._recall.search(wanted, _OWNER)).as_json()

    @MEMORY.command(text_of)
    async def read(
        self,
        path: Annotated[str, Param("A file of the workspace, or sessions/KEY.jsonl.")],
        *,
        first: Annotated[int, Param("First line.", key="from", least=1, usual=None)] = 1,
        lines: Annotated[int | None, Param("How many lines.", least=1)] = None,
    ) -> dict[str, Any]:
        """Print a file of the workspace."""
        view = await self._recall.read(path, _OWNER)
        found = _LINES.findall(view.text)
        start = first - 1
        wanted = found[start:] if lines is None else found[start : start + lines]
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
            "from": first,
            "lines": len(shown),
            "total_lines": len(found),
            "next": first + len(shown) if len(shown) < len(wanted) else None,
            "digest": view.digest,
        }

    @MEMORY.command(text_of)
    async def write(
        self,
        content: Annotated[
            str,
            Param(
                "The text; `-` reads standard input. Put `--` before a text "
                "that begins with a dash."
            ),
        ] = "",
        *,
        target: Annotated[
            str, Param(f"{', '.join(('daily_log', *TARGETS))} or a path.")
        ] = "daily_log",
        append: Annotated[bool, Param("Add, or overwrite.", ("--append/--replace",))] = True,
        old_string: Annotated[str | None, Param("Text to be replaced.")] = None,
        new_string: Annotated[str | None, Param("What replaces it.")] = None,
        replace_all: Annotated[bool, Param("Replace every occurrence.")] = False,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Write into a file of the workspace."""
        _check(content, old_string, new_string, append=append, replace_all=replace_all)
        workspace = self._workspace
        path = self._written_path(target)
        action = FileAction.WRITE
        async with workspace.lock(path):
            if old_string is not None:
                text = await self._replaced(
                    path, old_string, new_string or "", replace_all=replace_all
                )
            elif append:
                action = FileAction.APPEND
                text = content.removesuffix("\n") + "\n"
            else:
                text = content
            intent = await workspace.plan(path, action, text.encode())
            warnings = await self._screened(path, intent)
            if not dry_run:
                await workspace.apply(intent, _OWNER)
        size = len(intent.data)
        done = "added to" if action is FileAction.APPEND else "written to"
        return {
            "path": path,
            "bytes": size,
            "digest": intent.after,
            "text": f"{size} bytes {'would be ' if dry_run else ''}{done} {path}",
            "warnings": [suspicion.as_json() for suspicion in warnings],
        }

    @MEMORY.command(_tree_of)
    async def tree(
        self,
        path: Annotated[str, Param("A folder of the workspace.")] = "",
        *,
        depth: Annotated[int, Param("How many levels.", least=1, most=20)] = 1,
    ) -> dict[str, Any]:
        """List a folder of the workspace."""
        entries = await self._workspace.tree(path, depth, _OWNER)
        return {"entries": [{"path": e.path, "size": e.size, "is_dir": e.is_dir} for e in entries]}

    @MEMORY.command(fields, seconds=_A_DAY)
    async def index(
        self,
        *,
        export_onnx: Annotated[
            bool,
            Param(
                (
                    "Instead, make a quicker form of the model behind the vectors; "
                    "used after a restart."
                ),
                ("--export-onnx",),
            ),
        ] = False,
        words: Annotated[
            bool,
            Param("Return as soon as words find everything, before meanings do.", ("--words",)),
        ] = False,
    ) -> dict[str, Any]:
        """Build the search index anew from notes and conversations, and return when it is done."""
        if export_onnx:
            made = await self._export()
            return {**(await self._index.state()).as_json(), "exported": made}
        await self._index.rebuild(vectors=not words)
        await self._index.wait_idle()
        return (await self._index.state()).as_json()

    @MEMORY.command(fields)
    async def status(self) -> dict[str, Any]:
        """Show the state of the search index."""
        return {
            **(await self._index.state()).as_json(),
            **self._embedder(),
            "problems": [problem.as_json() for problem in self._problems()],
        }

    @MEMORY.command(fact_words.text_erased, seconds=ERASING_SECONDS)
    async def forget(
        self,
        text: Annotated[str, Param("Words; every sentence that has them is erased.")],
        *,
        dry_run: Annotated[
            bool, Param("Only show the sentences that would be erased.", ("--dry-run",))
        ] = False,
    ) -> dict[str, Any]:
        """Erase a text wherever agentd keeps it."""
        forget = self._preview if dry_run else self._erase
        report = await forget(text)
        goes = [sentence.as_json() for sentence in report.goes]
        return {**report.as_json(), "goes": goes, "dry_run": dry_run}

    async def _screened(self, path: str, intent: FileIntent) -> tuple[Suspicion, ...]:
        """Return what looks like an attack in a change of a file that prompts carry. The owner is
        only warned.
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

    async def _replaced(self, path: str, old: str, new: str, *, replace_all: bool) -> str:
        """Return the file's text with the replacement made. Raises InvalidRequest if `old` is
        absent or ambiguous.
        """
        before = (await self._workspace.read(path, _OWNER)).text
        count = before.count(old) if old else 0
        if count == 0:
            raise InvalidRequest(
                f"old_string: does not stand in {path}",
                cure="read the file, and give its very words",
            )
        if count > 1 and not replace_all:
            raise InvalidRequest(
                f"old_string: stands {count} times in {path}",
                cure="give more of the text around it, or replace all",
            )
        return before.replace(old, new)

    def _written_path(self, target: str) -> str:
        """Return the path that a write changes: a note or a file of the graph. Raises
        PathRefused.
        """
        path = self._workspace.canonical(self._path(target))
        if not path.casefold().startswith(f"{GRAPH_FOLDER}/"):
            names = ", ".join(("daily_log", *TARGETS))
            file = shlex.quote(f"{path}.md")
            require_note(path, f"name one of {names}, or a file of that kind: --target {file}")
        return path

    def _path(self, target: str) -> str:
        if target == "daily_log":
            return self._workspace.daily_note()
        return TARGETS.get(target, target)


def _check(
    content: str, old: str | None, new: str | None, *, append: bool, replace_all: bool
) -> None:
    """Raises InvalidRequest for a write that would do nothing, or not all that was asked."""
    if old is not None:
        return
    if new is not None or replace_all:
        raise InvalidRequest(
            "old_string: is missing, and nothing else says what to replace",
            cure="give the text that is to be replaced",
        )
    if append and not content:
        raise InvalidRequest("content: is empty", cure="say what to add")
