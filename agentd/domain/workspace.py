"""Files of the workspace as sessions see them."""

from __future__ import annotations

from dataclasses import dataclass

from agentd.domain.turn import Kind, SessionKey


@dataclass(frozen=True, slots=True)
class Reader:
    """Who looks at a file: the kind decides what exists, the session what it has already seen."""

    session: SessionKey
    kind: Kind


@dataclass(frozen=True, slots=True)
class FileView:
    """A file as read: `path` is canonical (`@scope/…` for another scope), `digest` its SHA-256."""

    path: str
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One line of a listing; directories end in `/`."""

    path: str
    size: int
    is_dir: bool
    mtime_ns: int = 0  # 0: not known


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """Text for a prompt. Stable blocks go into the system prompt in order of `rank`; volatile ones
    stand before the user's words in the last message and are never stored.
    """

    text: str
    stable: bool = True
    rank: int = 0
