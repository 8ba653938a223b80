"""Who may see which file. No I/O.

The owner's sessions see everything of the user's own workspace. For sessions in which others read along
(groups) and for isolated ones there is what stands below the folders of `[workspace] group_paths`, and
nothing else: a file is theirs because somebody has named its folder, never because its name looks
harmless. A file that has a second name on the disk (a hard link) is not theirs either, since that name
may be anywhere; this is looked at where the file is opened, and cannot be told from its path.

Four files that shape the agent are in the prompt of every session, though only prompts find them.

Another scope is seen by the owner alone, and without its identity files: whose agent this is, is said by
the user's own workspace only. Those names are compared folded, wherever they stand in a path.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentd.core.turn import Kind
from agentd.workspace.names import Name, fold, parse

IN_EVERY_PROMPT = frozenset({"SOUL.md", "AGENTS.md", "TOOLS.md", "IDENTITY.md"})
_IDENTITY = frozenset({"agents", "soul", "user", "identity", "tools", "bootstrap", "heartbeat"})


class Visibility:
    """Answers whether a kind of session may know of a file."""

    def __init__(self, group_paths: Iterable[str]) -> None:
        """`group_paths` are folders. Raises PathRefused for what is none."""
        named = sorted({parse(path).parts for path in group_paths})
        self._shared = tuple(f for f in named if not any(_is_below(f, other) for other in named))

    def sees(self, name: Name, kind: Kind) -> bool:
        """Whether the file exists for such a session, by its path."""
        if kind is not Kind.MAIN:
            return not name.scope and any(_is_below(name.parts, f) for f in self._shared)
        return not name.scope or not any(_stem(part) in _IDENTITY for part in name.parts)

    def sees_folder(self, name: Name, kind: Kind) -> bool:
        """Whether all that is directly in the folder exists for such a session."""
        return self.sees(Name(name.scope, (*name.parts, "any")), kind)

    def shared_below(self, name: Name) -> tuple[tuple[str, ...], ...]:
        """The named folders that a folder leads to."""
        return () if name.scope else tuple(f for f in self._shared if _is_below(f, name.parts))


def _is_below(parts: tuple[str, ...], folder: tuple[str, ...]) -> bool:
    return len(parts) > len(folder) and parts[: len(folder)] == folder


def _stem(part: str) -> str:
    return fold(part).partition(".")[0].strip()
