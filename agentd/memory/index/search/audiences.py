"""One searcher for each audience, each level with the store, on their one thread."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import structlog

from agentd.core.ports import ChunkStore
from agentd.core.search import MOVES, OWNER, PUBLIC, Audience, Hit, SearchOptions
from agentd.memory.index.search.saved import SavedMirror

if TYPE_CHECKING:
    from agentd.memory.index.search.in_memory import ChunkMatches, Mirror

log = structlog.get_logger()


SLICE = 1_000  # chunks loaded at once: others use the store's thread in between
KEPT = 4  # sessions beside the owner's that have a mirror: each holds the shared chunks once more


T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Place:
    """One audience's mirror, and what keeps it level."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    mirror: Mirror | None = None
    former: Mirror | None = None  # of before the store began anew
    seen: int | None = None  # the version of the store that it is level with
    lines: int = 0  # the version up to which it knows what has moved to other lines
    gone: list[int] = field(default_factory=list)  # ids that it has to forget yet
    is_torn: bool = False  # it may hold what went
    erased: int = 0  # how often something had been erased when its loading began


class Mirrors:
    """Made when first asked for. A mirror holds the chunks of its audience alone, so that no rarity of
    a word tells what others say. Of sessions' mirrors those used last are kept.

    A mirror changes under its lock, and is searched under it: what replaces chunks comes to it
    together with their end. It has the vectors of `models`, until `hold` names others. When the store
    is found damaged, mirrors of before answer until `complete`. The owner's is kept in `file`, if there is
    one.
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
        self._fresh: list[Mirror] = []  # that are being loaded to take the place of others
        self._version = 0
        self._moved: dict[str, int] = {}  # files whose chunks have moved, and the version since
        self._epoch = store.epoch
        self._full = True
        self._saved = None if file is None else SavedMirror(file, store, self.run)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, store: ChunkStore, models: Sequence[str] = (), file: Path | None = None
    ) -> AsyncIterator[Self]:
        """Mirrors with their thread, which ends with the block."""
        pool = ThreadPoolExecutor(1, "search")
        try:
            yield cls(store, models, pool, file)
        finally:
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    @property
    def is_whole(self) -> bool:
        """Whether the store has held everything since it was opened, or again."""
        return self._full and self._epoch == self._store.epoch

    @property
    def held(self) -> tuple[Audience, ...]:
        """Whose mirrors are in memory, the one used last at the end."""
        return tuple(self._places)

    @property
    def models(self) -> frozenset[str]:
        """Whose vectors are in memory."""
        mirrors = [place.mirror for place in self._loaded() if place.mirror is not None]
        return frozenset(model for mirror in mirrors for model in mirror.done)

    async def nbytes(self) -> int:
        """Bytes of all that is held, counted when nothing else is done with it."""
        mirrors = [place.mirror for place in self._loaded() if place.mirror is not None]
        return await self.run(lambda: sum(mirror.nbytes for mirror in mirrors)) if mirrors else 0

    @property
    def worn(self) -> tuple[Audience, ...]:
        """Whose mirrors are mostly about chunks that went."""
        places = self._places.items()
        return tuple(each for each, place in places if place.mirror and place.mirror.is_worn)

    async def serving(self, audience: Audience) -> Audience:
        """Whose mirror answers an audience: a session without chunks of its own finds what the public
        does. Raises StorageError.
        """
        if not audience.own or audience in self._places or await self._store.has(audience.own):
            return audience
        return PUBLIC

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """What `work` gives, done on the thread. Cancelling the caller does not stop it."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args))

    def hold(self, models: Collection[str]) -> None:
        """Have the vectors of these models in every mirror, and of no others, from its next use on."""
        if self._models != frozenset(models):
            self._models = frozenset(models)
            self._version += 1

    async def ready(self, audience: Audience) -> None:
        """Bring the mirror level with the store. Being cancelled loses nothing: the next call goes on.
        Raises StorageError.
        """
        with self._use(audience) as place:
            if place.former is None:
                async with place.lock:
                    await self._level(audience, place)

    async def save(self) -> bool:
        """Write the owner's mirror to its file, if it is loaded and worth it; False if that fails. One that
        knew words which were erased is loaded anew before. Raises StorageError.
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
                moves = await self._store.meta(MOVES)  # first: what moves later counts as not saved
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
        """What `Mirror.search` finds, in all that is stored at this moment. Raises StorageError."""
        with self._use(audience) as place:
            if place.former is not None:
                return await self.run(place.former.search, texts, vectors, model, options)
            async with place.lock:
                mirror = await self._level(audience, place)
                return await self.run(mirror.search, texts, vectors, model, options)

    async def arranged(
        self, hits: Sequence[Hit], text: str, options: SearchOptions, highest: float
    ) -> tuple[Hit, ...]:
        """Hits of the store itself, as `mirror.arranged` ranks them."""
        return await self.run(_arranged, hits, text, options, highest)

    async def change(
        self, change: Awaitable[Sequence[int]], gone: Sequence[str] = (), moved: str = ""
    ) -> None:
        """Make a change of the store that takes the chunks away whose ids it gives, and all of the
        files `gone`. Those of the file `moved` are on other lines then.
        """
        try:
            ids = await change
            for place in self._loaded():
                place.gone.extend(ids)
        except BaseException:
            for place in self._loaded():
                place.is_torn = True  # the store may have changed all the same
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
        """A change that leaves no byte of what goes, in the owner's file either. Raises StorageError."""
        async with nullcontext() if self._saved is None else self._saved.without():
            await self.change(change(), gone)

    async def put_vectors(self, model: str, pairs: Sequence[tuple[int, bytes]]) -> None:
        """Take in vectors that the store has by now. Those of chunks that have not been loaded come
        with them, those of a model that is not held once it is.
        """
        if model not in self._models:
            return
        mirrors = [place.mirror for place in self._loaded() if place.mirror is not None]
        for mirror in (*mirrors, *self._fresh):
            await self.run(mirror.put_vectors, model, pairs)

    async def complete(self) -> None:
        """The store holds everything again: what is in memory of before is not needed any more."""
        self._turn()
        for audience in tuple(self._places):
            with self._use(audience) as place:
                if place.former is not None:
                    async with place.lock:
                        await self._level(audience, place)
                    place.former = None
        self._full = True

    async def renew(self, audience: Audience) -> None:
        """Load a mirror anew; the one there is answers until that is done. Raises StorageError."""
        epoch, erased, begun = self._epoch, self._erased, self._version
        fresh = await self.run(_new)
        self._fresh.append(fresh)
        try:
            with self._use(audience) as place:
                await self._load(fresh, audience, place)
                async with place.lock:
                    if epoch == self._epoch == self._store.epoch:
                        place.mirror, place.seen, place.erased = fresh, None, erased
                        place.lines = begun
                        place.is_torn = True  # of what went while it was loaded
                        await self._level(audience, place)
        finally:
            self._fresh.remove(fresh)

    @contextmanager
    def _use(self, audience: Audience) -> Iterator[_Place]:
        """An audience's place, which is kept while it is in use."""
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
        """Notice that the store has begun anew."""
        if self._epoch == self._store.epoch:
            return
        self._epoch = self._store.epoch
        for place in self._places.values():
            if self._full and place.seen is not None:  # else it never had everything
                place.former = place.mirror
            place.mirror, place.seen, place.is_torn = None, None, False
            place.gone.clear()
        self._full = False

    async def _level(self, audience: Audience, place: _Place) -> Mirror:
        self._turn()
        mirror = place.mirror
        if mirror is None:
            mirror = await self._begun(audience, place)
        version = self._version
        if place.is_torn:  # forget what went while nobody could be told
            ids = await self._store.ids()
            await self.run(mirror.keep, ids)
            place.is_torn = False
        if place.seen != version:
            await self._move(mirror, place)
            gone = await self._load(mirror, audience, place)
            if gone:
                await self.run(mirror.remove, place.gone[:gone])
            if place.mirror is not mirror:  # the store began anew meanwhile
                return await self._level(audience, place)
            del place.gone[:gone]
            place.seen = version
        return mirror

    async def _move(self, mirror: Mirror, place: _Place) -> None:
        """Let chunks stand on the lines that they have moved to. Comes before others are taken in or
        forgotten, which are put into the order of lines, and looked for in it.
        """
        version = self._version
        for path in [path for path, since in self._moved.items() if since > place.lines]:
            await self.run(mirror.move, await self._store.lines(path))
        place.lines = version

    async def _begun(self, audience: Audience, place: _Place) -> Mirror:
        """A mirror to be made level: the one of the file, if there is any, else one without chunks."""
        epoch, place.erased = self._store.epoch, self._erased
        place.lines = self._version
        found: Mirror | None = None
        if self._saved is not None and audience == OWNER:
            found = await self._saved.load()
        if epoch != self._store.epoch:
            found = None
        place.is_torn = found is not None  # of what went since it was written
        mirror = place.mirror = found if found is not None else await self.run(_new)
        return mirror

    @property
    def _erased(self) -> int:
        return 0 if self._saved is None else self._saved.erased

    async def _load(self, mirror: Mirror, audience: Audience, place: _Place) -> int:
        """Take in the chunks that are not in yet; gives how many of the ids that are to be forgotten
        they, and no later ones, take the place of. Being cut off, it goes on where it was.
        """
        while True:
            rows = await self._store.load(mirror.last, SLICE, audience)
            gone = len(place.gone)
            if rows:
                await self.run(mirror.add, rows)
            # After adding: vectors that are made from now on find their chunks in the mirror.
            await self._load_vectors(mirror, audience)
            if len(rows) < SLICE:
                return gone  # that was all; looking for more could go on for ever

    async def _load_vectors(self, mirror: Mirror, audience: Audience) -> None:
        """Have the vectors of all chunks that are in, of the models that are held and of no others."""
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


def _arranged(
    hits: Sequence[Hit], text: str, options: SearchOptions, highest: float
) -> tuple[Hit, ...]:
    from agentd.memory.index.search.in_memory import arranged

    return arranged(hits, text, options, highest)
