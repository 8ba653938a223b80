"""The user's files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from agentd.core.errors import WorkspaceError
from agentd.core.health import Problem
from agentd.core.tool import FileAction, FileIntent
from agentd.core.workspace import OWNER, Author, FileView, Reader, TreeEntry


class NoteRules(Protocol):
    """What a path means here, and what may be done with it."""

    def canonical(self, path: str) -> str:
        """The one spelling of `path` (`daily/…` alias, doubled slashes, NFC). Raises PathRefused."""

    def is_protected(self, path: str) -> bool:
        """Whether a model's change to it needs the user's yes. Compared casefolded."""

    def is_injected(self, path: str) -> bool:
        """Whether prompts ever carry the file as the owner's own words, or facts from it. Raises
        PathRefused.
        """

    def is_owner_only(self, path: str) -> bool:
        """Whether a file of this path exists for the owner's sessions alone, told by the folder and
        never by whether it is there. Raises PathRefused.
        """

    def daily_note(self) -> str:
        """The path of today's note, in the owner's zone."""

    async def exists(self, path: str, reader: Reader) -> bool:
        """Whether `read` would find it."""

    async def life(self, path: str) -> str:
        """A word for the life of the very file that stands there, "" where none does or nothing is in it.
        It goes on through what agentd writes, and ends when the file is deleted, emptied, or another
        stands in its place; no other life has the same word. Raises WorkspaceError.
        """


class NoteReader(Protocol):
    """The text of files, and which there are."""

    async def read(self, path: str, reader: Reader) -> FileView:
        """The whole file; from then on the session has seen it.

        Raises FileMissing (absent and forbidden alike), FileUnreadable, PathRefused.
        """

    async def read_damaged(self, path: str, reader: Reader) -> FileView:
        """`read`, but bytes that are no UTF-8 stand in the text as `surrogateescape` puts them, so that
        encoding it in the same way gives the same bytes. Raises what `read` does; a file in UTF-16
        stays FileUnreadable.
        """

    async def look(
        self, paths: Sequence[str], reader: Reader
    ) -> Sequence[FileView | WorkspaceError]:
        """Whole files at once, none of which counts as seen; in the place of each that cannot be
        read, what `read` would raise. The workspace itself names these among its problems.
        """

    async def tree(self, path: str, depth: int, reader: Reader) -> tuple[TreeEntry, ...]:
        """What is below `path`, `depth` levels deep, sorted; other scopes as `@name/`."""

    async def outside(self, path: str, lines: Sequence[str]) -> Sequence[bool]:
        """For each whole line of a file whether it is from outside: it is marked so, tainted changes
        have brought it or the whole file, or that is another workspace's. Raises PathRefused.
        """

    async def names_outside(self, paths: Sequence[str]) -> bool:
        """Whether text from outside has named one of these files, or folders."""

    async def name_outside(self, paths: Sequence[str]) -> None:
        """Remember that text from outside has named these, for example transcripts. Raises WorkspaceError."""

    async def inspect(self, intent: FileIntent) -> str:
        """After a crash: "before", "after" or "other". An append is "after" when its bytes stand at
        or behind `offset` as one piece, "before" when nothing of them does.
        """

    def problems(self) -> tuple[Problem, ...]:
        """Files that could not be read or were cut, since they last could."""


class NoteWriter(Protocol):
    """Changes of files, made by plan."""

    def lock(self, path: str) -> AbstractAsyncContextManager[None]:
        """Hold the path against our other writers and against other processes that flock it."""

    async def plan(self, path: str, action: FileAction, data: bytes) -> FileIntent:
        """The exact change, from what is on disk now; writes nothing. What is appended begins a line of
        its own: where the last one has no end, the intent's data begin with that. Raises
        PathRefused, FileUnreadable, FileMissing (DELETE).
        """

    async def has_seen(self, path: str, digest: str, reader: Reader) -> bool:
        """Whether the session has seen the file in this state; an absent file counts as seen."""

    async def apply(self, intent: FileIntent, reader: Reader, by: Author = OWNER) -> None:
        """Do it, durably; the session has then seen the result, and the file's history names `by`.
        Raises EditConflict when the file is no longer in the state `before` (for an append: shorter
        than `offset`).
        """


class Workspace(NoteRules, NoteReader, NoteWriter, Protocol):
    """The user's files, reached without ever leaving them."""
