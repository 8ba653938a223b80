"""`memory history` and `memory restore`: a file's earlier versions. For the owner only."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from agentd.core.errors import InvalidRequest, NotFound
from agentd.core.text import shorten
from agentd.interfaces.commands.declaration import Group, Param
from agentd.interfaces.commands.memory import text_of

if TYPE_CHECKING:
    from agentd.core.workspace import Version
    from agentd.workspace.files import Files

HISTORY = Group("memory")

_LONGEST = 300_000  # characters of a text or a diff in one answer
_MOST_LINES = 5_000  # what is compared line by line; more takes too long

_Path = Annotated[str, Param("A file of the workspace.")]


def _versions(result: dict[str, Any]) -> str:
    if "text" in result:
        return text_of(result)
    lines = [
        f"{v['version']:>4}  {v['at']}  {v['size']:>8}  {_author(v)}"
        f"{'' if v['digest'] else '  deleted'}{'  now' if v['current'] else ''}"
        for v in result["versions"]
    ]
    if result.get("changed_by_hand") and result.get("digest"):
        lines.insert(0, "      changed by hand since")
    return "\n".join(lines) or f"agentd has not changed {result['path']} yet"


def _author(version: dict[str, Any]) -> str:
    return f"{version['by']} in {version['session']}" if version["session"] else version["by"]


class HistoryCommands:
    """Commands for the versions of files."""

    def __init__(self, files: Files) -> None:
        self._files = files

    @HISTORY.command(_versions)
    async def history(
        self,
        path: _Path,
        *,
        show: Annotated[int | None, Param("Print this version.", least=1)] = None,
        diff: Annotated[int | None, Param("Print what this version changed.", least=1)] = None,
    ) -> dict[str, Any]:
        """List what a file was, and who changed it."""
        if show is not None and diff is not None:
            raise InvalidRequest("show and diff: only one of them at once", cure="ask twice")
        path = self._files.canonical(path)
        now, versions = await self._files.history(path)
        if not now and not versions:
            raise NotFound(
                f"nothing is known of {path}", cure="`agentd memory tree` lists the files"
            )
        newest = versions[0].digest if versions else ""
        told: dict[str, Any] = {
            "path": path,
            "digest": now,
            "changed_by_hand": bool(versions) and now != newest,
            "versions": [_as_json(version, now) for version in versions],
        }
        if show is not None:
            told["text"] = shorten(_decode(await self._files.version(path, show)), _LONGEST)
        if diff is not None:
            told["text"] = shorten(await self._difference(path, diff, versions), _LONGEST)
        return told

    @HISTORY.command(text_of)
    async def restore(
        self,
        path: _Path,
        *,
        version: Annotated[int, Param("Which version, as `history` counts.", least=1)],
        digest: Annotated[str | None, Param("Only if the file still has this SHA-256.")] = None,
    ) -> dict[str, Any]:
        """Make a file what it was in a version; what it is now is kept."""
        path = self._files.canonical(path)
        intent = await self._files.restore(path, version, digest)
        _, versions = await self._files.history(path)
        words = f"{path} is as it was in version {version}"
        return {
            "path": path,
            "version": versions[0].number if versions else 0,
            "digest": intent.after,
            "before": intent.before,
            "bytes": len(intent.data),
            "text": f"{words} again" if intent.before != intent.after else f"{words} already",
        }

    async def _difference(self, path: str, number: int, versions: Sequence[Version]) -> str:
        """Return a unified diff from the previous version, or from an empty file."""
        new = await self._text(path, number, versions)
        older = next((v.number for v in versions if v.number < number), 0)
        old = await self._text(path, older, versions) if older else ""
        return await asyncio.to_thread(
            _unified_diff, old, new, f"{path} version {older}", f"{path} version {number}"
        )

    async def _text(self, path: str, number: int, versions: Sequence[Version]) -> str:
        if any(v.number == number and not v.digest for v in versions):
            return ""  # it was deleted
        return _decode(await self._files.version(path, number))


def _as_json(version: Version, now: str) -> dict[str, Any]:
    return {
        "version": version.number,
        "at": version.at.isoformat(timespec="seconds"),
        "by": version.by.kind,
        "session": version.by.session,
        "call": version.by.call,
        "tainted": version.by.tainted,
        "approved": version.by.approved,
        "digest": version.digest,
        "size": version.size,
        "current": bool(now) and version.digest == now,
    }


def _decode(data: bytes) -> str:
    return data.decode(errors="replace")


def _unified_diff(old: str, new: str, was: str, becomes: str) -> str:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(before) + len(after) > _MOST_LINES:
        raise InvalidRequest(
            "diff: the versions are too long to be compared", cure="show them, and compare those"
        )
    return "".join(_with_newlines(difflib.unified_diff(before, after, was, becomes)))


def _with_newlines(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n"
