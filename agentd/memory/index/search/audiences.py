"""One search mirror for each audience, kept level with the store, all on one thread."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import structlog
from msgspec import Struct, field

from agentd.core.ports import ChunkStore
from agentd.core.search import MOVES, OWNER, PUBLIC, Audience, Hit, SearchOptions
from agentd.memory.index.search.mirror_file import SavedMirror

if TYPE_CHECKING:
    from agentd.memory.index.search.in_memory import ChunkMatches, Mirror

log = structlog.get_logger()


SLICE = 1_000  # chunks loaded at once: other work gets the store's thread in between
KEPT = 4  # mirrors of other sessions that are kept; each repeats the shared chunks


T = TypeVar("T")


class _Place(Struct, eq=False):
    """One audience's mirror, and its state relative to the store."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    mirror: Mirror | None = None
    former: Mirror | None = None  # the mirror from before the store was emptied
    seen: int | None = None  # the version of the store that the mirror is level with
    lines: int = 0  # the version up to which moved chunks are known
    moves: str | None = None  # the store's count of moves before these were read
    gone: list[int] = field(default_factory=list)  # ids that have still to be removed
    is_torn: bool = False  # the mirror may hold removed chunks
    erased: int = 0  # the count of erasures when loading began


class Mirrors:
    """The mirrors of all audiences, each made at the first search. A mirror holds only the chunks
    of its audience, so that the rarity of a word reveals nothing about others. Of the mirrors of
    sessions those used last are kept.

    A mirror is changed and searched under its lock, so that new chunks become visible together with
    the removal of those they replace. It holds the vectors of `models`, until `hold` names others.
    When the store is found damaged, the former mirrors answer until `complete`. The owner's mirror
    is saved in `file`, if given.
    """

    def __init__(
        self,
        store: ChunkStore,
        models: Sequence[str],
        pool: ThreadPoolExecutor,
        file: Path | None = None,
    ) -> None:
        self._store = store
        self._models = frozenset(models)
        self._pool = pool
        self._places: OrderedDict[Audience, _Place] = OrderedDict()
        self._fresh: list[Mirror] = []  # mirrors being loaded to replace others
        self._version = 0
        self._moved: dict[str, int] = {}  # moved files: version of the move
        self._epoch = store.epoch
        self._full = True
        self._saved = None if file is None else SavedMirror(file, store, self.run)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, store: ChunkStore, models: Sequence[str] = (), file: Path | None = None
    ) -> AsyncIterator[Self]:
        """Open mirrors with their thread, which ends with the block."""
        pool = ThreadPoolExecutor(1, "search")
        try:
            yield cls(store, models, pool, file)
        finally:
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    @property
    def is_whole(self) -> bool:
        """Whether the store holds everything: it was never emptied, or has been filled again."""
        return self._full and self._epoch == self._store.epoch

    @property
    def held(self) -> tuple[Audience, ...]:
        """The audiences whose mirrors are in memory, the one used last at the end."""
        return tuple(self._places)

    @property
    def models(self) -> frozenset[str]:
        """The models whose vectors are in memory."""
        mirrors = [place.mirror for place in self._loaded() if place.mirror is not None]
        return frozenset(model for mirror in mirrors for model in mirror.done)

    async def nbytes(self) -> int:
        """Return the bytes of all mirrors, counted on their thread."""
        mirrors = [place.mirror for place in self._loaded() if place.mirror is not None]
        return await self.run(lambda: sum(mirror.nbytes for mirror in mirrors)) if mirrors else 0

    @property
    def worn(self) -> tuple[Audience, ...]:
        """The audiences whose mirrors hold mostly removed chunks."""
        places = self._places.items()
        return tuple(each for each, place in places if place.mirror and place.mirror.is_worn)

    async def serving(self, audience: Audience) -> Audience:
        """Return the audience whose mirror answers for this one: a session without chunks of its
        own finds what PUBLIC does. Raises StorageError.
        """
        if not audience.own or audience in self._places or await self._store.has(audience.own):
            return audience
        return PUBLIC

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """Run `work` on the mirrors' thread and return its result. Cancelling the caller does not
        stop it.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args))

    def hold(self, models: Collection[str]) -> None:
        """Keep the vectors of these models, and of no others, in every mirror from its next use
        on.
        """
        if self._models != frozenset(models):
            self._models = frozenset(models)
            self._version += 1

    async def ready(self, audience: Audience) -> None:
        """Bring the mirror level with the store. A cancelled call loses nothing: the next call
        continues. Raises StorageError.
        """
        with self._use(audience) as place:
            if place.former is None:
                async with place.lock:
                    await self._level(audience, place)

    async def save(self) -> bool:
        """Write the owner's mirror to its file, if it is loaded and due; return False if the file
        cannot be written. A mirror that may hold erased words is loaded anew first. Raises
        StorageError.
        """
        place, saved = self._places.get(OWNER), self._saved
        if saved is None or place is None or place.mirror is None or not self.is_whole:
            return True
        if not saved.is_due(place.mirror):
            return True
        if place.erased != saved.erased:
            await self.renew(OWNER)
        with self._use(OWNER) as place:
            async with place.lock:
                moves = await self._store.meta(MOVES)  # read first: later moves count as not saved
                mirror = await self._level(OWNER, place)
                return place.erased != saved.erased or await saved.save(mirror, moves)

    async def search(
        self,
        audience: Audience,
        texts: Sequence[str],
        vectors: Sequence[bytes] | None,
        model: str,
        options: SearchOptions,
    ) -> ChunkMatches:
        """Return what `Mirror.search` finds in everything stored at this moment. Raises
        StorageError.
        """
        with self._use(audience) as place:
            if place.former is not None:
                return await self.run(place.former.search, texts, vectors, model, options)
            async with place.lock:
                mirror = await self._level(audience, place)
                return await self.run(mirror.search, texts, vectors, model, options)

    async def arranged(
        self, hits: Sequence[Hit], text: str, options: SearchOptions, highest: float
    ) -> tuple[Hit, ...]:
        """Rank hits of the store itself, see `in_memory.arranged`."""
        return await self.run(_arrange, hits, text, options, highest)

    async def change(
        self, change: Awaitable[Sequence[int]], gone: Sequence[str] = (), moved: str = ""
    ) -> None:
        """Await a change of the store that returns the ids of deleted chunks, and record it for all
        mirrors. `gone` are deleted files; `moved` is a file whose chunks are on other lines
        afterwards.
        """
        try:
            ids = await change
            for place in self._loaded():
                place.gone.extend(ids)
        except BaseException:
            for place in self._loaded():
                place.is_torn = True  # the store may have changed nevertheless
            raise
        finally:
            self._version += 1
            if moved:
                self._moved[moved] = self._version
            self._turn()
            if gone:
                for place in tuple(self._places.values()):
                    if place.former is not None:
                        await self.run(place.former.remove_paths, gone)

    async def erase(
        self, change: Callable[[], Awaitable[Sequence[int]]], gone: Sequence[str] = ()
    ) -> None:
        """Make a change that leaves no byte of what it deletes, also not in the owner's file.
        Raises StorageError.
        """
        async with nullcontext() if self._saved is None else self._saved.without():
            await self.change(change(), gone)

    async def put_vectors(self, model: str, pairs: Sequence[tuple[int, bytes]]) -> None:
        """Add vectors that the store has by now. Chunks that are not loaded yet get theirs when
        they are loaded, and models that are not held when they are.
        """
        if model not in self._models:
            return
        mirrors = [place.mirror for place in self._loaded() if place.mirror is not None]
        for mirror in (*mirrors, *self._fresh):
            await self.run(mirror.put_vectors, model, pairs)

    async def complete(self) -> None:
        """Drop the former mirrors, because the store holds everything again."""
        self._turn()
        for audience in tuple(self._places):
            with self._use(audience) as place:
                if place.former is not None:
                    async with place.lock:
                        await self._level(audience, place)
                    place.former = None
        self._full = True

    async def renew(self, audience: Audience) -> None:
        """Load a mirror anew; the present one answers meanwhile. Raises StorageError."""
        epoch, erased, begun = self._epoch, self._erased, self._version
        fresh = await self.run(_new)
        self._fresh.append(fresh)
        try:
            with self._use(audience) as place:
                await self._load(fresh, audience, place)
                async with place.lock:
                    if epoch == self._epoch == self._store.epoch:
                        place.mirror, place.seen, place.erased = fresh, None, erased
                        place.lines, place.moves = begun, None
                        place.is_torn = True  # chunks removed while it was loaded
                        await self._level(audience, place)
        finally:
            self._fresh.remove(fresh)

    @contextmanager
    def _use(self, audience: Audience) -> Iterator[_Place]:
        """Yield an audience's place, which is not dropped while it is in use."""
        self._turn()
        place = self._places.setdefault(audience, _Place())
        self._places.move_to_end(audience)
        place.users += 1
        try:
            yield place
        finally:
            place.users -= 1
            sessions = [each for each in self._places if each.own]
            idle = [each for each in sessions if not self._places[each].users]
            for each in idle[: max(0, len(sessions) - KEPT)]:
                del self._places[each]

    def _loaded(self) -> tuple[_Place, ...]:
        return tuple(place for place in self._places.values() if place.mirror is not None)

    def _turn(self) -> None:
        """Set the mirrors aside if the store has been emptied since."""
        if self._epoch == self._store.epoch:
            return
        self._epoch = self._store.epoch
        for place in self._places.values():
            if self._full and place.seen is not None:  # else it was never complete
                place.former = place.mirror
            place.mirror, place.seen, place.is_torn = None, None, False
            place.gone.clear()
        self._full = False

    async def _level(self, audience: Audience, place: _Place) -> Mirror:
        self._turn()
        mirror = place.mirror
        if mirror is None:
            mirror = await self._begin_mirror(audience, place)
        version = self._version
        if place.is_torn:  # remove what was deleted unrecorded
            ids = await self._store.ids()
            await self.run(mirror.keep, ids)
            place.is_torn = False
        if place.seen != version:
            await self._move(mirror, place)
            gone = await self._load(mirror, audience, place)
            if gone:
                await self.run(mirror.remove, place.gone[:gone])
            if place.mirror is not mirror:  # the store was emptied meanwhile
                return await self._level(audience, place)
            del place.gone[:gone]
            place.seen = version
        return mirror

    async def _move(self, mirror: Mirror, place: _Place) -> None:
        """Move chunks to their present lines. This comes before chunks are added or removed,
        because both rely on the order of lines.
        """
        version = self._version
        changed = [path for path, since in self._moved.items() if since > place.lines]
        moves = await self._store.meta(MOVES) if changed else place.moves
        for path in changed if moves != place.moves else ():  # else lines were only appended
            await self.run(mirror.move, await self._store.lines(path))
        place.lines, place.moves = version, moves

    async def _begin_mirror(self, audience: Audience, place: _Place) -> Mirror:
        """Return a mirror to be brought level: the one in the file, if usable, else an empty
        one.
        """
        epoch, place.erased = self._store.epoch, self._erased
        place.lines, place.moves = self._version, None
        found: Mirror | None = None
        if self._saved is not None and audience == OWNER:
            found = await self._saved.load()
        if epoch != self._store.epoch:
            found = None
        place.is_torn = found is not None  # chunks deleted since it was written
        mirror = place.mirror = found if found is not None else await self.run(_new)
        return mirror

    @property
    def _erased(self) -> int:
        return 0 if self._saved is None else self._saved.erased

    async def _load(self, mirror: Mirror, audience: Audience, place: _Place) -> int:
        """Add the chunks that are missing. Return how many of the ids in `place.gone` may now be
        removed: those that the added chunks replace, and no later ones. If interrupted, the next
        call continues.
        """
        while True:
            rows = await self._store.load(mirror.last, SLICE, audience)
            gone = len(place.gone)
            if rows:
                await self.run(mirror.add, rows)
            # After adding, so that vectors made from now on find their chunks in the mirror.
            await self._load_vectors(mirror, audience)
            if len(rows) < SLICE:
                return gone  # complete; looking for more could go on for ever

    async def _load_vectors(self, mirror: Mirror, audience: Audience) -> None:
        """Load the vectors of all chunks in the mirror, for the models held, and drop those of
        others.
        """
        for model in mirror.done.keys() - self._models:
            await self.run(mirror.drop_vectors, model)
        for model in mirror.unfilled & self._models:
            for after, upto in await self.run(mirror.lacking, model):
                pairs = await self._store.vectors(model, after, upto, audience)
                await self.run(mirror.put_vectors, model, pairs)
            mirror.unfilled.discard(model)
        for model in self._models:
            while (done := mirror.done.setdefault(model, 0)) < mirror.last:
                upto = mirror.further(done, SLICE)
                pairs = await self._store.vectors(model, done, upto, audience)
                await self.run(mirror.put_vectors, model, pairs)
                mirror.done[model] = upto


def _new() -> Mirror:
    from agentd.memory.index.search.in_memory import Mirror

    return Mirror()


def _arrange(
    hits: Sequence[Hit], text: str, options: SearchOptions, highest: float
) -> tuple[Hit, ...]:
    from agentd.memory.index.search.in_memory import arrange_hits

    return arrange_hits(hits, text, options, highest)
