"""Values of workspace files: readers, contents, authors, versions, listings, and well-known
paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from agentd.core.errors import PathRefused
from agentd.core.turn import SessionKey, SessionKind


class Reader(Struct, frozen=True):
    """Who reads a file: `kind` decides which files are visible, `session` which count as seen."""

    session: SessionKey
    kind: SessionKind


class FileView(Struct, frozen=True):
    """The content of a file: `path` is canonical (`@scope/…` for another scope), `digest` its
    SHA-256. `is_shared`: groups and isolated sessions may see it, too.
    """

    path: str
    text: str
    digest: str
    is_shared: bool = False


class Author(Struct, frozen=True):
    """Who brought a file into its state.

    `kind` is "model" in the owner's turns; "heartbeat", "job" or "flush" in turns that run by
    themselves; "facts" for updates of the page of facts; "archive" for a moved old note; "owner"
    for commands; "restore"; or "hand" for any change that did not go through agentd. A model's
    change names its session and its tool call.

    `tainted`: text from outside had a part in the change. `approved`: the owner saw the whole
    resulting file and approved it, so all of it counts as his from then on.
    """

    kind: str
    session: str = ""
    call: str = ""
    tainted: bool = False
    approved: bool = False


BOOTSTRAP_PATH = "BOOTSTRAP.md"  # the questions of a first conversation
TARGETS: Mapping[str, str] = {  # names of files that commands and models may use
    "memory": "MEMORY.md",
    "heartbeat": "HEARTBEAT.md",
    "bootstrap": BOOTSTRAP_PATH,
    "soul": "SOUL.md",
    "agents": "AGENTS.md",
    "user": "USER.md",
    "identity": "IDENTITY.md",
    "tools": "TOOLS.md",
}
LISTED_DEPTH = 32  # depth to which folders of notes are listed
FACTS_PATH = "memory/facts.md"  # the page of facts
GRAPH_FOLDER = "memory/graph"  # the text of the concept graph
SHARED_PATH = f"{GRAPH_FOLDER}/shared.txt"  # which facts are shared with others
TAKEN_BACK_PATH = f"{GRAPH_FOLDER}/taken-back.txt"  # what others said and may not be added again
CHAIN_PATH = f"{GRAPH_FOLDER}/chain.txt"  # the log of what happened to the graph
CHAIN_HEAD_PATH = f"{GRAPH_FOLDER}/chain.head"  # how that log ends
_GRAPH_FILES = frozenset({SHARED_PATH, TAKEN_BACK_PATH, CHAIN_PATH, CHAIN_HEAD_PATH})
HAND = Author("hand")
OWNER = Author("owner")
RESTORE = Author("restore")


class Version(Struct, frozen=True):
    """A former state of a file. Numbers ascend and are never reused; `digest` is "" where the file
    was deleted. `at` is when this state began; for a change by hand, when it was noticed.
    """

    number: int
    at: datetime
    digest: str
    size: int
    by: Author


class TreeEntry(Struct, frozen=True, gc=False):  # a large workspace has many of these
    """One line of a listing; directories end in `/`."""

    path: str
    size: int
    is_dir: bool
    mtime_ns: int = 0  # 0: not known
    ctime_ns: int = 0  # 0: not known; unlike mtime, cannot be set
    inode: int = 0
    is_shared: bool = False  # groups and isolated sessions may see it, too

    @property
    def stamp(self) -> tuple[int, int, int, int]:
        """Values that change with the file, to detect a change without reading it."""
        return self.size, self.mtime_ns, self.ctime_ns, self.inode


def require_note(path: str, cure: str) -> None:
    """Raise PathRefused for a path whose text would not be searched or shown: that of no .md file,
    with `cure`, and of a file in a folder that is not listed.
    """
    if path.count("/") >= LISTED_DEPTH:
        told = f"{path} is {LISTED_DEPTH} folders deep or more: nothing there is searched"
        raise PathRefused(told, cure="Write to a folder further up.")
    if not path.casefold().endswith(".md"):
        raise PathRefused(f"{path} is no note: only .md files are searched and shown", cure=cure)


def is_graph_text(path: str) -> bool:
    """Whether the path is one of the files in which agentd keeps the graph; the user's table of
    aliases is not.
    """
    folded = path.casefold()
    return folded in _GRAPH_FILES or (
        folded.startswith(f"{GRAPH_FOLDER}/") and folded.endswith(".0")
    )
