"""Listings of a folder for a kind of session, and the list of problems with single files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import structlog
from msgspec import Struct, field

from agentd.core.health import Problem
from agentd.core.turn import SessionKind
from agentd.core.workspace import TreeEntry
from agentd.workspace.folder import FOLDER_LINK, Folder, FolderEntry
from agentd.workspace.names import Name, below, is_plain
from agentd.workspace.places import Visibility

log = structlog.get_logger()


UNREADABLE = "file_unreadable"
SCOPE = "scope_unreadable"
IRREGULAR = "file_irregular"  # named like a note, but a link, a pipe or a device


class ProblemList:
    """The current problems of single files, by path and code. A problem is logged once and listed
    until it is cleared.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Problem] = {}

    def add(self, path: str, problem: Problem) -> None:
        """Add a problem; log it unless the same one is already listed."""
        if self._open.get((path, problem.code)) != problem:
            log.warning("workspace_problem", code=problem.code, text=problem.text)
        self._open[path, problem.code] = problem

    def clear(self, path: str, code: str) -> None:
        """Remove this problem of the path, if there is one."""
        if self._open.pop((path, code), None) is not None:
            log.info("workspace_problem_over", code=code, path=path)

    def forget(self, path: str) -> None:
        """Remove all problems of a file that no longer exists."""
        for _, code in [key for key in self._open if key[0] == path]:
            self.clear(path, code)

    def paths(self, code: str) -> tuple[str, ...]:
        """Return the paths that have a problem of this code."""
        return tuple(path for path, what in self._open if what == code)

    def all(self) -> tuple[Problem, ...]:
        """Return all problems, sorted by path."""
        return tuple(problem for _, problem in sorted(self._open.items()))


_MOST_NAMED = 20
_AND_MORE = "\uffff"  # sorts behind the paths


class NameProblem(Struct, frozen=True):
    """Why an entry on the disk is left out of listings, and what the user can do about it."""

    why: str
    cure: str


class Listing(Struct):
    """The result of a listing. `entries` are unsorted. `odd` are the entries that were left out
    although they are named like a note or may contain notes.
    """

    folder: Folder
    sight: Visibility
    kind: SessionKind
    entries: list[TreeEntry] = field(default_factory=list)
    odd: dict[Name, NameProblem] = field(default_factory=dict)

    def gather(self, name: Name, parts: tuple[str, ...], depth: int) -> None:
        """Add what this kind of session may see in the folder, `depth` levels deep: `name` is the
        folder's name, `parts` its path on disk. Where others than the owner may not see the folder
        itself, add the shared folders below it. Blocking. Raises OSError for `parts` itself.
        """
        if self.sight.sees_folder(name, self.kind):
            self.collect(name, parts, depth)
            return
        found = [self._reach(name, folder, depth) for folder in self.sight.shared_below(name)]
        if not any(found) and parts:  # a folder without a shared one below is hidden, too
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(name))

    def _reach(self, above: Name, folder: tuple[str, ...], depth: int) -> bool:
        """Add a shared folder with its content, and the folders that lead to it; return False if it
        does not exist.
        """
        try:
            with self.folder.beneath.folder(folder):
                first = len(above.parts)
        except (FileNotFoundError, NotADirectoryError):
            return False
        known = {entry.path for entry in self.entries}
        for end in range(first + 1, min(len(folder), first + depth) + 1):
            path = f"{'/'.join(folder[:end])}/"
            if path not in known:
                self.entries.append(TreeEntry(path, 0, is_dir=True))
        if (left := depth - (len(folder) - first)) > 0:
            self.collect(Name("", folder), folder, left)
        return True

    def collect(self, base: Name, parts: tuple[str, ...], depth: int) -> None:
        """Add the content of a folder, `depth` levels deep. Blocking. Raises OSError for `parts`
        itself; a folder further down that cannot be listed is left out.
        """
        parent = Name(base.scope, parts)
        shares = self.sight.sees_folder(parent, SessionKind.GROUP)  # holds for all entries alike
        prefix = f"{parent}/" if parts else str(parent)
        sees_all = self.kind is SessionKind.OWNER and not parent.scope
        for entry in self.folder.entries(parts):
            own, is_dir = entry.name, entry.is_dir
            is_usual = sees_all and not is_dir and not entry.odd and is_plain(own, len(parts) + 1)
            name = None if is_usual else self._name(parent, entry)
            if name is None and not is_usual:
                continue
            path = f"{prefix}{own}/" if is_dir else prefix + own
            times, is_shared = (entry.mtime_ns, entry.ctime_ns), entry.is_alone and shares
            self.entries.append(TreeEntry(path, entry.size, is_dir, *times, entry.inode, is_shared))
            if name is not None and is_dir and depth > 1:
                try:
                    self.collect(base, name.parts, depth - 1)
                except OSError as error:  # gone, or no permission: the rest is still listed
                    log.info("folder_not_listed", path=str(name), error=error.strerror)

    def lacking(self, base: Name, depth: int, paths: Sequence[str]) -> tuple[str, ...]:
        """Return those of the paths that this listing of `base` would contain if they existed, but
        does not.
        """
        prefix = f"{base}/" if base.parts else str(base)
        inside = (path for path in paths if path.startswith(prefix))
        due = [path for path in inside if path.removeprefix(prefix).count("/") < depth]
        there = {entry.path for entry in self.entries} if due else set()
        return tuple(path for path in due if path not in there)

    def _name(self, parent: Name, entry: FolderEntry) -> Name | None:
        """Return the name of an entry that this kind of session may see and agentd can open, else
        None; odd entries are recorded.
        """
        name = below(parent, entry.name)
        if isinstance(name, str):
            self._refuse(Name(parent.scope, (*parent.parts, entry.name)), entry, name)
            return None
        if not self.sight.sees(name, self.kind):
            return None
        if self.kind is not SessionKind.OWNER and not entry.is_alone:
            return None
        if entry.odd:
            self.odd[name] = _irregular(entry.odd)
            return None
        return name

    def _refuse(self, name: Name, entry: FolderEntry, why: str) -> None:
        counts = entry.is_dir or entry.odd or entry.name.casefold().endswith(".md")
        if counts and not entry.name.startswith(".") and self.sight.sees(name, self.kind):
            what = "nothing in it is ever" if entry.is_dir else "it is never"
            self.odd[name] = NameProblem(f"{why}: {what} read", "Give it another name.")


class LeftOut:
    """Reports entries that listings left out as problems, the first of them by name, until they are
    no longer left out.
    """

    def __init__(self, complaints: ProblemList) -> None:
        self._complaints = complaints
        self._odd: dict[Name, NameProblem] = {}
        self._told: set[str] = set()

    def __contains__(self, name: Name) -> bool:
        return name in self._odd

    def note(self, base: Name, depth: int, odd: Mapping[Name, NameProblem]) -> None:
        """Record that a listing of `depth` levels below `base` has left out exactly these
        entries.
        """
        before = dict(self._odd)
        for name in before.keys() - odd.keys():
            inside = name.scope == base.scope and name.parts[: len(base.parts)] == base.parts
            if inside and len(name.parts) - len(base.parts) <= depth:
                del self._odd[name]
        self._odd.update(odd)
        if self._odd != before:
            self._tell()

    def _tell(self) -> None:
        told = dict(self._problems())
        for path in self._told - told.keys():
            self._complaints.clear(path, IRREGULAR)
        for path, problem in told.items():
            self._complaints.clear(path, UNREADABLE)  # the new problem is the reason for this one
            self._complaints.add(path, problem)
        self._told = set(told)

    def _problems(self) -> Iterator[tuple[str, Problem]]:
        named = {printable(str(name)): what for name, what in self._odd.items()}
        found = sorted(named.items(), key=itemgetter(0))
        for path, what in found[:_MOST_NAMED]:
            yield path, Problem(IRREGULAR, f"{path} {what.why}", what.cure)
        if (more := len(found) - _MOST_NAMED) > 0:
            text = f"{more} more files and folders are left out in such ways"
            yield _AND_MORE, Problem(IRREGULAR, text, "Cure those that are named.")


def printable(path: str) -> str:
    """Return the path for people, with escapes if it contains unprintable characters."""
    return path if path.isprintable() else ascii(path)


def _irregular(what: str) -> NameProblem:
    if what == FOLDER_LINK:
        cure = "Name the folder in extra_paths of [memory_search], or put it in the link's place."
        return NameProblem(f"is {what}: nothing in it is ever read", cure)
    return NameProblem(f"is {what}, no file: it is never read", "Put the file itself in its place.")
