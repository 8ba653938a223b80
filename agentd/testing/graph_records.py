"""What the concept graph keeps beside its tables, in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from agentd.domain.concept import EpisodeHash
from agentd.domain.exchange import KeptEpisode, Share


class MemoryGraphRecords:
    """The GraphRecords, ShareStore and ProgramStates in memory."""

    def __init__(self) -> None:
        self.episodes: dict[EpisodeHash, KeptEpisode] = {}
        self.names: dict[str, None] = {}
        self.shared: tuple[Share, ...] = ()
        self.programs: dict[str, str] = {}
        self.took_earlier = False

    async def kept(self) -> Sequence[KeptEpisode]:
        return sorted(self.episodes.values(), key=lambda one: one.at)

    async def keep(self, episodes: Sequence[KeptEpisode]) -> None:
        for one in episodes:
            self.episodes.setdefault(one.episode, one)

    async def drop(
        self,
        episodes: Collection[EpisodeHash],
        withdrawn: Collection[str] = (),
        *,
        traceless: bool = False,
    ) -> None:
        self.names.update(dict.fromkeys(sorted(withdrawn)))
        for one in episodes:
            self.episodes.pop(one, None)

    async def withdrawn(self) -> frozenset[str]:
        return frozenset(self.names)

    async def has_earlier(self) -> bool:
        return self.took_earlier

    async def take_earlier(
        self,
        episodes: Sequence[KeptEpisode],
        withdrawn: Sequence[str],
        shares: Sequence[Share],
        at: datetime,
    ) -> None:
        await self.keep(episodes)
        self.names.update(dict.fromkeys(withdrawn))
        self.shared = (*self.shared, *shares)
        self.took_earlier = True

    async def shares(self) -> Sequence[Share]:
        return self.shared

    async def put_shares(self, shares: Sequence[Share], *, traceless: bool = False) -> None:
        self.shared = tuple(shares)

    async def program_state(self, name: str) -> str:
        return self.programs.get(name, "")

    async def keep_program_state(self, name: str, state: str, at: datetime) -> None:
        self.programs[name] = state
        if not state:
            del self.programs[name]


class MemoryTextFiles:
    """Files of agentd's own in memory, by path."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.outside: dict[str, frozenset[bytes]] = {}  # lines of them that are

    async def replace(self, path: str, data: bytes, outside: Collection[bytes] = ()) -> None:
        self.held[path] = data
        self.outside[path] = frozenset(outside)

    async def delete(self, path: str) -> None:
        self.held.pop(path, None)
        self.outside.pop(path, None)

    async def names(self, folder: str) -> list[str]:
        return sorted(
            path.removeprefix(f"{folder}/") for path in self.held if path.startswith(folder)
        )


class MemoryNotes:
    """What is noted beside tables."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def meta(self, name: str) -> str:
        return self.kept.get(name, "")

    async def set_meta(self, name: str, value: str) -> None:
        self.kept[name] = value
