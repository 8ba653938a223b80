"""Transcripts on their way into the daemon, in pieces that fit its frames."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentd.app.cli.transcript_formats import Line, Numbered, read
from agentd.core.errors import InvalidRequest
from agentd.interfaces.acp.transcript_lines import read_line
from agentd.interfaces.client.connection import MAX_FRAME_BYTES, DaemonConnection, connected
from agentd.interfaces.commands.keys import parse_key


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of a file of another agent. Raises InvalidRequest for what is no regular file, cannot
    be read, or has more than `most` bytes. Nobody waits for a pipe, and a device is not read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise InvalidRequest(f"{path} is no regular file", cure="name a file with text")
            data = file.read(most + 1) if found.st_size <= most else b""
    except OSError as error:
        raise InvalidRequest(
            f"{path} cannot be read: {error.strerror}", cure="make it readable for you"
        ) from error
    if found.st_size > most or len(data) > most:
        raise InvalidRequest(
            f"{path} is larger than {most:,} bytes", cure="split it, or take it over yourself"
        )
    return data


_PIECE_BYTES = MAX_FRAME_BYTES // 2
_SUFFIX = ".jsonl"
_MOST_TOLD = 20  # bad lines
MOST_BYTES = 256 << 20  # of one file
_SOME_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class BroughtTranscript:
    """A file that was read: its messages in our form, the session they become, and what is wrong with lines
    that are left out.
    """

    key: str
    file: Path
    lines: tuple[Line, ...]
    faults: tuple[str, ...] = ()


async def bring_in(
    sockets: Sequence[Path], paths: Sequence[Path], within: float, key: str | None = None
) -> list[dict[str, Any]]:
    """Import files, and those of folders; returns key and number of rows of each session, and what was
    wrong with lines that were left out.

    Every file is read, and every session looked for, before the first is sent. Raises InvalidRequest
    for files of which nothing can be read, naming the bad lines, and for a session that exists.
    """
    transcripts = read_files(paths, key)
    async with connected(sockets) as connection:
        taken = await existing(connection)
        if old := [t.key for t in transcripts if t.key in taken]:
            raise InvalidRequest(
                f"{', '.join(old)}: there are such sessions already; nothing was imported",
                cure="import one file with --as KEY, or delete the session first",
            )
        return [await send(connection, one, within, chosen=key is not None) for one in transcripts]


def read_files(paths: Sequence[Path], key: str | None = None) -> list[BroughtTranscript]:
    """The transcripts in files and folders. Raises InvalidRequest for files without a line that can be
    read, naming the bad ones.
    """
    files = list(_files(paths))
    if key and len(files) != 1:
        raise InvalidRequest(
            f"--as names one session, and there are {len(files)} files", cure="import one by one"
        )
    transcripts, wrong = [], []
    for file in files:
        try:
            lines, faults = checked(*_lines(file))
        except InvalidRequest as error:
            wrong.append(error.message)
            continue
        named = [f"{file}, {fault}" for fault in faults]
        if named and not lines:
            wrong += named
        else:
            transcripts.append(BroughtTranscript(key or _key(file), file, lines, some_of(named)))
    if wrong:
        raise InvalidRequest(
            "\n".join(some_of(wrong)), cure="mend or leave out what is named; nothing was imported"
        )
    return transcripts


def _key(file: Path) -> str:
    """The session that a file becomes: the one that it is named for, as our export names it, or else a
    chat of its name.
    """
    try:
        return parse_key(file.stem)
    except InvalidRequest:
        return f"chat:{file.stem}"


def some_of(faults: Sequence[str]) -> tuple[str, ...]:
    """The first of many, and how many more there are."""
    more = [f"and {len(faults) - _MOST_TOLD} more"] if len(faults) > _MOST_TOLD else []
    return (*faults[:_MOST_TOLD], *more)


async def existing(connection: DaemonConnection) -> frozenset[str]:
    """The sessions that have messages. Raises RemoteError."""
    result = await connection.call("_agentd/sessions/list", {})
    return frozenset(info["key"] for info in result["sessions"] if info["rows"])


async def send(
    connection: DaemonConnection,
    transcript: BroughtTranscript,
    within: float,
    *,
    chosen: bool = False,
) -> dict[str, Any]:
    """Import one transcript, whole or not at all; the user has `chosen` the key, or a file's name made it.
    Raises RemoteError.
    """
    rows = 0
    pieces = list(_pieces(transcript.lines))
    for number, piece in enumerate(pieces, start=1):
        params = {"key": transcript.key, "lines": piece, "more": number < len(pieces)}
        if chosen:
            params["chosen"] = True
        answer = await connection.call("_agentd/sessions/import", params, within=within)
        rows = answer["rows"]
    made = {"key": transcript.key, "rows": rows}
    return {**made, "left_out": list(transcript.faults)} if transcript.faults else made


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob(f"*{_SUFFIX}"))
        else:
            yield path


def _lines(file: Path) -> tuple[list[Numbered], list[str]]:
    data = read_regular(file, MOST_BYTES)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{file} is not UTF-8", cure="convert it with iconv") from error
    lines: list[Numbered] = []
    wrong: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict):
            lines.append((number, message))
        else:
            wrong.append(f"line {number}: not a JSON object")
    return lines, wrong


def checked(lines: Sequence[Numbered], wrong: Sequence[str]) -> tuple[tuple[Line, ...], list[str]]:
    """The messages in numbered lines, each one that the daemon will take, and what is wrong with other
    lines, those that were `wrong` before among them.
    """
    messages, odd = read(lines)
    taken = []
    for number, message in messages:
        try:
            read_line(message, number, _SOME_TIME, UTC)
        except InvalidRequest as error:
            odd.append(error.message)
        else:
            taken.append(message)
    return tuple(taken), sorted([*wrong, *odd], key=_number)


def _number(fault: str) -> int:
    return int(fault.removeprefix("line ").partition(":")[0])


def _pieces(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """At least one piece, so that an empty transcript is told as such."""
    piece: list[Line] = []
    size = 0
    for line in lines:
        weight = len(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace"))
        if piece and size + weight > _PIECE_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(line)
        size += weight
    yield piece
