"""What a call of `memory_write` asks for, and the bytes that come of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from agentd.domain.tool import FileAction
from agentd.errors import ToolFailed
from agentd.tools.fence import MARK, printable, without_marks

MAX_BYTES = 64 * 1024  # of text in one call
_BOOTSTRAP = "bootstrap.md"


class Mode(StrEnum):
    """How the file is to change."""

    APPEND = "append"
    REPLACE = "replace"
    PATCH = "patch"
    DELETE = "delete"

    @property
    def action(self) -> FileAction:
        """The file's change that it takes."""
        if self is Mode.APPEND:
            return FileAction.APPEND
        return FileAction.DELETE if self is Mode.DELETE else FileAction.WRITE


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `old` is what a patch replaces by `content`, everywhere if `every`."""

    path: str
    mode: Mode
    content: str
    old: str = ""
    every: bool = False


@dataclass(frozen=True, slots=True)
class Stamp:
    """What stands around the words of an entry in today's note."""

    time: str  # HH:MM in the owner's zone
    origin: str = ""  # "heartbeat", "job" or "untrusted"; "" for the owner's own words


def parse(path: str, arguments: Mapping[str, Any]) -> Change:
    """The change to `path`. Raises ToolFailed for text that may not be written."""
    old = str(arguments.get("old_string") or "")
    if old:
        new = _clean(str(arguments.get("new_string") or ""))
        return Change(path, Mode.PATCH, new, _unix(old), bool(arguments.get("replace_all", False)))
    if "content" not in arguments:
        raise ToolFailed("there is no content", cure="Give content, or old_string and new_string.")
    content = _clean(str(arguments["content"]))
    if not content.strip():
        if path.casefold() == _BOOTSTRAP:
            return Change(path, Mode.DELETE, "")
        raise ToolFailed("the content is empty", cure="Say what is to be written.")
    mode = Mode.APPEND if arguments.get("append", True) else Mode.REPLACE
    return Change(path, mode, content)


def written(change: Change, current: str | None, stamp: Stamp | None) -> bytes:
    """The bytes to append, or the whole new file. `current` is None for an absent file; `stamp`
    makes an append an entry of a daily note. Raises ToolFailed for a patch that does not fit.
    """
    match change.mode:
        case Mode.APPEND:
            if stamp is None:
                return _ended(change.content).encode()
            head = "" if current else f"# {PurePosixPath(change.path).stem}\n\n"
            return (head + entry(change.content, stamp)).encode()
        case Mode.REPLACE:
            return _ended(change.content).encode()
        case Mode.PATCH:
            return _patched(change, current).encode()
        case Mode.DELETE:
            return b""


def entry(text: str, stamp: Stamp) -> str:
    """`text` as a list item of a daily note: `- [HH:MM] text`, further lines indented.

    With an origin every line ends in a remark that names it, and blank lines are left out.
    """
    lines = text.strip().split("\n")
    lines[0] = lines[0].removeprefix("- ").removeprefix("* ")
    mark = f" <!-- agentd: origin={stamp.origin} -->" if stamp.origin else ""
    kept = [line.rstrip() for line in lines if line.strip() or not mark]
    body = [f"- [{stamp.time}] {kept[0]}", *(f"  {line}" if line else "" for line in kept[1:])]
    return "".join(f"{line}{mark}\n" for line in body)


def alters_marks(before: str, after: str) -> bool:
    """Whether a line with a remark of ours is gone, changed or new."""
    return _marked(before) != _marked(after)


def _patched(change: Change, current: str | None) -> str:
    count = (current or "").count(change.old)
    if current is None or not count:
        msg = f"old_string is not in {change.path}"
        raise ToolFailed(msg, cure="Read the file and copy the text exactly.")
    if count > 1 and not change.every:
        msg = f"old_string stands {count} times in {change.path}"
        raise ToolFailed(msg, cure="Give more of the surrounding text, or set replace_all.")
    return current.replace(change.old, change.content)


def _marked(text: str) -> list[str]:
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
    for end in ("\r\n", "\u2028", "\u2029"):  # what others take for the end of a line is one here
        text = text.replace(end, "\n")
    return text


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
