"""Whatever a path says and whatever stands in the workspace, nothing outside is read or changed."""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Protocol

import pytest
from msgspec import Struct

from agentd.core.errors import AgentdError
from agentd.core.tool import FileAction
from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import Reader
from agentd.testing import FakeClock
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings

CANARY = "what stands outside"
PRIVATE = "what is the owner's alone"
READERS = (
    Reader(SessionKey("main"), SessionKind.OWNER),
    Reader(SessionKey("group:family"), SessionKind.GROUP),
    Reader(SessionKey("isolated:job"), SessionKind.ISOLATED),
)


class World(Struct, frozen=True):
    """A workspace, another one that may be read, and what is outside of both. `links_anywhere`:
    links lead to the whole machine too, which a control that follows them would change.
    """

    home: Path
    links_anywhere: bool = True

    def make(self) -> None:
        for name, text in {
            "out/secret.md": CANARY,
            "out/deep/secret.md": CANARY,
            "out/linked.md": "has a second name",
            "ws/.git/config": CANARY,
            "ws/.hidden.md": CANARY,
            "ws/MEMORY.md": PRIVATE,
            "ws/projects/a.md": PRIVATE,
            "ws/shared/a.md": "for all",
            "work/a.md": PRIVATE,
        }.items():
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(text)

    @property
    def outside(self) -> Path:
        return self.home / "out"

    @property
    def workspace(self) -> Path:
        return self.home / "ws"

    def state(self) -> dict[str, tuple[object, ...]]:
        """All that must stay as it is: names, contents, modes and times of what is outside."""
        return {
            str(path): (
                path.is_file() and path.read_bytes(),
                path.stat()[:2],
                path.stat().st_mtime_ns,
            )
            for folder in ("out", "work", "ws/.git")
            for path in sorted((self.home / folder).rglob("*"))
        }

    def plant(self, choose: random.Random) -> None:
        """Put something hostile anywhere into the workspace."""
        inside = (path for path in self.workspace.rglob("*") if ".git" not in path.parts)
        folders = [path for path in inside if path.is_dir() and not path.is_symlink()]
        folder = choose.choice([self.workspace, *folders])
        place = folder / choose.choice(_NAMES)
        if place.is_symlink() or place.is_file():
            place.unlink()
        elif place.exists():
            return
        targets = (self.outside, self.outside / "secret.md", self.outside / "new.md", Path(".."))
        if self.links_anywhere:
            targets = (*targets, Path("/"), Path("/proc/self/root"), Path("/proc/self/cwd"))
        match choose.randrange(8):
            case 0:
                os.mkfifo(place)
            case 1:
                place.mkdir()
            case 2:
                os.link(self.outside / "linked.md", place)
            case _:
                place.symlink_to(choose.choice(targets))


_NAMES = ("a.md", "b.md", "link", "d", "shared", "projects", "memory", "2026-01-31.md", "é.md")
_PARTS = (
    *_NAMES,
    *("..", ".", "", "...", ".. ", " ..", "․․", "．．", "%2e%2e", "..%2f", "..\\", "\\..", "..;"),
    *(
        "~",
        "~root",
        "C:",
        "@work",
        "@none",
        "@",
        "@..",
        "file:",
        "proc",
        "self",
        "root",
        "cwd",
        "fd",
        "3",
    ),
    *("out", "secret.md", "deep", "new.md", "linked.md", "ws", ".git", "config", ".hidden.md"),
    *(
        "a\0.md",
        "a\n.md",
        "a\u202e.md",
        "\ud800",
        "\udcff",
        "e\u0301.md",
        "x" * 300,
        "MEMORY.md",
        "memory.md.",
    ),
)
_SLASHES = ("/", "/", "/", "/", "//", "/./", "\\", "∕", "／", "⁄")


def _spelled(choose: random.Random, world: World) -> str:
    """A path that no honest model names."""
    beginnings = ("", "", "", "/", "./", "../", "~/", "file://", "@work/", f"{world.outside}/")
    parts = choose.choices(_PARTS, k=choose.choice((1, 1, 2, 2, 3, 4, 6)))
    joined = parts[0] + "".join(choose.choice(_SLASHES) + part for part in parts[1:])
    return choose.choice(beginnings) + joined


def _standing(choose: random.Random, world: World) -> str:
    """A path to what stands in the workspace, or to what would stand behind it."""
    found = sorted(path for path in world.workspace.rglob("*") if ".git" not in path.parts)
    path = str(choose.choice(found).relative_to(world.workspace))
    return choose.choice((path, path, f"{path}/{choose.choice(_NAMES)}", f"{path}/secret.md"))


class Access(Protocol):
    """What may be done with a path; `expected` are the errors that are answers."""

    expected: tuple[type[Exception], ...]

    async def read(self, path: str, reader: Reader) -> object: ...
    async def tree(self, path: str, reader: Reader) -> object: ...
    async def change(self, path: str, reader: Reader, action: FileAction) -> object: ...
    async def history(self, path: str, reader: Reader) -> object: ...


class FilesAccess:
    """Everything that `Files` does with a path that it is given."""

    expected = (AgentdError,)

    def __init__(self, world: World) -> None:
        scopes = {"work": world.home / "work"}
        self._files = Files(
            world.workspace, WorkspaceSettings(), FakeClock(), scopes, world.home / "kept"
        )

    async def read(self, path: str, reader: Reader) -> object:
        looked = await self._files.look([path], reader)
        shown = await self._files.snapshot([path], reader)
        there = await self._files.exists(path, reader)
        with suppress(AgentdError):
            await self._files.outside(path, ["a"])
        return looked, shown, there, await self._files.read_damaged(path, reader)

    async def tree(self, path: str, reader: Reader) -> object:
        return await self._files.tree(path, 3, reader)

    async def change(self, path: str, reader: Reader, action: FileAction) -> object:
        seen = await self._files.has_seen(path, "x", reader)
        async with self._files.lock(path):
            await self._files.apply(await self._files.plan(path, action, b"ours\n"), reader)
        return seen

    async def history(self, path: str, reader: Reader) -> object:
        """What only the owner's own methods ask for."""
        now, versions = await self._files.history(path)
        await self._files.life(path)
        if versions:
            await self._files.restore(path, versions[-1].number, now)
        return None


class NaiveAccess:
    """The control: paths that look as if they stayed inside are opened."""

    expected = (OSError, ValueError)

    def __init__(self, world: World) -> None:
        self._root = world.workspace

    async def read(self, path: str, reader: Reader) -> object:
        return self._at(path).read_text()

    async def tree(self, path: str, reader: Reader) -> object:
        return list(islice(self._at(path).rglob("*"), 100))

    async def change(self, path: str, reader: Reader, action: FileAction) -> object:
        if action is FileAction.DELETE:
            self._at(path).unlink()
        elif not self._at(path).is_fifo():
            self._at(path).write_text("ours\n")
        return None

    async def history(self, path: str, reader: Reader) -> object:
        return self._at(path).exists()

    def _at(self, path: str) -> Path:
        found = Path(os.path.normpath(self._root / path))
        if not found.is_relative_to(self._root) or found.is_fifo():
            raise ValueError(path)
        return found


async def escapes(
    world: World, access: Access, operations: int, seed: int
) -> tuple[int, list[str]]:
    """How many of the operations did something, and what got out."""
    choose = random.Random(seed)
    world.make()
    kept, found, done = world.state(), list[str](), 0
    for number in range(operations):
        if number % 100 == 0:
            world.plant(choose)
        path = choose.choice((_spelled, _standing))(choose, world)
        reader = choose.choice(READERS)
        try:
            said = repr(await _operation(choose, access, path, reader))
            done += 1
        except access.expected as error:
            said = str(error)
        if CANARY in said or (PRIVATE in said and reader.kind is not SessionKind.OWNER):
            found.append(f"{reader.kind} was told: {path!a}")
        if number % 50 == 49 and (now := world.state()) != kept:
            found.append(f"changed, at last by {path!a}")
            kept = now
    return done, found


def _operation(
    choose: random.Random, access: Access, path: str, reader: Reader
) -> Awaitable[object]:
    match choose.randrange(10):
        case 0 | 1 | 2:
            return access.read(path, reader)
        case 3 | 4:
            return access.tree(path, reader)
        case 5:
            return access.history(path, reader)
        case _:
            return access.change(path, reader, choose.choice(list(FileAction)))


async def test_no_operation_gets_out(tmp_path: Path) -> None:
    world = World(tmp_path)
    done, found = await escapes(world, FilesAccess(world), 3_000, 1)
    assert not found
    assert done > 200


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
async def test_none_of_200_000_operations_gets_out(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path)
    done, found = await escapes(world, FilesAccess(world), 20_000, seed)
    assert not found
    assert done > 1_000


async def test_looking_at_the_words_of_a_path_lets_many_out(tmp_path: Path) -> None:
    world = World(tmp_path, links_anywhere=False)
    _, found = await escapes(world, NaiveAccess(world), 3_000, 1)
    assert any("was told" in one for one in found)
    assert any("changed" in one for one in found)
