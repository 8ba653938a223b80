"""Checks of what the agent knows: the injected files, the workspace, the search."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agentd.domain.health import Finding, Problem
from agentd.domain.memory import IndexState, Source
from agentd.domain.turn import Kind, SessionKey
from agentd.domain.workspace import FileView, Reader, TreeEntry
from agentd.ports import Recall

_EYES = Reader(SessionKey("doctor"), Kind.MAIN)
_DEPTH = 20
_MOST_FILES = 5000
_MOST_NAMED = 5
_HITS = 100
_NOTE = re.compile(r"memory/\d{4}-\d{2}-\d{2}\.md")
_WORD = re.compile(r"[^\W_]{3,}")


class Files(Protocol):
    """The workspace, looked at without counting as seen."""

    async def tree(self, path: str, depth: int, reader: Reader) -> Sequence[TreeEntry]:
        """What is below the path."""

    async def snapshot(
        self, paths: Sequence[str], reader: Reader
    ) -> tuple[Mapping[str, FileView], frozenset[str]]:
        """The files that can be read, and those that are not there."""

    def problems(self) -> Sequence[Problem]:
        """Files that cannot be read or do not fit."""


@dataclass(frozen=True, slots=True)
class Injected:
    """Whether the files of the prompt fit into it. `cut` is the code of the problem."""

    files: Files
    cut: str
    code: str = "injected_files"

    async def look(self) -> Finding:
        """Warns of those that are cut."""
        cuts = [problem for problem in self.files.problems() if problem.code == self.cut]
        if cuts:
            text = "; ".join(problem.text for problem in cuts[:_MOST_NAMED])
            return Finding.warn(self.code, text, cuts[0].cure)
        return Finding.ok(self.code, "the files of the prompt fit")


@dataclass(frozen=True, slots=True)
class Readable:
    """Whether all markdown of the workspace can be read."""

    files: Files
    code: str = "unreadable_files"

    async def look(self) -> Finding:
        """Fails with the first that cannot."""
        entries = await self.files.tree("", _DEPTH, _EYES)
        paths = [e.path for e in entries if not e.is_dir and e.path.endswith(".md")][:_MOST_FILES]
        views, absent = await self.files.snapshot(paths, _EYES)
        bad = [path for path in paths if path not in views and path not in absent]
        if bad:
            cures = {problem.text: problem.cure for problem in self.files.problems()}
            cure = next((c for text, c in cures.items() if bad[0] in text), "")
            return Finding.fail(self.code, f"cannot be read: {', '.join(bad[:_MOST_NAMED])}", cure)
        return Finding.ok(self.code, f"{len(paths)} files of the workspace can be read")


@dataclass(frozen=True, slots=True)
class Required:
    """Whether the files that every prompt wants are there."""

    audit: Callable[[], Awaitable[Sequence[tuple[str, bool]]]]
    code: str = "missing_files"

    async def look(self) -> Finding:
        """Warns of those that are missing."""
        missing = [name for name, is_there in await self.audit() if not is_there]
        if missing:
            text = f"missing in the workspace: {', '.join(missing)}"
            cure = "`agentd init` puts the templates there; or turn the file off in [workspace]"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(self.code, "the files of the prompt are there")


@dataclass(frozen=True, slots=True)
class Searchable:
    """Whether search finds what is written: some words of the newest note, looked for."""

    files: Files
    recall: Recall
    index: Callable[[], Awaitable[IndexState]]
    code: str = "search"

    async def look(self) -> Finding:
        """Fails when the note is not among the hits."""
        state = await self.index()
        if state.pending or state.state != "ready":
            text = f"the index is being built: {state.pending} files are left"
            return Finding.warn(self.code, text, "wait, then run this again")
        entries = await self.files.tree("memory", 1, _EYES)
        notes = sorted((e.path for e in entries if _NOTE.fullmatch(e.path)), reverse=True)
        views, _ = await self.files.snapshot(notes[:_MOST_NAMED], _EYES)
        for path in notes[:_MOST_NAMED]:
            if path in views and (words := _telling(views[path].text)):
                return await self._found(path, words)
        return Finding.ok(self.code, "there is no note to look for yet")

    async def _found(self, path: str, words: Sequence[str]) -> Finding:
        found = await self.recall.search(
            " ".join(words), Kind.MAIN, _HITS, frozenset({Source.NOTES})
        )
        if any(hit.chunk.path == path for hit in found.hits):
            return Finding.ok(self.code, f"words of {path} are found")
        return Finding.fail(self.code, f"words of {path} are not found", "`agentd memory index`")


def _telling(text: str) -> Sequence[str]:
    """The longest words, those most likely to stand nowhere else."""
    return sorted(set(_WORD.findall(text)), key=lambda word: (-len(word), word))[:3]
