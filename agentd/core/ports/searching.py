"""Ports of search: recall for tools and commands, the index, its durable store, and embedders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agentd.core.search import (
    Audience,
    Chunk,
    Entry,
    IndexState,
    LinePatch,
    SearchQuery,
    SearchResult,
    Source,
    StoredChunk,
    Unembedded,
)
from agentd.core.workspace import FileView, Reader


class Recall(Protocol):
    """Search as the tools and commands use it, narrowed to what the reader may see."""

    async def search(self, query: SearchQuery, reader: Reader) -> SearchResult:
        """Search what the reader may find: the owner finds everything, others find shared notes and
        what was said in their own session.
        """

    async def read(self, path: str, reader: Reader) -> FileView:
        """Read a workspace file, or a transcript as the virtual file `sessions/KEY.jsonl`."""

    async def is_outside(self, path: str, first: int, last: int, text: str) -> bool:
        """Whether showing `text` taints a turn: it comes from lines `first` to `last` of what
        `read` returns for `path`, and some of these lines are from outside, or that cannot be
        determined.

        Text is never shown without its path: if the path itself is from outside, all of its text
        counts as from outside.
        """

    async def has_outside_name(self, places: Sequence[str]) -> bool:
        """Whether text from outside has named one of these places: a file, folder or transcript by
        its path, with or without `:LINE`, `@VERSION` or both.
        """


class IndexWriter(Protocol):
    """Changes the search index: adds, removes and updates chunks."""

    async def digests(self, source: Source) -> Mapping[str, str]:
        """Return the content digest of each indexed path of this source."""

    async def replace(
        self, path: str, digest: str, chunks: Sequence[Chunk], since: int = 1
    ) -> None:
        """Replace the chunks of `path` that begin at line `since` or later by these; earlier chunks
        stay.
        """

    async def patch(self, path: str, digest: str, patches: Sequence[LinePatch[Chunk]]) -> None:
        """Apply patches, in order, to the indexed lines of `path`. Other chunks stay and move with
        their lines.
        """

    async def extend(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        """Add chunks to those of `path`."""

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove paths from the index."""

    async def erase(self, paths: Sequence[str]) -> None:
        """Remove paths, and leave no byte of their text on the disk. Slow."""

    async def outdate(self) -> None:
        """Begin a rebuild: give every path an invalid digest, so that it is indexed again. Until
        then search still finds what is indexed.
        """

    async def verify(self) -> None:
        """Check that the disk still holds what is indexed; if that is lost, `epoch` changes."""

    async def complete(self) -> None:
        """Report that everything has been indexed since `epoch` changed. Until this call, searches
        are answered from what is held in memory.
        """

    async def settle(self) -> None:
        """Return when everything indexed can be found in every way that works now (words,
        vectors).
        """


class IndexSearch(Protocol):
    """Searches the index and reports its state."""

    @property
    def epoch(self) -> int:
        """A number that changes when the index was found damaged and is therefore empty."""

    async def search(self, query: SearchQuery, audience: Audience) -> SearchResult:
        """Return the best chunks for any query text; never raises on what the user typed. Chunks
        that are not for the audience have no influence on hits, scores, counts or reasons.
        """

    async def state(self) -> IndexState:
        """Return the counts for `status`."""


class MemoryIndex(IndexWriter, IndexSearch, Protocol):
    """The derived search index."""


class ChunkIndex(Protocol):
    """Reads which files and conversations are indexed, and the lines of their chunks."""

    @property
    def epoch(self) -> int:
        """A number that changes when the store was found damaged and is therefore empty."""

    async def digests(self, source: Source) -> Mapping[str, str]:
        """Return the content digest of each indexed path of this source."""

    async def entries(self, path: str, since: int = 1) -> Sequence[Entry]:
        """Return the chunks of `path` that begin at line `since` or later, in order."""

    async def lines(self, path: str) -> Sequence[tuple[int, int, int]]:
        """Return (id, first line, last line) of each chunk of `path`, by id."""

    async def state(self) -> IndexState:
        """Return the counts for `status`."""

    async def verify(self) -> None:
        """Check that the store is on the disk and undamaged; if it was deleted, store it again. A
        damaged store is put aside, and `epoch` changes.
        """


class ChunkWriter(Protocol):
    """Changes the stored chunks of files and conversations."""

    async def replace(
        self, path: str, digest: str, entries: Sequence[Entry], since: int = 1
    ) -> Sequence[int]:
        """Replace the chunks of `path` that begin at line `since` or later by these; return the ids
        of the deleted chunks. An unchanged chunk keeps its id.
        """

    async def patch(
        self, path: str, digest: str, patches: Sequence[LinePatch[Entry]]
    ) -> Sequence[int]:
        """Apply the patches (see IndexWriter); return the ids of the deleted chunks. Chunks that
        only move keep their ids; if there are any, the number under MOVES changes.
        """

    async def extend(self, path: str, digest: str, entries: Sequence[Entry]) -> None:
        """Add chunks to those of `path`."""

    async def remove(self, paths: Sequence[str]) -> Sequence[int]:
        """Delete paths; return the ids of their chunks. Vectors may stay, in case the same text
        comes back.
        """

    async def erase(self, paths: Sequence[str]) -> Sequence[int]:
        """Do `remove`, and leave no byte of the text or its vectors on the disk. Slow."""

    async def outdate(self) -> None:
        """Set the digest of every path to ""."""


class ChunkReader(Protocol):
    """Fills the in-memory search, and answers queries until it is filled."""

    async def load(self, after: int, limit: int, audience: Audience) -> Sequence[StoredChunk]:
        """Return the next `limit` chunks with an id above `after` that the audience may see, by
        id.
        """

    async def has(self, scope: str) -> bool:
        """Whether any chunk has this scope."""

    async def ids(self) -> Sequence[int]:
        """Return the ids of all chunks, ascending."""

    async def keyword(
        self,
        terms: Sequence[str],
        audience: Audience,
        *,
        limit: int,
        sources: frozenset[Source] | None = None,
    ) -> SearchResult:
        """Search by words: return the chunks that contain the terms, scored as if only the
        audience's chunks existed.
        """

    async def vectors(
        self, model: str, after: int, upto: int, audience: Audience
    ) -> Sequence[tuple[int, bytes]]:
        """Return (id, vector) of the audience's chunks with ids from `after` (exclusive) to `upto`
        that have a vector of that model.
        """


class VectorBacklog(Protocol):
    """The chunks that wait for a vector, and the store of computed vectors."""

    async def pending(self, model: str, after: int, limit: int) -> Sequence[Unembedded]:
        """Return the next `limit` chunks with an id above `after` that have no vector of that
        model, by id.
        """

    async def count_pending(self, model: str, after: int, most: int) -> int:
        """Return how many chunks are pending, counting up to `most`."""

    async def put_vectors(
        self, model: str, vectors: Mapping[bytes, bytes]
    ) -> Sequence[tuple[int, bytes]]:
        """Store vectors by the digest of their text, unless no chunk has that text any more; return
        (id, vector) of every chunk that now has one of them.
        """

    async def prune(self) -> None:
        """Delete the oldest vectors that no chunk needs, if there are many."""

    async def meta(self, name: str) -> str:
        """Return the value stored under the name; "" if there is none."""

    async def set_meta(self, name: str, value: str) -> None:
        """Store a value under the name. It is lost when the store is found damaged."""


class ChunkStore(ChunkIndex, ChunkWriter, ChunkReader, VectorBacklog, Protocol):
    """The durable half of the search index: files, their chunks, and the chunks' vectors."""


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is their similarity in meaning."""

    @property
    def model(self) -> str:
        """An identifier of everything the vectors depend on: vectors of different models are never
        compared.
        """

    @property
    def dimension(self) -> int:
        """The number of float32 values in a vector."""

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[bytes]:
        """Return one vector per text, in order: `dimension` little-endian float32 values of length
        1, or all zero for a text that means nothing to the model. `query` marks the texts as
        queries, for models that embed queries and documents differently.

        Raises EmbedderFault.
        """
