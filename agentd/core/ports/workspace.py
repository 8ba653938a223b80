"""Ports of the user's files: the rules of paths, reading, and changes by plan."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from agentd.core.errors import WorkspaceError
from agentd.core.health import Problem
from agentd.core.tool import FileAction, FileIntent
from agentd.core.workspace import OWNER, Author, FileView, Reader, TreeEntry


class NoteRules(Protocol):
    """The rules for paths in the workspace."""

    def canonical(self, path: str) -> str:
        """Return the one spelling of `path` (resolves the `daily/…` alias, doubled slashes, NFC).
        Raises PathRefused.
        """

    def is_protected(self, path: str) -> bool:
        """Whether a model's change to the path needs the user's approval. Compared casefolded."""

    def is_injected(self, path: str) -> bool:
        """Whether prompts include the file as the owner's own words, or facts from it. Raises
        PathRefused.
        """

    def is_owner_only(self, path: str) -> bool:
        """Whether only the owner's sessions may see a file of this path. Decided by its folder,
        never by whether the file exists. Raises PathRefused.
        """

    def daily_note(self) -> str:
        """Return the path of today's note, in the owner's zone."""

    async def exists(self, path: str, reader: Reader) -> bool:
        """Whether `read` would find the path."""

    async def life(self, path: str) -> str:
        """Return an identifier of the file now at `path`, "" if there is none or it is empty. The
        identifier survives what agentd writes; it ends when the file is deleted, emptied or
        replaced by another, and is never used again. Raises WorkspaceError.
        """


class NoteReader(Protocol):
    """Reads and lists files."""

    async def read(self, path: str, reader: Reader) -> FileView:
        """Read the whole file; the session counts as having seen it.

        Raises FileMissing (absent and forbidden alike), FileUnreadable, PathRefused.
        """

    async def read_damaged(self, path: str, reader: Reader) -> FileView:
        """Read like `read`, but decode invalid UTF-8 with `surrogateescape`, so that encoding the
        text in the same way gives the same bytes. Raises what `read` does; a UTF-16 file stays
        FileUnreadable.
        """

    async def look(
        self, paths: Sequence[str], reader: Reader
    ) -> Sequence[FileView | WorkspaceError]:
        """Read whole files without counting them as seen. For a file that cannot be read the result
        holds the error that `read` would raise; the workspace also reports it in `problems`.
        """

    async def tree(self, path: str, depth: int, reader: Reader) -> tuple[TreeEntry, ...]:
        """List what is below `path`, `depth` levels deep, sorted; other scopes as `@name/`."""

    async def outside(self, path: str, lines: Sequence[str]) -> Sequence[bool]:
        """Return for each whole line of a file whether it is from outside: marked so, written by a
        tainted change (of the line or the whole file), or in another workspace's file. Raises
        PathRefused.
        """

    async def has_outside_name(self, paths: Sequence[str]) -> bool:
        """Whether text from outside has named one of these files or folders."""

    async def record_outside_names(self, paths: Sequence[str]) -> None:
        """Record that text from outside has named these paths, for example transcripts. Raises
        WorkspaceError.
        """

    async def inspect(self, intent: FileIntent) -> str:
        """After a crash, compare the file with the intent: "before", "after" or "other". An append
        is "after" when all of its bytes are in the file in one piece at `offset` or later, "before"
        when none are.
        """

    def problems(self) -> tuple[Problem, ...]:
        """Return the files that could not be read in full, each since it last could."""


class NoteWriter(Protocol):
    """Changes files, each change planned first."""

    def lock(self, path: str) -> AbstractAsyncContextManager[None]:
        """Hold the path against agentd's other writers and against processes that flock it."""

    async def plan(self, path: str, action: FileAction, data: bytes) -> FileIntent:
        """Return the exact change from what is on disk now; write nothing. An append begins a new
        line: if the file's last line has no end, the intent's data begin with a line end. Raises
        PathRefused, FileUnreadable, FileMissing (DELETE).
        """

    async def has_seen(self, path: str, digest: str, reader: Reader) -> bool:
        """Whether the session has seen the file in the state `digest`; an absent file counts as
        seen.
        """

    async def apply(self, intent: FileIntent, reader: Reader, by: Author = OWNER) -> None:
        """Make the change durably. The session counts as having seen the result, and the file's
        history names `by` as its author.

        Raises EditConflict when the file is no longer in the state `before` (for an append: when it
        is shorter than `offset`).
        """


class Workspace(NoteRules, NoteReader, NoteWriter, Protocol):
    """The user's files; no path leads out of them."""
