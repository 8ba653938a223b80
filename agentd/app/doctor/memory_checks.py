"""Checks of what the agent knows: the injected files, the workspace, facts about the user, the graph."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agentd.core.health import Finding, Problem
from agentd.core.screening.scanner import scan
from agentd.core.transcript import SessionInfo
from agentd.core.turn import Kind, SessionKey, kind_of
from agentd.core.workspace import FileView, Reader, TreeEntry
from agentd.memory.graph.graph_exchange import Logged

_DOCTOR = Reader(SessionKey("doctor"), Kind.MAIN)
_DEPTH = 20
_MOST_FILES = 5000
_MOST_NAMED = 5
_PORTION = (
    250  # files that are looked at in one go: a trip to a thread takes longer than a look at one
)


class NoteFiles(Protocol):
    """The workspace, looked at without counting as seen."""

    async def tree(self, path: str, depth: int, reader: Reader) -> Sequence[TreeEntry]:
        """What is below the path."""

    async def snapshot(
        self, paths: Sequence[str], reader: Reader
    ) -> tuple[Mapping[str, FileView], frozenset[str]]:
        """The files that can be read, and those that are not there."""

    def is_injected(self, path: str) -> bool:
        """Whether prompts ever carry the file."""

    def is_owner_only(self, path: str) -> bool:
        """Whether a file of this path exists for the owner alone."""

    def problems(self) -> Sequence[Problem]:
        """Files that cannot be read or do not fit."""


@dataclass(frozen=True, slots=True)
class PromptFilesCheck:
    """Whether the files of the prompt fit into it. `cut` is the code of the problem."""

    files: NoteFiles
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
class NotesReadableCheck:
    """Whether all markdown of the workspace can be read. `irregular` is the code of the problem of
    what is named like a note and is no file.
    """

    files: NoteFiles
    irregular: str
    code: str = "unreadable_files"

    async def look(self) -> Finding:
        """Fails with the first that cannot and a cure for each, warns of what is never read since it is no file."""
        paths = await _paths(self.files, lambda path: path.endswith(".md"))
        views, absent = await self.files.snapshot(paths, _DOCTOR)
        bad = [path for path in paths if path not in views and path not in absent]
        if bad:
            named = bad[:_MOST_NAMED]
            cure = _cures(named, self.files.problems())
            return Finding.fail(self.code, f"cannot be read: {', '.join(named)}", cure)
        odd = [problem for problem in self.files.problems() if problem.code == self.irregular]
        if odd:
            text = "; ".join(problem.text for problem in odd[:_MOST_NAMED])
            return Finding.warn(self.code, text, odd[0].cure)
        return Finding.ok(self.code, f"{len(paths)} files of the workspace can be read")


@dataclass(frozen=True, slots=True)
class HiddenTextCheck:
    """Whether a file of the prompt has text that nobody sees and the model reads."""

    files: NoteFiles
    code: str = "suspicious_text"

    async def look(self) -> Finding:
        """Warns of what is found, with its place."""
        paths = await _paths(self.files, self._counts)
        views, _ = await self.files.snapshot(paths, _DOCTOR)
        there = [path for path in paths if path in views]
        found: list[str] = []
        for first in range(0, len(there), _PORTION):
            some = {path: views[path].text for path in there[first : first + _PORTION]}
            found += await asyncio.to_thread(_unseen_in, some)
        if found:
            more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
            text = f"has text that nobody sees and the model reads: {'; '.join(found[:_MOST_NAMED])}{more}"
            cure = "look at these lines; delete what nobody you trust has written"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(self.code, f"nothing hidden in {len(paths)} files of the prompt")

    def _counts(self, path: str) -> bool:
        return not path.startswith("@") and self.files.is_injected(path)


def _unseen_in(texts: Mapping[str, str]) -> list[str]:
    """Where these texts, by path, have what nobody sees."""
    return [f"{path}:{one}" for path, text in texts.items() for one in scan(text) if one.is_high]


@dataclass(frozen=True, slots=True)
class RequiredFilesCheck:
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
class SharedFoldersCheck:
    """What groups and isolated sessions find of the workspace. `private` are the folders that were never
    theirs.
    """

    files: NoteFiles
    sessions: Callable[[], Awaitable[Sequence[SessionInfo]]]
    private: Collection[str]
    code: str = "shared_files"

    async def look(self) -> Finding:
        """Warns of shared files that they do not find, and where such sessions find no file at all."""
        notes = [e for e in await self.files.tree("", _DEPTH, _DOCTOR) if not e.is_dir]
        linked = [e.path for e in notes if not (e.is_shared or self.files.is_owner_only(e.path))]
        if linked:
            text = (
                f"have a second name, so groups do not find them: {', '.join(linked[:_MOST_NAMED])}"
            )
            cure = "put a copy of its own in the place of each: cp FILE COPY && mv COPY FILE"
            return Finding.warn(self.code, text, cure)
        infos = await self.sessions()
        others = sum(kind_of(info.key) is not Kind.MAIN for info in infos)
        found = sum(entry.is_shared for entry in notes)
        text = f"files that groups and isolated sessions find: {found}; such sessions: {others}"
        if hidden := self._hidden(notes):
            text += f"; they find nothing of {', '.join(hidden[:_MOST_NAMED])}"
            text += f" and {len(hidden) - _MOST_NAMED} more" if len(hidden) > _MOST_NAMED else ""
        if others and hidden and not found:
            cure = "move what they need to shared/, or name its folder in [workspace] group_paths"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(self.code, text)

    def _hidden(self, notes: Sequence[TreeEntry]) -> list[str]:
        """The files and folders at the top that a group might be thought to find."""
        tops = {
            top + slash
            for entry in notes
            if not entry.is_shared and not self.files.is_injected(entry.path)
            for top, slash, _ in [entry.path.partition("/")]
            if top not in self.private
        }
        return sorted(tops)


async def _paths(files: NoteFiles, counts: Callable[[str], bool]) -> list[str]:
    entries = await files.tree("", _DEPTH, _DOCTOR)
    return [e.path for e in entries if not e.is_dir and counts(e.path)][:_MOST_FILES]


def _cures(paths: Sequence[str], problems: Sequence[Problem]) -> str:
    """What cures files; where they need different things, which each of them needs."""
    files: dict[str, list[str]] = {}
    for path in paths:
        name = re.compile(rf"(?<!\S){re.escape(path)}(?!\S)")
        cure = next((p.cure for p in problems if p.cure and name.search(p.text)), "")
        if cure:
            files.setdefault(cure, []).append(path)
    if len(files) == 1:
        return next(iter(files))
    return "; ".join(f"{', '.join(some)}: {cure}" for cure, some in files.items())


_WAITING = frozenset({"facts_parked", "facts_unread", "facts_skipped", "facts_revived"})


@dataclass(frozen=True, slots=True)
class FactsCheck:
    """Whether facts, their page and what was forgotten are as they should be. `problems` are those of
    all parts that have to do with facts.
    """

    problems: Callable[[], Sequence[Problem]]
    code: str = "facts"

    async def look(self) -> Finding:
        """Names every problem with its cure; warns of those that only wait for the user or for better
        times, fails for any other.
        """
        found = self.problems()
        if not found:
            return Finding.ok(
                self.code, "facts are level with their page, and nothing is left over"
            )
        text = "; ".join(dict.fromkeys(problem.text.rstrip(".") for problem in found))
        cure = "; ".join(dict.fromkeys(problem.cure.rstrip(".") for problem in found))
        if all(problem.code in _WAITING for problem in found):
            return Finding.warn(self.code, text, cure)
        return Finding.fail(self.code, text, cure)


@dataclass(frozen=True, slots=True)
class GraphJournalCheck:
    """Whether the log of what happened to the graph is as it was written, and what others said as it was
    entered.
    """

    logged: Callable[[], Awaitable[Logged]]
    is_kept: bool
    code: str = "graph_chain"

    async def look(self) -> Finding:
        """Fails for a chain that was changed, warns of what others said that was. Raises WorkspaceError."""
        if not self.is_kept:
            return Finding.ok(self.code, "no chain of the graph is kept")
        found = await self.logged()
        found.verdict.check()
        if found.changed:
            text = f"what others said is not what was logged, of {', '.join(found.changed[:5])}"
            cure = "put the state back from a backup, or take their messages in again"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(
            self.code, f"{found.verdict.entries} entries of the graph's chain are sound"
        )
