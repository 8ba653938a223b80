"""Exact changes to files of the workspace: planned, done once, recognised after a crash. Blocking.

Whoever calls `plan` and `apply` holds the lock of the path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from agentd.domain.tool import FileAction, FileIntent
from agentd.errors import EditConflict, WorkspaceError
from agentd.workspace.folder import Folder, too_large
from agentd.workspace.refusals import missing, translated
from agentd.workspace.versions import Versions

MAX_READ_BYTES = 1 << 20
MAX_WRITE_BYTES = 256 << 10


class Changes:
    """Changes below one folder; `versions` keeps what a replacement or a deletion takes away."""

    def __init__(self, folder: Folder, versions: Versions | None) -> None:
        self._folder = folder
        self._versions = versions

    def plan(self, parts: Sequence[str], action: FileAction, data: bytes) -> FileIntent:
        """The change from what is on disk now. An append to a file that lacks a final newline gets
        one first. Raises PathRefused, FileUnreadable, FileMissing (DELETE).
        """
        path = "/".join(parts)
        if len(data) > MAX_WRITE_BYTES:
            raise too_large(f"the new text for {path}", len(data), MAX_WRITE_BYTES)
        with translated(path):
            old = self._folder.read_for_change(parts, MAX_READ_BYTES)
        before = digest_of(old)
        if action is FileAction.DELETE:
            if old is None:
                raise missing(path)
            return FileIntent(path, action, before, "", b"")
        if action is FileAction.WRITE:
            return FileIntent(path, action, before, digest_of(data), data)
        start = old or b""
        if start and data and not start.endswith(b"\n"):
            data = b"\n" + data
        if len(start) + len(data) > MAX_READ_BYTES:
            raise too_large(path, len(start) + len(data), MAX_READ_BYTES)
        return FileIntent(path, action, before, digest_of(start + data), data, len(start))

    def apply(self, parts: Sequence[str], intent: FileIntent, at: datetime) -> bool:
        """Do it. False when an append went behind bytes that came after the plan, so that the file
        is not as planned. Raises EditConflict.
        """
        with translated(intent.path):
            old = self._folder.read_for_change(parts, MAX_READ_BYTES)
            as_planned = digest_of(old) == intent.before
            if intent.action is FileAction.APPEND:
                self._folder.append(parts, intent.data, intent.offset)
                return as_planned
            if not as_planned:
                raise EditConflict(
                    f"{intent.path} has changed since it was read",
                    cure="read it again, then repeat the change on what it says now",
                )
            if old is not None and self._versions is not None:
                self._versions.add(intent.path, old, at)
            if intent.action is FileAction.DELETE:
                self._folder.delete(parts)
            else:
                self._folder.replace(parts, intent.data)
        return True

    def inspect(self, parts: Sequence[str], intent: FileIntent) -> str:
        """Whether the change was done: "after", "before", or "other" when it cannot be told."""
        try:
            with translated(intent.path):
                now = self._folder.read_for_change(parts, MAX_READ_BYTES)
        except WorkspaceError:
            return "other"
        if intent.action is FileAction.APPEND:
            return _inspect_append(now, intent)
        digest = digest_of(now)
        if digest == intent.after:
            return "after"
        return "before" if digest == intent.before else "other"


def digest_of(data: bytes | None) -> str:
    """SHA-256 in hex; "" for an absent file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _inspect_append(now: bytes | None, intent: FileIntent) -> str:
    if now is None:
        return "other" if intent.before else "before"
    if len(now) < intent.offset:
        return "other"
    tail = now[intent.offset :]
    if intent.data in tail:
        return "after"
    is_torn = tail != b"" and intent.data.startswith(tail)
    return "other" if is_torn else "before"
