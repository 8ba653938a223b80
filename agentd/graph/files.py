"""`memory/graph/YYYY-MM-DD.0`: the text that the graph's tables are made from.

A day that grows beyond 192 KiB goes on in `YYYY-MM-DD-2.0` and so on, so that no file is too large to be
written anew as a whole.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from agentd.domain.belief import CONSOLIDATION
from agentd.domain.concept import EpisodeHash, Record
from agentd.domain.health import Problem
from agentd.domain.tool import FileAction
from agentd.domain.turn import Kind, SessionKey
from agentd.domain.workspace import Author, FileView, Reader
from agentd.errors import EditConflict, FileMissing, GraphError
from agentd.graph.pieces import Piece, Says, joined, read_pieces
from agentd.graph.withdrawn import Withdrawn
from agentd.ports import Clock, Workspace

FOLDER: Final = "memory/graph"
MOST: Final = 192 << 10  # bytes that a file grows to

_READER = Reader(SessionKey("graph"), Kind.MAIN)
_AUTHOR = Author("graph")
_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})(?:-(\d{1,6}))?\.0")
_AT_ONCE = 16  # files that are read at once
_TRIED = 4  # files in which one that can be read is looked for


@dataclass(frozen=True, slots=True)
class Damage:
    """A graph of a file that cannot be used, and stays where it is. `line` counts from 1; 0 is the
    whole file, and `why` names it.
    """

    path: str
    line: int
    why: str
    cure: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.line else self.why


@dataclass(frozen=True, slots=True)
class Loaded:
    """What stands in the files, in the order of days and of writing."""

    records: tuple[Record, ...] = ()
    damage: tuple[Damage, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What a rewriting took out: `episodes`, with the promotions that counted them, and `damaged`
    graphs by number. `is_more` says that aliases or concepts that stood by themselves went, too, or
    damage. `paths` are the files that changed, `unread` those that could not be read: they are as they
    were.
    """

    episodes: frozenset[EpisodeHash] = frozenset()
    damaged: int = 0
    is_more: bool = False
    paths: tuple[str, ...] = ()
    unread: tuple[Damage, ...] = ()


class GraphFiles:
    """The graph's files in the workspace. Methods raise WorkspaceError."""

    def __init__(self, workspace: Workspace, clock: Clock) -> None:
        self._workspace = workspace
        self._clock = clock
        self._withdrawn = Withdrawn(workspace)
        self._writing = asyncio.Lock()

    async def kept_out(self) -> frozenset[str]:
        """The names of what other agents said that is not to come in again. Raises GraphError."""
        return await self._withdrawn.names()

    def problems(self) -> tuple[Problem, ...]:
        """That these names cannot be read."""
        return self._withdrawn.problems()

    async def append(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Add compiled graphs to the files of today in the owner's zone, durably. Returns the paths. A
        file is changed as a whole; of many texts, some may be written when this raises.
        """
        paths: list[str] = []
        async with self._writing:
            for batch in _batches(texts):
                path = await self._room(len(batch))
                async with self._workspace.lock(path):
                    intent = await self._workspace.plan(path, FileAction.APPEND, batch)
                    await self._workspace.apply(intent, _READER, _AUTHOR)
                paths.append(path)
        return tuple(dict.fromkeys(paths))

    async def paths(self, since: date | None = None) -> tuple[str, ...]:
        """The files, the oldest day first; with `since`, not those of the days before."""
        sizes = await self._sizes()
        return tuple(p for p in sizes if since is None or _order(p)[0] >= since.isoformat())

    async def load(self, since: date | None = None) -> Loaded:
        """All records. What is damaged is named, and everything else is there."""
        records: list[Record] = []
        damage: list[Damage] = []
        for path, found in await self._read(await self.paths(since)):
            if isinstance(found, Damage):
                damage.append(found)
                continue
            for piece in found:
                records += [one.record for one in piece.said]
                if piece.damage is not None:
                    damage.append(_damage(path, piece.line, piece.damage))
        return Loaded(tuple(records), tuple(damage))

    async def promotions(self, since: datetime | None) -> Loaded:
        """The promotions in the files of that day and those after it, or in all."""
        day = None if since is None else since.astimezone(self._clock.zone).date()
        loaded = await self.load(day)
        found = [record for record in loaded.records if _is_promotion(record)]
        return Loaded(tuple(found), loaded.damage)

    async def receipts(self) -> list[tuple[str, str, Record]]:
        """The graphs that have a receipt beside them: `path:line`, the receipt, and what they say."""
        return [
            (f"{path}:{piece.line}", receipt, record)
            for path, pieces in await self._read(await self.paths())
            if not isinstance(pieces, Damage)
            for piece in pieces
            for receipt, record in piece.receipts()
        ]

    async def rewrite(
        self,
        episodes: Collection[EpisodeHash] = (),
        says: Says | None = None,
        may_matter: Says | None = None,
    ) -> Rewritten:
        """Take episodes out of the text: these, those whose words `says` finds, and the promotions that
        count any of them. Aliases, sentences beside a graph, and damaged graphs in which it finds
        something go too; all else stays to the letter. Each file is exchanged as a whole. From the
        tables the episodes are then to be removed; where more went, they are to be made again.
        `may_matter` tells quickly of a graph's text whether any of that may stand in it.

        Raises EditConflict for a file that others change meanwhile; those before it are done, and
        doing it again is harmless. What other agents said of it is noted first, so that no message
        brings it in again.
        """
        finds = says or _nothing
        async with self._writing:
            read = await self._read(await self.paths(), may_matter)
            files = [(path, pieces) for path, pieces in read if not isinstance(pieces, Damage)]
            gone = await asyncio.to_thread(_gone, [p for _, p in files], set(episodes), finds)
            there = {e for _, pieces in files for piece in pieces for e in piece.episodes()}
            told = {name for _, pieces in files for piece in pieces for name in piece.told(gone)}
            await self._withdrawn.note(told)
            damaged, is_more, changed = 0, False, list[str]()
            for path, pieces in files:
                left = await asyncio.to_thread(_without, pieces, gone, finds)
                if joined(left) != joined(pieces):
                    await self._exchange(path, joined(pieces), joined(left))
                    changed.append(path)
                    damaged += _count_damaged(pieces) - _count_damaged(left)
                    is_more = is_more or any(map(Piece.lost_more, pieces, left))
        unread = tuple(found for _, found in read if isinstance(found, Damage))
        out = frozenset(gone & there), damaged, is_more or damaged > 0
        return Rewritten(*out, tuple(changed), unread)

    async def _exchange(self, path: str, before: str, after: str) -> None:
        async with self._workspace.lock(path):
            view = await self._workspace.read(path, _READER)
            if view.text != before:
                raise EditConflict(
                    f"{path} changed while the graph was rewritten",
                    cure="close what writes to it, then try again",
                )
            action = FileAction.WRITE if after.strip() else FileAction.DELETE
            intent = await self._workspace.plan(
                path, action, after.encode() if after.strip() else b""
            )
            await self._workspace.apply(intent, _READER, _AUTHOR)

    async def _read(
        self, paths: Sequence[str], may_matter: Says | None = None
    ) -> list[tuple[str, tuple[Piece, ...] | Damage]]:
        """The files that are there, or why they cannot be read."""
        found: list[tuple[str, tuple[Piece, ...] | Damage]] = []
        for start in range(0, len(paths), _AT_ONCE):
            some = paths[start : start + _AT_ONCE]
            for path, view in zip(some, await self._workspace.look(some, _READER), strict=True):
                if isinstance(view, FileView):
                    pieces = await asyncio.to_thread(read_pieces, view.text, may_matter)
                    found.append((path, pieces))
                elif not isinstance(view, FileMissing):
                    found.append((path, Damage(path, 0, view.message, view.cure)))
        return found

    async def _room(self, size: int) -> str:
        """The file of today that takes so many bytes more. Behind what cannot be read nothing is
        written: nobody would read that either.
        """
        today = self._clock.now().astimezone(self._clock.zone).date().isoformat()
        sizes = {p: size for p, size in (await self._sizes()).items() if _order(p)[0] == today}
        last = max((_order(path)[1] for path in sizes), default=1)
        taken = sizes.get(_path(today, last), 0)
        first = last + 1 if taken and taken + size > MOST else last
        names = [_path(today, part) for part in range(first, first + _TRIED)]
        for path in names:
            [found] = await self._workspace.look([path], _READER)
            if isinstance(found, FileView | FileMissing):
                return path
        return names[0]

    async def _sizes(self) -> dict[str, int]:
        """How large each file is, the oldest day first."""
        try:
            entries = await self._workspace.tree(FOLDER, 1, _READER)
        except FileMissing:
            return {}
        sizes = {e.path: e.size for e in entries if not e.is_dir and e.path.endswith(".0")}
        return {path: sizes[path] for path in sorted(sizes, key=_order)}


def _path(day: str, part: int) -> str:
    return f"{FOLDER}/{day}.0" if part == 1 else f"{FOLDER}/{day}-{part}.0"


def _order(path: str) -> tuple[str, int]:
    """The day and the part; a file of another name comes last."""
    name = path.rpartition("/")[2]
    dated = _DATED.fullmatch(name)
    return (dated[1], int(dated[2] or 1)) if dated else (f"~{name}", 1)


def _batches(texts: Iterable[str]) -> Iterator[bytes]:
    """The texts, as many together as a file takes."""
    batch = b""
    for text in texts:
        data = text.strip("\n").encode() + b"\n"
        if batch and len(batch) + len(data) > MOST:
            yield batch
            batch = b""
        batch += data
    if batch:
        yield batch


def _gone(
    files: Sequence[tuple[Piece, ...]], episodes: set[EpisodeHash], says: Says
) -> set[EpisodeHash]:
    """The episodes, those that say it, and the promotions that count any of them."""
    pieces = [piece for file in files for piece in file]
    gone = episodes | {episode for piece in pieces for episode in piece.saying(says)}
    promotions = (found for piece in pieces for found in piece.promotions())
    return gone | {promotion for promotion, counted in promotions if counted & gone}


def _without(
    pieces: Sequence[Piece], episodes: Collection[EpisodeHash], says: Says
) -> tuple[Piece, ...]:
    return tuple(piece.without(episodes, says) for piece in pieces)


def _count_damaged(pieces: Iterable[Piece]) -> int:
    return sum(piece.damage is not None for piece in pieces)


def _damage(path: str, line: int, error: GraphError) -> Damage:
    why = error.message if error.line else f"line {line}: {error.message}"
    return Damage(path, error.line or line, why, error.cure)


def _is_promotion(record: Record) -> bool:
    return any(context.source == CONSOLIDATION for context in record.contexts)


def _nothing(_: str) -> bool:
    return False
