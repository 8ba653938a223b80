"""Exact changes to files of the workspace: planned first, made once, and recognised after a crash.
Blocking.

The caller of `plan` and `apply` holds the lock of the path.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import structlog

from agentd.core.errors import EditConflict, FileUnreadable, WorkspaceError
from agentd.core.tool import FileAction, FileIntent
from agentd.core.workspace import FACTS_PATH, HAND, Author, is_graph_text
from agentd.workspace.folder import Folder, too_large
from agentd.workspace.os_errors import missing, translate_os_errors
from agentd.workspace.versions import Content, Versions, digest_of

if TYPE_CHECKING:
    from _hashlib import HASH

log = structlog.get_logger()

MAX_READ_BYTES = 1 << 20
MAX_WRITE_BYTES = 256 << 10
_LARGE = 1 << 16  # bytes; contents of this size take longer to hash than to compare
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
TRIES = 16  # of a change, while another program goes on writing to the file
OWN_BYTES = 64 << 20  # the limit for files that agentd itself fills


class GrowingDigest:
    """Computes `digest_of` contents and remembers the hash states of the last two large ones. Of a
    content that equals or extends one of these, only the new bytes are hashed. Methods may be
    called from threads.
    """

    def __init__(self) -> None:
        self._last: tuple[tuple[bytes, HASH], ...] = ()

    def of(self, data: bytes | None) -> str:
        """Return the SHA-256 in hex; "" for an absent file."""
        if data is None or len(data) < _LARGE:
            return digest_of(data)
        for known, state in self._last:
            if data.startswith(known):
                digest = state.copy()
                digest.update(memoryview(data)[len(known) :])
                break
        else:
            digest = hashlib.sha256(data)
        others = [one for one in self._last if one[0] != data]
        self._last = ((data, digest), *others[:1])
        return digest.hexdigest()

    def let_go(self, data: bytes | None) -> None:
        """Forget this content: it may contain words that the owner wants to be forgotten."""
        self._last = tuple(one for one in self._last if one[0] != data)


class FileChanges:
    """Makes changes to the files of one folder. `versions` keeps the earlier contents and the
    author of each change, except for the graph's text: what was removed from that must not be kept
    anywhere.
    """

    def __init__(
        self, folder: Folder, versions: Versions | None, digests: GrowingDigest | None = None
    ) -> None:
        self._folder = folder
        self._versions = versions
        self._digests = digests or GrowingDigest()

    def plan(
        self,
        parts: Sequence[str],
        action: FileAction,
        data: bytes,
        limit: int = MAX_WRITE_BYTES,
    ) -> FileIntent:
        """Return the change relative to what is on disk now, without making it. An append to a file
        that lacks a final newline starts with one; one to a file in UTF-16 is refused. `limit` is
        the most bytes that `data` may have. Raises PathRefused, FileUnreadable, and FileMissing
        (DELETE).
        """
        path = "/".join(parts)
        limit, most = most_bytes(path, limit), most_bytes(path)
        if len(data) > limit:
            raise too_large(f"the new text for {path}", len(data), limit)
        with translate_os_errors(path):
            old = self._folder.read_for_change(parts, most)
        before = self._digests.of(old)
        if action is FileAction.DELETE:
            if old is None:
                raise missing(path)
            return FileIntent(path, action, before, "", b"")
        if action is FileAction.WRITE:
            return FileIntent(path, action, before, self._digests.of(data), data)
        start = old or b""
        if start.startswith(_UTF_16):
            raise FileUnreadable(
                f"{path} is UTF-16, in which nothing that is added could be read",
                cure="`agentd doctor` names the command that converts it",
            )
        if start and data and not start.endswith(b"\n"):
            data = b"\n" + data
        if len(start) + len(data) > most:
            raise too_large(path, len(start) + len(data), most)
        return FileIntent(path, action, before, self._digests.of(start + data), data, len(start))

    def apply(self, parts: Sequence[str], intent: FileIntent, at: datetime, by: Author) -> bool:
        """Make the change; return whether the file is now exactly as planned. It is not if other
        programs wrote to the file in the meantime: what they had added before an append stays in
        front of it, and what they added while the file was being replaced goes behind it. Raises
        EditConflict if the file changed in any other way, or changes all the time.
        """
        with translate_os_errors(intent.path):
            for _ in range(TRIES):
                data = self._folder.read_for_change(parts, most_bytes(intent.path))
                old = Content(data, self._digests.of(data))
                as_planned = old.digest == intent.before
                if not (as_planned or _takes_append(old.data, intent)):
                    break
                new = _outcome(old.data, intent)
                with suppress(EditConflict):
                    known = intent.after if as_planned else ""
                    late = self._make(parts, intent, old, Content(new, known), at, by)
                    if late:
                        self._put_behind(parts, intent.path, late, at)
                    return as_planned and not late
        raise changed_error(intent.path)

    def _make(
        self,
        parts: Sequence[str],
        intent: FileIntent,
        old: Content,
        new: Content,
        at: datetime,
        by: Author,
    ) -> bytes:
        """Replace `old` by `new`; return what others appended to the old file while it was being
        replaced. Raises EditConflict if the file's content is no longer `old`.
        """
        is_other = old.data != new.data
        if is_other and (versions := self._kept_of(intent.path)) is not None:
            if by.tainted:
                versions.record_outside_names(self._new_folders(parts))
            versions.begin(intent.path, old, new, by, at)
        last_look, late = partial(self._look, parts, old.digest), b""
        if new.data is None:
            self._folder.delete(parts, last_look)
        else:
            late = self._folder.exchange(parts, new.data, last_look)
        self._digests.let_go(old.data)
        if is_other:
            self._note(intent.path, old, new)
        return late

    def _put_behind(self, parts: Sequence[str], path: str, late: bytes, at: datetime) -> None:
        """Append to the new file what others wrote to the file that it replaced. If that fails, the
        bytes are lost and a warning is logged.
        """
        error: WorkspaceError = changed_error(path)
        for _ in range(TRIES):  # after a conflict, since no caller is left who could try again
            try:
                intent = self.plan(parts, FileAction.APPEND, late, MAX_READ_BYTES)
                self.apply(parts, intent, at, HAND)
            except EditConflict:
                continue
            except WorkspaceError as other:  # too large, for instance; the change is made
                error = other
                break
            return
        log.warning("late_lines_lost", path=path, bytes=len(late), reason=error.reason)

    def _new_folders(self, parts: Sequence[str]) -> list[str]:
        """Return the folders that writing this file would create, as paths."""
        depth = len(parts) - 1
        while depth and not self._is_there(parts[:depth]):
            depth -= 1
        return ["/".join(parts[:end]) for end in range(depth + 1, len(parts))]

    def _is_there(self, folder: Sequence[str]) -> bool:
        try:
            self._folder.entries(folder)
        except FileNotFoundError:
            return False
        return True

    def _look(self, parts: Sequence[str], digest: str) -> None:
        """Check that the file still has this digest. Raises EditConflict if not."""
        if self.digest(parts) != digest:
            raise changed_error("/".join(parts))

    def _note(self, path: str, old: Content, new: Content) -> None:
        """Record the new state as a version. On an OSError only log it: the change is made and the
        earlier content is kept, and the next change records this state.
        """
        versions = self._kept_of(path)
        if versions is None:
            return
        try:
            versions.finish(path, old, new)
        except OSError as error:
            log.warning("version_not_noted", path=path, error=error.strerror)

    def _kept_of(self, path: str) -> Versions | None:
        return None if is_graph_text(path) else self._versions

    def digest(self, parts: Sequence[str]) -> str:
        """Return the SHA-256 of the file on disk, in hex; "" if there is none."""
        return self._digests.of(self._folder.read_for_change(parts, most_bytes("/".join(parts))))

    def inspect(self, parts: Sequence[str], intent: FileIntent) -> str:
        """Tell the state of a planned change: "after" if it was made, "before" if not, "other" if
        the file is in neither state or cannot be read.
        """
        try:
            with translate_os_errors(intent.path):
                now = self._folder.read_for_change(parts, most_bytes(intent.path))
        except WorkspaceError:
            return "other"
        if intent.action is FileAction.APPEND:
            return _inspect_append(now, intent)
        digest = digest_of(now)
        if digest == intent.after:
            return "after"
        return "before" if digest == intent.before else "other"


def most_bytes(path: str, usual: int = MAX_READ_BYTES) -> int:
    """Return how many bytes the file may have: OWN_BYTES for `memory/facts.md` and the graph's
    text, `usual` for all others.
    """
    return OWN_BYTES if path == FACTS_PATH or is_graph_text(path) else usual


def changed_error(path: str) -> EditConflict:
    """Return the error for a file that others have written to in the meantime."""
    return EditConflict(
        f"{path} has changed since it was read",
        cure="read it again, then repeat the change on what it says now",
    )


def _outcome(old: bytes | None, intent: FileIntent) -> bytes | None:
    if intent.action is FileAction.DELETE:
        return None
    return (old or b"") + intent.data if intent.action is FileAction.APPEND else intent.data


def _takes_append(old: bytes | None, intent: FileIntent) -> bool:
    """Whether the change is an append and the file is no shorter than when it was planned."""
    return intent.action is FileAction.APPEND and len(old or b"") >= intent.offset


def _inspect_append(now: bytes | None, intent: FileIntent) -> str:
    if now is None:
        return "other" if intent.before else "before"
    if len(now) < intent.offset:
        return "other"
    return "after" if intent.data in now[intent.offset :] else "before"
