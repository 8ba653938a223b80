"""Checks and normalises workspace paths: one canonical form, all other spellings refused.
No I/O.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from agentd.core.errors import PathRefused
from agentd.core.workspace import FACTS_PATH

MAX_PART_BYTES = 255
MAX_PATH_BYTES = 2_048
PROTECTED = frozenset(
    f"{stem}.md"
    for stem in (
        "soul",
        "agents",
        "user",
        "identity",
        "tools",
        "heartbeat",
        "bootstrap",
        "memory",
        "readme",
    )
)

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.md")
_DRIVE = re.compile(r"[A-Za-z]:($|[/\\])")
# Characters that no name needs: controls, lone surrogates, line and paragraph separators, and
# marks that change the direction in which text is displayed.
_BAD = re.compile(
    r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029"
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_HALVES = re.compile(r"[\ud800-\udfff]")
# A part that needs no further check: no dot first, no space last, no colon, no backslash.
_PLAIN = re.compile(r"[0-9A-Za-z_](?:[ -.0-9;-\[\]-~]*[!-.0-9;-\[\]-~])?")
_FEW = MAX_PATH_BYTES // (MAX_PART_BYTES + 1) - 1  # so many parts never exceed MAX_PATH_BYTES


class Name(Struct, frozen=True):
    """A checked path: the scope ("" is the user's own workspace) and the parts below its root."""

    scope: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        body = "/".join(self.parts)
        return f"@{self.scope}/{body}" if self.scope else body


@lru_cache(maxsize=4096)  # every turn parses the same dozen paths
def parse(path: str) -> Name:
    """Return the name that `path` spells; the root has no parts. Raises PathRefused.

    Outer spaces, empty parts and `.` parts are removed, letters are composed (NFC). Refused are
    absolute and home paths, drives, backslashes, `..` in any disguise, control characters,
    over-long names, and names that begin with a dot: those belong to other programs (`.git/config`
    can run commands).
    """
    found = _parse(path)
    if isinstance(found, str):
        raise _refusal(path, found)
    return found


def below(parent: Name, part: str) -> Name | str:
    """Return the name of the entry `part` on disk in the folder `parent`; if no path spells that
    name, return what is wrong with it, as text.
    """
    parts = (*parent.parts, part)
    name = Name(parent.scope, parts)
    if is_plain(part, len(parts)):
        return name
    if _HALVES.search(part):  # Python decodes bytes that are not UTF-8 to lone surrogates
        return "has a name with bytes that are not UTF-8"
    found = _parse("/".join(parts))
    if isinstance(found, str) or found == Name("", parts):
        return found if isinstance(found, str) else name
    if found.scope:
        return "begins with an @, as other workspaces do"
    if part != part.strip(" "):
        return "has a space before or behind its name"
    return "has a name whose letters are not composed (NFC)"


def is_plain(part: str, depth: int) -> bool:
    """Whether the entry `part` on disk, at that depth below the root, needs no further check,
    because its path is its canonical name. This is true of nearly all entries.
    """
    return depth <= _FEW and _PLAIN.fullmatch(part) is not None


def _parse(path: str) -> Name | str:
    """Return the name, or what is wrong with the path."""
    text = unicodedata.normalize("NFC", path.strip(" "))
    if _BAD.search(text):
        return "has a control character"
    if len(text.encode()) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    if text.startswith("/") or _DRIVE.match(text):
        return "is absolute"
    if "\\" in text:
        return "has a backslash"
    parts = tuple(part for part in text.split("/") if part not in {"", "."})
    scope = ""
    if parts and parts[0].startswith("@"):
        scope, parts = parts[0][1:], parts[1:]
        if not scope:
            return "names no scope"
    if wrong := next((why for part in parts if (why := _fault(part))), ""):
        return wrong
    if parts and parts[0].startswith("~"):
        return "starts in a home directory"
    return Name(scope, parts)


def parse_file(path: str) -> Name:
    """Do what `parse` does, and refuse the root, which is no file. Raises PathRefused."""
    name = parse(path)
    if not name.parts:
        raise _refusal(path, "names no file")
    return name


def fold(part: str) -> str:
    """Return the form in which names are compared: without case, width, invisible characters and
    trailing dots or spaces.
    """
    text = unicodedata.normalize("NFKC", part).casefold()
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", text).strip(" ").rstrip(" .")


def is_protected(name: Name) -> bool:
    """Whether the name is, in any disguise, one of the nine files at the top that shape
    the agent.
    """
    return len(name.parts) == 1 and fold(name.parts[0]) in PROTECTED


def is_injected(name: Name, daily_folders: Iterable[str]) -> bool:
    """Whether prompts may contain the file or a part of it: a protected file, `memory/facts.md`, or
    a daily note of any day, in any disguise.
    """
    if is_protected(name) or "/".join(fold(part) for part in name.parts) == FACTS_PATH:
        return True
    *folder, last = (fold(part) for part in name.parts)
    homes = [[fold(part) for part in daily.split("/")] for daily in daily_folders]
    return folder in homes and _DAY.fullmatch(last) is not None


def _fault(part: str) -> str:
    """Return what is wrong with one part of a path; "" for nothing."""
    if len(part.encode()) > MAX_PART_BYTES:
        return f"has a name longer than {MAX_PART_BYTES} bytes"
    plain = unicodedata.normalize("NFKC", part)
    if ".." in {part, plain.strip(" ")}:
        return "climbs out of its folder"
    if plain.startswith("."):
        return "is hidden: names that begin with a dot are not the agent's"
    return "has a disguised slash" if "/" in plain or "\\" in plain else ""


def _refusal(path: str, why: str) -> PathRefused:
    shown = path if len(path) <= 120 else f"{path[:120]}…"
    return PathRefused(
        f"the path {shown!a} {why}",
        cure="name a file of the workspace, like memory/2026-01-31.md or projects/boat.md",
    )
