"""Finding what was written and said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agentd.core.search import (
    Audience,
    Chunk,
    Entry,
    Found,
    IndexState,
    Patch,
    SearchQuery,
    Source,
    StoredChunk,
    Unembedded,
)
from agentd.core.workspace import FileView, Reader


class Recall(Protocol):
    """Search as the tools and commands use it."""

    async def search(self, query: SearchQuery, reader: Reader) -> Found:
        """What the reader may find: the owner everything, others shared notes and what was said in the
        very session.
        """

    async def read(self, path: str, reader: Reader) -> FileView:
        """A workspace file or a transcript as the virtual file `sessions/KEY.jsonl`."""

    async def is_outside(self, path: str, first: int, last: int, text: str) -> bool:
        """Whether showing `text` taints a turn: it is from the lines `first` to `last` of what `read`
        gives for the path, and some of these are from outside, or nobody can tell. None is shown without
        the name: where that is from outside, all of them are.
        """

    async def names_outside(self, places: Sequence[str]) -> bool:
        """Whether text from outside has named one of these: a file, folder or transcript by its path, with
        or without `:LINE`, `@VERSION` or both.
        """


class IndexWriter(Protocol):
    """What is indexed: put in, taken out, brought up to date."""

    async def digests(self, source: Source) -> Mapping[str, str]:
        """What is indexed: path to the content's digest."""

    async def replace(
        self, path: str, digest: str, chunks: Sequence[Chunk], since: int = 1
    ) -> None:
        """Make `chunks` all that is indexed of `path`, from the line `since` on: what begins before it
        stays as it is.
        """

    async def patch(self, path: str, digest: str, patches: Sequence[Patch[Chunk]]) -> None:
        """Change what is indexed of some lines of `path`, in their order; all else stays, and moves with
        its lines.
        """

    async def extend(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        """Add chunks to what is indexed of `path`."""

    async def remove(self, paths: Sequence[str]) -> None:
        """Forget paths."""

    async def erase(self, paths: Sequence[str]) -> None:
        """Forget paths, and leave no byte of what they said on the disk. Slow."""

    async def outdate(self) -> None:
        """Give every path a digest that is none, so that it is indexed again: a rebuild begins. What
        is indexed is found until then.
        """

    async def verify(self) -> None:
        """See to it that the disk still holds what is indexed; if that is lost, `epoch` changes."""

    async def complete(self) -> None:
        """Everything has been indexed since `epoch` changed. Until this is called, what was held in
        memory answers.
        """

    async def settle(self) -> None:
        """Return when all that is indexed can be found in every way that works now."""


class IndexSearch(Protocol):
    """What is found, and how the index fares."""

    @property
    def epoch(self) -> int:
        """Another number means that the index was found damaged, and is empty now."""

    async def search(self, query: SearchQuery, audience: Audience) -> Found:
        """The best chunks for any text at all; never raises on what the user typed. Chunks that are
        not for the audience do not exist for it, in hits, scores, counts or reasons.
        """

    async def state(self) -> IndexState:
        """Counts for `status`."""


class MemoryIndex(IndexWriter, IndexSearch, Protocol):
    """The derived search index."""


class ChunkIndex(Protocol):
    """Which files and conversations are indexed, and where their pieces stand in them."""

    @property
    def epoch(self) -> int:
        """Another number means that the store was found damaged, and is empty now."""

    async def digests(self, source: Source) -> Mapping[str, str]:
        """Path to the content's digest."""

    async def entries(self, path: str, since: int = 1) -> Sequence[Entry]:
        """The chunks of `path` that begin at the line `since` or later, in order."""

    async def lines(self, path: str) -> Sequence[tuple[int, int, int]]:
        """The id, the first and the last line of each chunk of `path`, by id."""

    async def state(self) -> IndexState:
        """Counts."""

    async def verify(self) -> None:
        """See whether what is stored is still on the disk, and whole; if it was deleted, store it
        again. What is damaged is put aside, and `epoch` changes.
        """


class ChunkWriter(Protocol):
    """Changes the pieces of files and conversations on the disk."""

    async def replace(
        self, path: str, digest: str, entries: Sequence[Entry], since: int = 1
    ) -> Sequence[int]:
        """Make these all chunks of `path` that begin at the line `since` or later; gives the ids of those
        that went. What is the same as before keeps its id.
        """

    async def patch(self, path: str, digest: str, patches: Sequence[Patch[Entry]]) -> Sequence[int]:
        """See MemoryIndex; gives the ids of the chunks that went. Those that move keep theirs, and another
        number stands under MOVES.
        """

    async def extend(self, path: str, digest: str, entries: Sequence[Entry]) -> None:
        """Add chunks to those of `path`."""

    async def remove(self, paths: Sequence[str]) -> Sequence[int]:
        """Forget paths; gives the ids of their chunks. Vectors may stay, for texts that come back."""

    async def erase(self, paths: Sequence[str]) -> Sequence[int]:
        """`remove`, and no byte of what they said is left on the disk, in no vector either. Slow."""

    async def outdate(self) -> None:
        """Give every path the digest ""."""


class ChunkReader(Protocol):
    """What the search in memory is filled from, and what answers until it is."""

    async def load(self, after: int, limit: int, audience: Audience) -> Sequence[StoredChunk]:
        """The next chunks by id of those that exist for the audience."""

    async def has(self, scope: str) -> bool:
        """Whether there is a chunk of this scope."""

    async def ids(self) -> Sequence[int]:
        """The ids of all chunks, ascending."""

    async def keyword(
        self,
        terms: Sequence[str],
        audience: Audience,
        *,
        limit: int,
        sources: frozenset[Source] | None = None,
    ) -> Found:
        """What holds the terms, as if there were no chunks but those of the audience."""

    async def vectors(
        self, model: str, after: int, upto: int, audience: Audience
    ) -> Sequence[tuple[int, bytes]]:
        """The ids in between that have a vector of that model, with it."""


class VectorBacklog(Protocol):
    """Which pieces wait for a vector, and where their vectors go."""

    async def pending(self, model: str, after: int, limit: int) -> Sequence[Unembedded]:
        """The next chunks by id that have no vector of that model."""

    async def count_pending(self, model: str, after: int, most: int) -> int:
        """How many there are, counted up to `most`."""

    async def put_vectors(
        self, model: str, vectors: Mapping[bytes, bytes]
    ) -> Sequence[tuple[int, bytes]]:
        """Store vectors by the digest of what they are of, unless no chunk says that any more; gives
        every chunk that has one of them now.
        """

    async def prune(self) -> None:
        """Drop the oldest vectors that no chunk needs, if they are many."""

    async def meta(self, name: str) -> str:
        """What was noted under the name; "" if nothing."""

    async def set_meta(self, name: str, value: str) -> None:
        """Note something. It goes when the store is found damaged."""


class ChunkStore(ChunkIndex, ChunkWriter, ChunkReader, VectorBacklog, Protocol):
    """The durable half of the search index: files, their chunks, the chunks' vectors."""


class Embedder(Protocol):
    """Turns texts into vectors whose dot product says how near they are in meaning."""

    @property
    def model(self) -> str:
        """What the vectors depend on, in one word: vectors of different models are never compared."""

    @property
    def dimension(self) -> int:
        """How many float32 a vector holds."""

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[bytes]:
        """One vector for each text, in order: `dimension` little-endian float32 of length 1, or all
        zero for a text that says nothing to the model. `query` marks texts that search, for models
        that tell them from texts that are found.

        Raises EmbedderFault.
        """
