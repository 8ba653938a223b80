"""The tool `memory_write`: changes one file of the workspace, after a question to the user where
the rules demand it.

Who may write what:
- the owner's sessions: any file; protected files only after the user's yes to the exact bytes;
- turns that have read text from outside: marked entries of today's note; anything else after such a
  yes;
- groups and isolated sessions: files below `[workspace] group_paths`, after a yes for each write;
- heartbeats and flushes: new entries of today's note;
- nobody: the page of facts, which has its own tools, and the text of the concept graph.

Keys are not written (they are removed from the call before). A file that contains one is only
appended to: for another change its bytes would be kept until the change is done.

Hidden text in a file that prompts carry always needs a yes, and is refused where nobody can be
asked. Other suspicious text is a warning in the question, if there is one. What the user allows in
his own session counts as his words; what others write does not.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import EditConflict, FileMissing, PathRefused, ToolFailed
from agentd.core.ports import Clock, ToolHost, Workspace
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.redaction import Redactor
from agentd.core.screening.scanner import Suspicion, scan_change
from agentd.core.tool import Approval, FileAction, FileIntent, Intent, ToolCall, ToolOutput
from agentd.core.turn import Origin, SessionKey, SessionKind
from agentd.core.workspace import (
    BOOTSTRAP_PATH,
    FACTS_PATH,
    TARGETS,
    Author,
    Reader,
    is_graph_text,
    require_note,
)
from agentd.interfaces.tools.fence import MARK, printable, without_marks

log = structlog.get_logger()

MAX_BYTES = 64 * 1024  # of text in one call
_BOOTSTRAP = "bootstrap.md"
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)  # of code
_MOST_WARNINGS = 10  # shown with one question
# Reads under this key do not count as seen by the model's session.
_SELF = SessionKey("memory_write")
_SPEC = ToolSpec(
    "memory_write",
    "Write memory. target: daily_log (default), memory, heartbeat, bootstrap or an .md path. "
    "Appends; append=false replaces, old_string/new_string patch (read first). Empty content ends "
    "bootstrap.",
    {
        "type": "object",
        "properties": {
            "content": {"type": "string"},
            "target": {"type": "string"},
            "append": {"type": "boolean"},
            "old_string": {"type": "string"},
            "new_string": {"type": "string"},
            "replace_all": {"type": "boolean"},
        },
        "additionalProperties": False,
    },
    Effect.FILE,
    "edit",
    is_guarded=True,
)


class MemoryWrite:
    """Writes through the workspace. The change is journalled before and settled after a crash."""

    spec = _SPEC

    def __init__(
        self, workspace: Workspace, clock: Clock, redactor: Redactor | None = None
    ) -> None:
        self._workspace = workspace
        self._redactor = redactor or Redactor()
        self._clock = clock

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return which file was changed. Raises ToolFailed, EditConflict or PathRefused, with a
        cure.
        """
        note = self._workspace.daily_note()  # read once: the day may change while this runs
        change = parse(self._path(call, note), call.input)
        is_entry = change.path == note and change.mode is WriteMode.APPEND
        self._permit(call, change, is_entry=is_entry)
        stamp = self._stamp(call) if is_entry else None
        approved: FileIntent | None = None
        while True:
            async with self._workspace.lock(change.path):
                draft = await self._draft(call, change, stamp)
                if draft.approval is None or draft.intent == approved:
                    await host.intend(draft.intent)
                    allowed = approved is not None
                    await self._apply(draft.intent, replace(call, approved=allowed))
                    return ToolOutput(f"{_DONE[change.mode]} {change.path}.")
            if approved is not None:
                raise _changed_error(change.path)
            if not await host.approve(draft.approval):
                return ToolOutput(f"The user did not allow a change of {change.path}.", True)
            approved = draft.intent

    async def settle(self, intent: Intent) -> ToolOutput:
        """Apply the change if the file is as it was before; never overwrite anything else. Raises
        ToolFailed if the write had not begun. If the file is another one now, the output is an
        error.
        """
        if intent.file is None:
            raise ToolFailed("a restart cut this write before it began", cure="Write again.")
        path = intent.file.path
        async with self._workspace.lock(path):
            state = await self._workspace.inspect(intent.file)
            if state == "before":
                await self._apply(intent.file, intent.call)
        if state in {"before", "after"}:
            return ToolOutput(f"Saved {path}.")
        return ToolOutput(
            f"A restart cut this write, and {path} has changed since: nothing was written. "
            "Read it and decide again.",
            is_error=True,
        )

    def _path(self, call: ToolCall, note: str) -> str:
        target = str(call.input.get("target") or "daily_log")
        if target == "daily_log":
            return note
        path = self._workspace.canonical(TARGETS.get(target, target))
        if path.startswith(("@", "sessions/")):
            msg = f"{path} can only be read"
            raise PathRefused(msg, cure="Write to a file of the workspace itself.")
        is_page = path.casefold() == self._workspace.canonical(FACTS_PATH).casefold()
        if is_page or is_graph_text(path):
            msg = f"{path} is written by agentd alone"
            raise PathRefused(msg, cure="Use remember or forget.")
        require_note(path, f"Write to {path}.md, or to a target that has a name.")
        return path

    def _permit(self, call: ToolCall, change: NoteChange, *, is_entry: bool) -> None:
        runs_alone = call.origin.is_silent
        if call.kind is not SessionKind.OWNER:
            # Others speak in this session, so the owner is asked about each write.
            if runs_alone or self._workspace.is_owner_only(change.path):
                raise _forbidden(change.path)
        elif runs_alone and not is_entry:
            msg = "this turn runs without the user: it may only add to today's note"
            raise ToolFailed(msg, cure="Use target daily_log with append.")

    def _stamp(self, call: ToolCall) -> NoteStamp:
        time = self._clock.now().astimezone(self._clock.zone).strftime("%H:%M")
        if call.tainted:
            return NoteStamp(time, "untrusted")
        # A flush saves what was said in the owner's conversation.
        is_owners = call.origin in {Origin.USER, Origin.FLUSH}
        return NoteStamp(time, "" if is_owners else str(call.origin))

    async def _draft(self, call: ToolCall, change: NoteChange, stamp: NoteStamp | None) -> _Draft:
        current, digest = await self._current(change.path, call.kind)
        if change.mode in {WriteMode.REPLACE, WriteMode.PATCH} and self._redactor.holds(
            current or ""
        ):
            msg = f"{change.path} holds a key, so agentd only adds to it"
            raise ToolFailed(msg, cure="Append, or ask the user to keep the key somewhere else.")
        data = new_content(change, current, stamp)
        intent = await self._planned(call, change, data)
        if intent.before != digest:
            raise _changed_error(change.path)
        if change.mode in {WriteMode.REPLACE, WriteMode.PATCH} and current:
            reader = Reader(call.session, call.kind)
            if not await self._workspace.has_seen(change.path, intent.before, reader):
                msg = f"{change.path} has text that this session has not read as it is now"
                raise EditConflict(msg, cure="Read it with memory_read, then write.")
        before = current or ""
        after = intent.data.decode()
        if change.mode is WriteMode.APPEND:
            after = before + after
        found = await self._screened(change.path, before, after, call)
        is_hidden = any(suspicion.is_high for suspicion in found)
        ask = (
            call.careful
            or call.kind is not SessionKind.OWNER
            or (call.tainted and stamp is None)
            or self._workspace.is_protected(change.path)
            or (change.mode is not WriteMode.APPEND and alters_marks(before, after))
            or (change.mode is WriteMode.PATCH and await self._holds_outside(change.path, before))
        )
        if is_hidden and not ask and (call.tainted or call.origin.is_silent):
            msg = f"{change.path} would hold text that nobody sees: {next(filter(_is_high, found))}"
            raise ToolFailed(msg, cure="Write it without such characters.")
        if not ask and not is_hidden:
            return _Draft(intent, None)
        approval = Approval(
            title=f"{'Delete' if change.mode is WriteMode.DELETE else 'Write'} {change.path}",
            digest=intent.after or hashlib.sha256(b"").hexdigest(),
            path=change.path,
            old_text=current,
            new_text=after,
            scope=await self._scope(call, change.path, found),
            warnings=tuple(f"{change.path}:{suspicion}" for suspicion in found[:_MOST_WARNINGS]),
        )
        return _Draft(intent, approval)

    async def _holds_outside(self, path: str, text: str) -> bool:
        """Return whether a line of the text, part of which a patch leaves in place, is from
        outside.
        """
        return any(await self._workspace.outside(path, text.split("\n")))

    async def _planned(self, call: ToolCall, change: NoteChange, data: bytes) -> FileIntent:
        try:
            return await self._workspace.plan(change.path, change.mode.action, data)
        except PathRefused:
            if call.kind is SessionKind.OWNER:
                raise
            raise _forbidden(change.path) from None  # do not tell others what is there

    async def _screened(
        self, path: str, before: str, after: str, call: ToolCall
    ) -> tuple[Suspicion, ...]:
        """Return and log the suspicious places of a change; none for a file that prompts do not
        carry.
        """
        if not self._workspace.is_injected(path):
            return ()
        found = await asyncio.to_thread(scan_change, before, after)
        for suspicion in found:
            log.warning(
                "suspicious_write",
                session=call.session,
                path=path,
                severity=str(suspicion.severity),
                reason=suspicion.reason,
                line=suspicion.line,
                column=suspicion.column,
            )
        return found

    async def _scope(self, call: ToolCall, path: str, found: Iterable[Suspicion]) -> str:
        """Return how far a yes reaches: "once", or, for a protected file while BOOTSTRAP.md has
        text, the conversation for as long as it is the same BOOTSTRAP.md. Hidden text is always
        "once".
        """
        if any(suspicion.is_high for suspicion in found):
            return "once"
        if call.kind is not SessionKind.OWNER or not self._workspace.is_protected(path):
            return "once"
        # A new file with the name BOOTSTRAP.md needs a new yes.
        life = await self._workspace.life(BOOTSTRAP_PATH)
        return f"bootstrap:{life}:{path}" if life else "once"

    async def _current(self, path: str, kind: SessionKind) -> tuple[str | None, str]:
        try:
            view = await self._workspace.read(path, Reader(_SELF, kind))
        except FileMissing:
            return None, ""
        return view.text, view.digest

    async def _apply(self, intent: FileIntent, call: ToolCall) -> None:
        # A session that appends to a file it has not read still has not seen the file.
        reader = Reader(call.session, call.kind)
        seen = await self._workspace.has_seen(intent.path, intent.before, reader)
        kind = "model" if call.origin is Origin.USER else str(call.origin)
        # What the owner has allowed counts as his; what others write stays theirs, even if allowed.
        is_his = call.approved and call.kind is SessionKind.OWNER
        by = Author(
            kind,
            call.session,
            call.id,
            tainted=not is_his and (call.tainted or call.kind is not SessionKind.OWNER),
            approved=is_his,
        )
        await self._workspace.apply(intent, reader if seen else Reader(_SELF, call.kind), by)


class NoteChange(Struct, frozen=True):
    """A change of one file. A patch replaces `old` by `content`: its only occurrence, or all if
    `every`.
    """

    path: str
    mode: WriteMode
    content: str
    old: str = ""
    every: bool = False


class NoteStamp(Struct, frozen=True):
    """The time and origin that are written with an entry in today's note."""

    time: str  # HH:MM in the owner's zone
    origin: str = ""  # "heartbeat", "job" or "untrusted"; "" for the owner's own words


class WriteMode(StrEnum):
    """How a file is changed."""

    APPEND = "append"
    REPLACE = "replace"
    PATCH = "patch"
    DELETE = "delete"

    @property
    def action(self) -> FileAction:
        """The file action that carries out the change."""
        if self is WriteMode.APPEND:
            return FileAction.APPEND
        return FileAction.DELETE if self is WriteMode.DELETE else FileAction.WRITE


def parse(path: str, arguments: Mapping[str, Any]) -> NoteChange:
    """Return the change to `path` that the arguments ask for. Raises ToolFailed for text that may
    not be written.
    """
    old = str(arguments.get("old_string") or "")
    if old:
        new = _clean(str(arguments.get("new_string") or ""))
        return NoteChange(
            path, WriteMode.PATCH, new, _unix(old), bool(arguments.get("replace_all", False))
        )
    if "content" not in arguments:
        raise ToolFailed("there is no content", cure="Give content, or old_string and new_string.")
    content = _clean(str(arguments["content"]))
    if not content.strip():
        if path.casefold() == _BOOTSTRAP:
            return NoteChange(path, WriteMode.DELETE, "")
        raise ToolFailed("the content is empty", cure="Say what is to be written.")
    mode = WriteMode.APPEND if arguments.get("append", True) else WriteMode.REPLACE
    return NoteChange(path, mode, content)


def new_content(change: NoteChange, current: str | None, stamp: NoteStamp | None) -> bytes:
    """Return the bytes to append, or the whole new file. `current` is None for an absent file; with
    `stamp` an append becomes an entry of a daily note. Raises ToolFailed for a patch that does not
    fit.
    """
    match change.mode:
        case WriteMode.APPEND:
            if stamp is None:
                return _with_newline(change.content).encode()
            head = "" if current else f"# {PurePosixPath(change.path).stem}\n\n"
            return (head + entry(change.content, stamp)).encode()
        case WriteMode.REPLACE:
            return _with_newline(change.content).encode()
        case WriteMode.PATCH:
            return _patch(change, current).encode()
        case WriteMode.DELETE:
            return b""


def entry(text: str, stamp: NoteStamp) -> str:
    """Return `text` as a list item of a daily note: `- [HH:MM] text`, further lines indented.

    If the stamp has an origin, every line ends in a mark that names it, and blank lines are left
    out. Code fences are escaped then: a closing fence with a mark behind it would not close, and
    one without a mark would get into prompts, which leave out lines of others.
    """
    lines = (_FENCE.sub(_escape_fence, text) if stamp.origin else text).strip().split("\n")
    lines[0] = lines[0].removeprefix("- ").removeprefix("* ")
    mark = f" <!-- agentd: origin={stamp.origin} -->" if stamp.origin else ""
    kept = [line.rstrip() for line in lines if line.strip() or not mark]
    body = [f"- [{stamp.time}] {kept[0]}", *(f"  {line}" if line else "" for line in kept[1:])]
    return "".join(f"{line}{mark}\n" for line in body)


def _escape_fence(fence: re.Match[str]) -> str:
    return "".join(f"\\{mark}" if mark in "`~" else mark for mark in fence[0])


def alters_marks(before: str, after: str) -> bool:
    """Return whether a line with an origin mark was added, changed or removed."""
    return _marked_lines(before) != _marked_lines(after)


def _patch(change: NoteChange, current: str | None) -> str:
    count = (current or "").count(change.old)
    if current is None or not count:
        msg = f"old_string is not in {change.path}"
        raise ToolFailed(msg, cure="Read the file and copy the text exactly.")
    if count > 1 and not change.every:
        msg = f"old_string stands {count} times in {change.path}"
        raise ToolFailed(msg, cure="Give more of the surrounding text, or set replace_all.")
    return current.replace(change.old, change.content)


def _marked_lines(text: str) -> list[str]:
    return sorted(line for line in text.split("\n") if MARK.search(line))


def _clean(text: str) -> str:
    text = _unix(text)
    size = len(text.encode(errors="replace"))
    if size > MAX_BYTES:
        msg = f"the content has {size} bytes; at most {MAX_BYTES} are written at once"
        raise ToolFailed(msg, cure="Write it in smaller parts.")
    if printable(text) != text:
        raise ToolFailed(
            "the content has control characters", cure="Write plain text without them."
        )
    return without_marks(text)


def _unix(text: str) -> str:
    for end in ("\r\n", "\u2028", "\u2029"):  # other line ends become newlines
        text = text.replace(end, "\n")
    return text


def _with_newline(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


_DONE = {
    WriteMode.APPEND: "Added to",
    WriteMode.REPLACE: "Wrote",
    WriteMode.PATCH: "Changed",
    WriteMode.DELETE: "Deleted",
}


class _Draft(Struct, frozen=True):
    """A change worked out against the file on disk; `approval` is the question if the user must be
    asked.
    """

    intent: FileIntent
    approval: Approval | None


def _is_high(suspicion: Suspicion) -> bool:
    return suspicion.is_high


def _forbidden(path: str) -> ToolFailed:
    return ToolFailed(f"this session cannot write {path}")


def _changed_error(path: str) -> EditConflict:
    msg = f"{path} changed meanwhile; nothing was written"
    return EditConflict(msg, cure="Read it and write again.")
