"""Checks of memory: the injected files, the notes of the workspace, facts, the graph's journal."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from agentd.core.health import Finding, Problem
from agentd.core.screening.scanner import scan
from agentd.core.transcript import SessionInfo
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.core.workspace import FileView, Reader, TreeEntry
from agentd.interfaces.commands.plain import counted
from agentd.memory.graph.graph_exchange import ChainVerdict

_DOCTOR = Reader(SessionKey("doctor"), SessionKind.OWNER)
_DEPTH = 20
_MOST_FILES = 5000
_MOST_NAMED = 5
_PORTION = 250  # files scanned in one thread call, which costs more than scanning one file


class NoteFiles(Protocol):
    """Port: read access to the workspace under which no file counts as seen by the agent."""

    async def tree(self, path: str, depth: int, reader: Reader) -> Sequence[TreeEntry]:
        """List what is below `path`, `depth` levels deep."""

    async def snapshot(
        self, paths: Sequence[str], reader: Reader
    ) -> tuple[Mapping[str, FileView], frozenset[str]]:
        """Return the readable files by path, and the paths at which there is no file."""

    def is_injected(self, path: str) -> bool:
        """Whether prompts may contain the file."""

    def is_owner_only(self, path: str) -> bool:
        """Whether only the owner's sessions may see a file of this path."""

    def problems(self) -> Sequence[Problem]:
        """Return the problems of files that cannot be read in full or do not fit the prompt."""


class PromptFilesCheck(Struct, frozen=True):
    """Checks that the injected files fit the prompt. `cut` is the problem code if one does not."""

    files: NoteFiles
    cut: str
    code: str = "injected_files"

    async def look(self) -> Finding:
        """Warn of the files that are cut."""
        cuts = [problem for problem in self.files.problems() if problem.code == self.cut]
        if cuts:
            text = "; ".join(problem.text for problem in cuts[:_MOST_NAMED])
            return Finding.warn(self.code, text, cuts[0].cure)
        return Finding.ok(self.code, "all files of the workspace that go into prompts fit")


class NotesReadableCheck(Struct, frozen=True):
    """Checks that all Markdown files of the workspace can be read. `irregular` is the problem code
    of a path that is named like a note and is no regular file.
    """

    files: NoteFiles
    irregular: str
    code: str = "unreadable_files"

    async def look(self) -> Finding:
        """Fail with the first unreadable files and the cure of each; warn of paths that are no
        regular files.
        """
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


class HiddenTextCheck(Struct, frozen=True):
    """Looks in the injected files for text that people do not see and the model reads."""

    files: NoteFiles
    code: str = "suspicious_text"

    async def look(self) -> Finding:
        """Warn of such text, with its file and place."""
        paths = await _paths(self.files, self._counts)
        views, _ = await self.files.snapshot(paths, _DOCTOR)
        there = [path for path in paths if path in views]
        found: list[str] = []
        for first in range(0, len(there), _PORTION):
            some = {path: views[path].text for path in there[first : first + _PORTION]}
            found += await asyncio.to_thread(_unseen_in, some)
        if found:
            more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
            text = (
                "has text that nobody sees and the model reads: "
                f"{'; '.join(found[:_MOST_NAMED])}{more}"
            )
            cure = "look at these lines; delete what nobody you trust has written"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(
            self.code, f"no hidden text is in the {len(paths)} files that go into prompts"
        )

    def _counts(self, path: str) -> bool:
        return not path.startswith("@") and self.files.is_injected(path)


def _unseen_in(texts: Mapping[str, str]) -> list[str]:
    """Return the places of hidden text (findings of high severity) in texts given by path."""
    return [f"{path}:{one}" for path, text in texts.items() for one in scan(text) if one.is_high]


class RequiredFilesCheck(Struct, frozen=True):
    """Checks that the files injected into every prompt exist. `audit` returns the name of each and
    whether it exists.
    """

    audit: Callable[[], Awaitable[Sequence[tuple[str, bool]]]]
    code: str = "missing_files"

    async def look(self) -> Finding:
        """Warn of the files that are missing."""
        missing = [name for name, is_there in await self.audit() if not is_there]
        if missing:
            text = f"missing in the workspace: {', '.join(missing)}"
            cure = "`agentd init` puts the templates there; or turn the file off in [workspace]"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(self.code, "no file that goes into prompts is missing")


class SharedFoldersCheck(Struct, frozen=True):
    """Checks what groups and isolated sessions find in the workspace. `private` are the folders
    that nobody expects them to find.
    """

    files: NoteFiles
    sessions: Callable[[], Awaitable[Sequence[SessionInfo]]]
    private: Collection[str]
    code: str = "shared_files"

    async def look(self) -> Finding:
        """Warn of files in shared folders that those sessions cannot see since they have a second
        hard link; and if such sessions exist, but no shared file does and the workspace has other
        files.
        """
        notes = [e for e in await self.files.tree("", _DEPTH, _DOCTOR) if not e.is_dir]
        linked = [e.path for e in notes if not (e.is_shared or self.files.is_owner_only(e.path))]
        if linked:
            text = (
                f"have a second name, so groups do not find them: {', '.join(linked[:_MOST_NAMED])}"
            )
            cure = "put a copy of its own in the place of each: cp FILE COPY && mv COPY FILE"
            return Finding.warn(self.code, text, cure)
        infos = await self.sessions()
        others = sum(kind_of(info.key) is not SessionKind.OWNER for info in infos)
        found = sum(entry.is_shared for entry in notes)
        text = f"groups and isolated sessions (there are {others}) find {counted(found, 'file')}"
        if hidden := self._hidden(notes):
            text += f"; they find nothing of {', '.join(hidden[:_MOST_NAMED])}"
            text += f" and {len(hidden) - _MOST_NAMED} more" if len(hidden) > _MOST_NAMED else ""
        if others and hidden and not found:
            cure = "move what they need to shared/, or name its folder in [workspace] group_paths"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(self.code, text)

    def _hidden(self, notes: Sequence[TreeEntry]) -> list[str]:
        """Return the top-level files and folders that are not shared, without `private` ones."""
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
    """Return the cure of the files' problems; if the cures differ, each with its files."""
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


class FactsCheck(Struct, frozen=True):
    """Checks facts, their page and erasures. `problems` returns the problems of all parts that
    handle facts.
    """

    problems: Callable[[], Sequence[Problem]]
    code: str = "facts"

    async def look(self) -> Finding:
        """Report every problem with its cure: a warning if all of them need only the user's answer
        or a later retry, otherwise a failure.
        """
        found = self.problems()
        if not found:
            return Finding.ok(
                self.code, "the facts and their page say the same, and nothing forgotten is left"
            )
        text = "; ".join(dict.fromkeys(problem.text.rstrip(".") for problem in found))
        cure = "; ".join(dict.fromkeys(problem.cure.rstrip(".") for problem in found))
        if all(problem.code in _WAITING for problem in found):
            return Finding.warn(self.code, text, cure)
        return Finding.fail(self.code, text, cure)


class GraphJournalCheck(Struct, frozen=True):
    """Checks that the graph's journal is unchanged, and that what other agents said is stored as
    the journal has it.
    """

    logged: Callable[[], Awaitable[ChainVerdict]]
    is_kept: bool
    code: str = "graph_chain"

    async def look(self) -> Finding:
        """Warn of other agents whose stored statements differ from the journal. Raises
        StorageCorrupt if the journal's chain was changed, and WorkspaceError.
        """
        if not self.is_kept:
            return Finding.ok(self.code, "the graph keeps no chain that could be broken")
        found = await self.logged()
        found.verdict.check()
        if found.changed:
            text = f"what others said is not what was logged, of {', '.join(found.changed[:5])}"
            cure = "put the state back from a backup, or take their messages in again"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(
            self.code, f"{found.verdict.entries} entries of the graph's chain are sound"
        )
