"""What a look at the workspace has listed, sorted out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agentd.domain.health import Problem
from agentd.domain.workspace import TreeEntry

DEPTH = 32  # levels of folders that are looked at
_MOST_NAMED = 20
_GROUP = 16  # files that are taken at once: more keep others waiting and are no quicker
_GROUP_BYTES = 4 * 1024 * 1024


def sorted_out(
    entries: Iterable[TreeEntry],
) -> tuple[dict[str, TreeEntry], list[str]]:
    """The notes by path, and the folders into which nobody has looked."""
    notes: dict[str, TreeEntry] = {}
    deep: list[str] = []
    for entry in entries:
        if entry.is_dir:
            if entry.path.count("/") - entry.path.startswith("@") == DEPTH:
                deep.append(entry.path)
        elif entry.path.casefold().endswith(".md"):
            notes[entry.path] = entry
    return notes, deep


def too_deep(folders: Sequence[str]) -> Iterator[Problem]:
    """The first of them, and how many more there are."""
    cure = "Move it up."
    for path in folders[:_MOST_NAMED]:
        text = f"{path} is {DEPTH} folders deep: nothing in it is searched"
        yield Problem("folder_too_deep", text, cure)
    if (more := len(folders) - _MOST_NAMED) > 0:
        yield Problem("folder_too_deep", f"{more} more folders are as deep", cure)


def groups(entries: Sequence[TreeEntry]) -> Iterator[list[TreeEntry]]:
    """The entries in groups whose files fit into memory together."""
    group: list[TreeEntry] = []
    size = 0
    for entry in entries:
        if group and (len(group) == _GROUP or size + entry.size > _GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(entry)
        size += entry.size
    if group:
        yield group


def is_scope(path: str) -> bool:
    """Whether it is the root of another workspace."""
    return path.startswith("@") and path.count("/") == 1
