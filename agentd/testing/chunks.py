"""A double of the durable search index."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.search import (
    MOVES,
    Audience,
    Entry,
    Hit,
    IndexState,
    LinePatch,
    SearchResult,
    Source,
    StoredChunk,
    Unembedded,
)


class _File(Struct):
    source: Source
    digest: str
    entries: dict[int, Entry] = field(default_factory=dict)  # by id


class MemoryChunks:
    """A ChunkStore in memory. A chunk's keyword score is the share of the query's information that
    the chunk contains, with rare terms weighted by the logarithm of their rarity.
    """

    epoch = 0

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._vectors: dict[tuple[str, bytes], bytes] = {}
        self._meta: dict[str, str] = {}
        self._last = 0

    async def digests(self, source: Source) -> Mapping[str, str]:
        return {path: f.digest for path, f in self._files.items() if f.source is source}

    async def entries(self, path: str, since: int = 1) -> Sequence[Entry]:
        file = self._files.get(path)
        there = [e for e in file.entries.values() if e.chunk.start_line >= since] if file else []
        return sorted(there, key=lambda entry: entry.chunk.start_line)

    async def replace(
        self, path: str, digest: str, entries: Sequence[Entry], since: int = 1
    ) -> Sequence[int]:
        file = self._file(path, digest, entries)
        there = {n: entry for n, entry in file.entries.items() if entry.chunk.start_line >= since}
        held, wanted = _by_place(there.values()), _by_place(entries)
        kept = {place for place, those in wanted.items() if held.get(place) == those}
        gone = [n for n, entry in there.items() if _place(entry) not in kept]
        for number in gone:
            del file.entries[number]
        self._add(file, [entry for entry in entries if _place(entry) not in kept])
        return gone

    async def patch(
        self, path: str, digest: str, patches: Sequence[LinePatch[Entry]]
    ) -> Sequence[int]:
        file = self._file(path, digest, ())
        held = {number: entry.chunk.start_line for number, entry in file.entries.items()}
        gone = [n for n, line in held.items() if any(p.first <= line < p.end for p in patches)]
        moved = False
        for number in gone:
            del file.entries[number]
        for number, entry in file.entries.items():
            if by := sum(one.by for one in patches if one.end <= held[number]):
                file.entries[number] = replace(entry, chunk=entry.chunk.moved(by))
                moved = True
        self._add(file, [piece for one in patches for piece in one.pieces])
        if moved:
            self._meta[MOVES] = str(int(self._meta.get(MOVES, "0")) + 1)
        return gone

    async def lines(self, path: str) -> Sequence[tuple[int, int, int]]:
        file = self._files.get(path)
        held = file.entries.items() if file else ()
        return [(n, entry.chunk.start_line, entry.chunk.end_line) for n, entry in held]

    async def extend(self, path: str, digest: str, entries: Sequence[Entry]) -> None:
        self._add(self._file(path, digest, entries), entries)

    async def remove(self, paths: Sequence[str]) -> Sequence[int]:
        files = [self._files.pop(path) for path in paths if path in self._files]
        return [number for file in files for number in file.entries]

    async def erase(self, paths: Sequence[str]) -> Sequence[int]:
        gone = await self.remove(paths)
        said = {entry.digest for entry in self._all().values()}
        self._vectors = {key: v for key, v in self._vectors.items() if key[1] in said}
        return gone

    async def outdate(self) -> None:
        for file in self._files.values():
            file.digest = ""

    async def verify(self) -> None:
        pass

    async def load(self, after: int, limit: int, audience: Audience) -> Sequence[StoredChunk]:
        seen = [(n, e) for n, e in self._seen(audience).items() if n > after]
        return [StoredChunk(n, e.chunk, e.terms, e.traits) for n, e in seen[:limit]]

    async def has(self, scope: str) -> bool:
        return any(entry.chunk.scope == scope for entry in self._all().values())

    async def ids(self) -> Sequence[int]:
        return list(self._all())

    async def keyword(
        self,
        terms: Sequence[str],
        audience: Audience,
        *,
        limit: int,
        sources: frozenset[Source] | None = None,
    ) -> SearchResult:
        seen = list(self._seen(audience).values())
        if not seen:
            return SearchResult((), "nothing_indexed")
        held = [frozenset(entry.terms.split()) for entry in seen]
        weights = {t: math.log(1 + len(seen) / (0.5 + sum(t in h for h in held))) for t in terms}
        whole = sum(weights.values())
        scores = [sum(w for t, w in weights.items() if t in h) / (whole or 1) for h in held]
        hits = [
            Hit(entry.chunk, score, {"keyword": score})
            for entry, score in zip(seen, scores, strict=True)
            if score and (sources is None or entry.chunk.source in sources)
        ]
        hits.sort(key=lambda h: (-h.score, h.chunk.path, h.chunk.start_line))
        return SearchResult(tuple(hits[: max(0, limit)]), "" if hits else "no_match")

    async def vectors(
        self, model: str, after: int, upto: int, audience: Audience
    ) -> Sequence[tuple[int, bytes]]:
        return [
            (number, self._vectors[model, entry.digest])
            for number, entry in self._seen(audience).items()
            if after < number <= upto and (model, entry.digest) in self._vectors
        ]

    async def pending(self, model: str, after: int, limit: int) -> Sequence[Unembedded]:
        lacking = [
            Unembedded(number, entry.digest, entry.chunk)
            for number, entry in self._all().items()
            if number > after and (model, entry.digest) not in self._vectors
        ]
        return lacking[:limit]

    async def count_pending(self, model: str, after: int, most: int) -> int:
        return len(await self.pending(model, after, most))

    async def put_vectors(
        self, model: str, vectors: Mapping[bytes, bytes]
    ) -> Sequence[tuple[int, bytes]]:
        told = [
            (number, vector)
            for digest, vector in vectors.items()
            for number, entry in self._all().items()
            if entry.digest == digest
        ]
        said = {entry.digest for entry in self._all().values()}
        for digest, vector in vectors.items():
            if digest in said:
                self._vectors.setdefault((model, digest), vector)
        return told

    async def prune(self) -> None:
        pass

    async def meta(self, name: str) -> str:
        return self._meta.get(name, "")

    async def set_meta(self, name: str, value: str) -> None:
        self._meta[name] = value

    async def state(self) -> IndexState:
        return IndexState(len(self._files), len(self._all()), pending=0, state="ready")

    def _file(self, path: str, digest: str, entries: Sequence[Entry]) -> _File:
        by_path = Source.SESSIONS if path.startswith("sessions/") else Source.NOTES
        file = self._files.setdefault(path, _File(by_path, digest))
        file.source = entries[0].chunk.source if entries else by_path
        file.digest = digest
        return file

    def _add(self, file: _File, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._last += 1
            file.entries[self._last] = entry

    def _all(self) -> dict[int, Entry]:
        """Return all chunks by ascending id."""
        found = [pair for file in self._files.values() for pair in file.entries.items()]
        return dict(sorted(found, key=lambda pair: pair[0]))

    def _seen(self, audience: Audience) -> dict[int, Entry]:
        return {n: e for n, e in self._all().items() if audience.sees(e.chunk.scope)}


def _place(entry: Entry) -> tuple[int, int]:
    return entry.chunk.start_line, entry.chunk.end_line


def _by_place(entries: Iterable[Entry]) -> dict[tuple[int, int], list[Entry]]:
    found: dict[tuple[int, int], list[Entry]] = {}
    for entry in entries:
        found.setdefault(_place(entry), []).append(entry)
    return found
