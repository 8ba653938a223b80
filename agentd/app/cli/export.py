"""`agentd export`: everything that is yours, as plain files in a folder or an archive."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
import os
import shutil
import tarfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from agentd.app.backup import skipped_links
from agentd.app.cli.ask import MODEL_SECONDS, sockets
from agentd.app.cli.report import AsJson, ConfigFile, reporting, show
from agentd.app.config import read
from agentd.core.errors import AgentdError, InvalidRequest
from agentd.core.paths import daemon_places, expanded
from agentd.interfaces.client.connection import DaemonConnection, connect
from agentd.interfaces.commands.plain import counted
from agentd.interfaces.commands.upkeep import link_lines

_COSTS = (
    "at",
    "session",
    "origin",
    "model",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost_usd",
)
_ARCHIVE = ".tar"


class ExportTarget(Protocol):
    """Port: the target of an export."""

    def put(self, name: str, data: bytes) -> None:
        """Add a file."""

    def close(self, *, keep: bool) -> None:
        """Finish: with `keep` the files are at the target now, otherwise they are deleted."""


async def write_all(
    target: Path, workspace: Path, config: Path, sockets: Sequence[Path], within: float
) -> dict[str, Any]:
    """Write the export to a new folder or, if the name ends in .tar, a new archive: completely or
    not at all.

    Files have mode 0600, folders 0700; links are left out and named in the result. Raises
    InvalidRequest for a target that exists, RemoteError, AgentdError for a file that cannot be read
    or written.
    """
    box = _open(target)
    count = size = 0
    try:
        async with connect(sockets) as connection:
            await _check(connection, workspace)
            for name, data in _on_disk(workspace, config):
                box.put(name, data)
                count, size = count + 1, size + len(data)
            async for name, data in _of_the_daemon(connection, within):
                box.put(name, data)
                count, size = count + 1, size + len(data)
    except OSError as error:
        box.close(keep=False)
        raise AgentdError(
            f"{error.filename or target}: {error.strerror}", cure="nothing was exported"
        ) from error
    except BaseException:
        box.close(keep=False)
        raise
    box.close(keep=True)
    return {"path": str(target), "files": count, "bytes": size, **skipped_links(workspace)}


async def _check(connection: DaemonConnection, workspace: Path) -> None:
    """Raise InvalidRequest if the folder is not this daemon's workspace. Raises RemoteError."""
    listed = await connection.call("_agentd/memory/tree", {})
    ours = [e["path"] for e in listed["entries"] if not e["is_dir"] and e["path"][0] != "@"]
    if missing := [name for name in ours if not (workspace / name).exists()]:
        raise InvalidRequest(
            f"the daemon's workspace is not {workspace}: it has {missing[0]}",
            cure="set AGENTD_HOME, or --config, as the daemon has it, and be its user",
        )


def _on_disk(workspace: Path, config: Path) -> Iterator[tuple[str, bytes]]:
    """The user's files; links are left out, since they may lead anywhere."""
    for path in sorted(workspace.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield f"workspace/{path.relative_to(workspace).as_posix()}", path.read_bytes()
    if config.is_file():
        yield "config.toml", config.read_bytes()


async def _of_the_daemon(
    connection: DaemonConnection, within: float
) -> AsyncIterator[tuple[str, bytes]]:
    listed = await connection.call("_agentd/sessions/list", {}, within=within)
    for info in listed["sessions"]:
        lines: list[Any] = []
        first: int | None = 1
        while first is not None:
            params = {"key": info["key"], "first": first}
            page = await connection.call("_agentd/sessions/export", params, within=within)
            lines += page["lines"]
            first = page["next"]
        yield f"sessions/{info['key']}.jsonl", _jsonl(lines)
    for what in ("alerts", "beats", "jobs"):
        yield f"{what}.jsonl", _jsonl(await _rows(connection, what, within))
    yield "costs.csv", _table(await _rows(connection, "costs", within))
    after: int | None = 0
    while after is not None:
        params = {"what": "images", "after": after}
        page = await connection.call("_agentd/export", params, within=within)
        for image in page["rows"]:
            if "data" in image:  # a damaged one is left out; the transcript still names it
                yield f"images/{image['sha256']}", base64.b64decode(image["data"])
        after = page["next"]


async def _rows(connection: DaemonConnection, what: str, within: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        params = {"what": what, "after": after}
        page = await connection.call("_agentd/export", params, within=within)
        rows += page["rows"]
        after = page["next"]
    return rows


def _jsonl(rows: Iterable[Any]) -> bytes:
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return text.encode("utf-8", "replace")


def _table(rows: Iterable[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, _COSTS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _open(target: Path) -> ExportTarget:
    """Return a box beside the target, which must not exist; an empty folder counts as absent."""
    is_empty = target.is_dir() and not target.is_symlink() and not any(target.iterdir())
    if os.path.lexists(target) and not (is_empty and target.suffix != _ARCHIVE):
        raise InvalidRequest(f"{target} exists", cure="name a new folder or a new .tar file")
    making = target.absolute().with_name(f".{target.name}.new-{os.getpid()}")
    try:
        return _Archive(making, target) if target.suffix == _ARCHIVE else _Folder(making, target)
    except OSError as error:
        raise AgentdError(
            f"{target} cannot be made ({error.strerror})", cure="choose another place"
        ) from error


class _Folder:
    def __init__(self, making: Path, target: Path) -> None:
        making.mkdir(mode=0o700)
        self._making, self._target = making, target

    def put(self, name: str, data: bytes) -> None:
        path = self._making / name
        for folder in reversed([p for p in path.parents if p.is_relative_to(self._making)]):
            folder.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)

    def close(self, *, keep: bool) -> None:
        if keep:
            self._making.rename(self._target)
        else:
            shutil.rmtree(self._making)


class _Archive:
    def __init__(self, making: Path, target: Path) -> None:
        descriptor = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w")  # noqa: SIM115 - closed by `close`
        self._making, self._target = making, target

    def put(self, name: str, data: bytes) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), 0o600
        self._tar.addfile(entry, io.BytesIO(data))

    def close(self, *, keep: bool) -> None:
        self._tar.close()
        self._file.close()
        if keep:
            self._making.rename(self._target)
        else:
            self._making.unlink()


Target = Annotated[
    Path, typer.Argument(metavar="DIR|FILE.tar", help="A new folder, or a new archive.")
]


def export(target: Target, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Write everything that is yours as plain files: workspace, transcripts, alerts, beats,
    costs.
    """
    with reporting(as_json=as_json):
        places = daemon_places(os.environ, config)
        named = read(places.config_file, os.environ).config.workspace.path
        workspace = expanded(named) if named else places.workspace
        done = asyncio.run(
            write_all(target, workspace, places.config_file, sockets(), MODEL_SECONDS)
        )
        show(done, _as_text, as_json=as_json)


def _as_text(done: dict[str, Any]) -> str:
    told = f"{counted(done['files'], 'file')}, {counted(done['bytes'], 'byte')}: {done['path']}"
    return "\n".join([told, *link_lines(done)])
