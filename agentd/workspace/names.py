"""Spellings of workspace paths: one canonical form, and refusal of every other trick. No I/O."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from agentd.domain.workspace import FACTS_PATH
from agentd.errors import PathRefused

MAX_PART_BYTES = 255
MAX_PATH_BYTES = 2_048
PROTECTED = frozenset(
    f"{stem}.md"
    for stem in (
        *("soul", "agents", "user", "identity", "tools"),
        *("heartbeat", "bootstrap", "memory", "readme"),
    )
)

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.md")
_DRIVE = re.compile(r"[A-Za-z]:($|[/\\])")
# What no name needs: controls, halves of surrogate pairs, line and paragraph separators.
_BAD_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Characters that turn the direction of what a person is shown.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class Name:
    """A checked path: the scope ("" is the user's own workspace) and the parts below its root."""

    scope: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        body = "/".join(self.parts)
        return f"@{self.scope}/{body}" if self.scope else body


@lru_cache(maxsize=4096)  # every turn asks for the same dozen
def parse(path: str) -> Name:
    """The name that `path` spells; no parts mean the root. Raises PathRefused.

    Outer spaces, empty parts and `.` parts go away, letters are composed (NFC). Refused are absolute
    and home paths, drives, backslashes, `..` in any disguise, control characters, over-long names,
    and names that begin with a dot: those belong to other programs (`.git/config` can run commands).
    """
    text = unicodedata.normalize("NFC", path.strip(" "))
    if any(unicodedata.category(c) in _BAD_CATEGORIES or c in _TURNING for c in text):
        raise _refused(path, "has a control character")
    if len(text.encode()) > MAX_PATH_BYTES:
        raise _refused(path, f"is longer than {MAX_PATH_BYTES} bytes")
    if text.startswith("/") or _DRIVE.match(text):
        raise _refused(path, "is absolute")
    if "\\" in text:
        raise _refused(path, "has a backslash")
    parts = tuple(part for part in text.split("/") if part not in {"", "."})
    scope = ""
    if parts and parts[0].startswith("@"):
        scope, parts = parts[0][1:], parts[1:]
        if not scope:
            raise _refused(path, "names no scope")
    for part in parts:
        _check_part(path, part)
    if parts and parts[0].startswith("~"):
        raise _refused(path, "starts in a home directory")
    return Name(scope, parts)


def parse_file(path: str) -> Name:
    """Like `parse`, but the root itself is no file. Raises PathRefused."""
    name = parse(path)
    if not name.parts:
        raise _refused(path, "names no file")
    return name


def fold(part: str) -> str:
    """How a name compares: without case, width, invisible characters and trailing dots or spaces."""
    text = unicodedata.normalize("NFKC", part).casefold()
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", text).strip(" ").rstrip(" .")


def is_protected(name: Name) -> bool:
    """Whether it is one of the nine files at the top that shape the agent, in any disguise."""
    return len(name.parts) == 1 and fold(name.parts[0]) in PROTECTED


def is_injected(name: Name, daily_folders: Iterable[str]) -> bool:
    """Whether prompts ever carry it or a part of it: a protected file, the page of facts, or a note of
    any day, in any disguise.
    """
    if is_protected(name) or "/".join(fold(part) for part in name.parts) == FACTS_PATH:
        return True
    *folder, last = (fold(part) for part in name.parts)
    homes = [[fold(part) for part in daily.split("/")] for daily in daily_folders]
    return folder in homes and _DAY.fullmatch(last) is not None


def _check_part(path: str, part: str) -> None:
    if len(part.encode()) > MAX_PART_BYTES:
        raise _refused(path, f"has a name longer than {MAX_PART_BYTES} bytes")
    plain = unicodedata.normalize("NFKC", part)
    if ".." in {part, plain.strip(" ")}:
        raise _refused(path, "climbs out of its folder")
    if plain.startswith("."):
        raise _refused(path, "is hidden: names that begin with a dot are not the agent's")
    if "/" in plain or "\\" in plain:
        raise _refused(path, "has a disguised slash")


def _refused(path: str, why: str) -> PathRefused:
    shown = path if len(path) <= 120 else f"{path[:120]}…"
    return PathRefused(
        f"the path {shown!a} {why}",
        cure="name a file of the workspace, like memory/2026-01-31.md or projects/boat.md",
    )
