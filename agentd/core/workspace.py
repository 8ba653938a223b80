"""Files of the workspace as sessions see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from agentd.core.errors import PathRefused
from agentd.core.turn import Kind, SessionKey


@dataclass(frozen=True, slots=True)
class Reader:
    """Who looks at a file: the kind decides what exists, the session what it has already seen."""

    session: SessionKey
    kind: Kind


@dataclass(frozen=True, slots=True)
class FileView:
    """A file as read: `path` is canonical (`@scope/…` for another scope), `digest` its SHA-256. `is_shared`:
    it exists for groups and isolated sessions too.
    """

    path: str
    text: str
    digest: str
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class Author:
    """Who made a file what it is. `kind` is "model" in the owner's turns, "heartbeat", "job" or
    "flush" in turns that run by themselves, "facts" where the page of facts is kept, "archive" where
    an old note was moved, "owner" for commands, "restore", or "hand" for any change that did not go
    through agentd. A model's change names its session and its tool call. It is tainted when text from
    outside had a part in it; the owner has `approved` it when he has seen the whole file that comes of
    it: all of it is his from then on.
    """

    kind: str
    session: str = ""
    call: str = ""
    tainted: bool = False
    approved: bool = False


BOOTSTRAP_PATH = "BOOTSTRAP.md"  # the questions of a first conversation
TARGETS: Mapping[str, str] = {  # files by the words that commands and models may call them
    "memory": "MEMORY.md",
    "heartbeat": "HEARTBEAT.md",
    "bootstrap": BOOTSTRAP_PATH,
    "soul": "SOUL.md",
    "agents": "AGENTS.md",
    "user": "USER.md",
    "identity": "IDENTITY.md",
    "tools": "TOOLS.md",
}
FACTS_PATH = "memory/facts.md"  # the page of facts
GRAPH_FOLDER = "memory/graph"  # the text of the concept graph
SHARED_PATH = f"{GRAPH_FOLDER}/shared.txt"  # which facts are shared with others
TAKEN_BACK_PATH = f"{GRAPH_FOLDER}/taken-back.txt"  # what others said and is not to come again
CHAIN_PATH = f"{GRAPH_FOLDER}/chain.txt"  # the log of what happened to the graph
CHAIN_HEAD_PATH = f"{GRAPH_FOLDER}/chain.head"  # how that log ends
_GRAPH_FILES = frozenset({SHARED_PATH, TAKEN_BACK_PATH, CHAIN_PATH, CHAIN_HEAD_PATH})
HAND = Author("hand")
OWNER = Author("owner")
RESTORE = Author("restore")


@dataclass(frozen=True, slots=True)
class Version:
    """What a file was. Numbers grow and are never given twice; `digest` is "" where the file was
    deleted. `at` is when it became so, for a change by hand when that was noticed.
    """

    number: int
    at: datetime
    digest: str
    size: int
    by: Author


class TreeEntry(
    NamedTuple
):  # of which a large workspace makes many: a dataclass takes three times as long
    """One line of a listing; directories end in `/`."""

    path: str
    size: int
    is_dir: bool
    mtime_ns: int = 0  # 0: not known
    ctime_ns: int = 0  # the same; nobody can set it
    inode: int = 0
    is_shared: bool = False  # it exists for groups and isolated sessions too

    @property
    def stamp(self) -> tuple[int, int, int, int]:
        """What tells an unchanged file without reading it."""
        return self.size, self.mtime_ns, self.ctime_ns, self.inode


def require_note(path: str, cure: str) -> None:
    """Raises PathRefused with the cure for a file that would take words where nobody finds them."""
    if not path.casefold().endswith(".md"):
        raise PathRefused(f"{path} is no note: only .md files are searched and shown", cure=cure)


def is_graph_text(path: str) -> bool:
    """Whether a path is one of the files that agentd keeps the graph in; the user's table of aliases is
    none of them.
    """
    folded = path.casefold()
    return folded in _GRAPH_FILES or (
        folded.startswith(f"{GRAPH_FOLDER}/") and folded.endswith(".0")
    )
