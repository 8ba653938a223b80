"""What the search index keeps of a chunk beside the chunk itself."""

from __future__ import annotations

from dataclasses import dataclass

from agentd.domain.memory import Chunk


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk as it is indexed."""

    chunk: Chunk
    terms: str  # the words to find it by, folded, with a space between them
    digest: bytes  # of the text to embed: equal texts share a vector
    traits: bytes = b""  # what else ranking asks of the text; empty when that is not known yet


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it is read back. Ids grow; a chunk that changed has another one."""

    id: int
    chunk: Chunk
    terms: str = ""
    traits: bytes = b""


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A chunk whose text has no vector."""

    id: int
    digest: bytes
    chunk: Chunk
