"""Transcripts on their way into the daemon, in pieces that fit its frames."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentd.cli.foreign import Line, Numbered, read
from agentd.cli.regular import read_regular
from agentd.client.connection import MAX_FRAME_BYTES, Connection, connected
from agentd.errors import InvalidRequest
from agentd.server.keys import parse_key
from agentd.server.methods.imports import read_line

_PIECE_BYTES = MAX_FRAME_BYTES // 2
_SUFFIX = ".jsonl"
_MOST_TOLD = 20  # bad lines
MOST_BYTES = 256 << 20  # of one file
_SOME_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Transcript:
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


def read_files(paths: Sequence[Path], key: str | None = None) -> list[Transcript]:
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
            lines, faults = _readable(file)
        except InvalidRequest as error:
            wrong.append(error.message)
            continue
        named = [f"{file}, {fault}" for fault in faults]
        if named and not lines:
            wrong += named
        else:
            transcripts.append(Transcript(key or _key(file), file, lines, _some(named)))
    if wrong:
        raise InvalidRequest(
            "\n".join(_some(wrong)), cure="mend or leave out what is named; nothing was imported"
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


def _some(faults: Sequence[str]) -> tuple[str, ...]:
    more = [f"and {len(faults) - _MOST_TOLD} more"] if len(faults) > _MOST_TOLD else []
    return (*faults[:_MOST_TOLD], *more)


async def existing(connection: Connection) -> frozenset[str]:
    """The sessions that have messages. Raises RemoteError."""
    result = await connection.call("_agentd/sessions/list", {})
    return frozenset(info["key"] for info in result["sessions"] if info["rows"])


async def send(
    connection: Connection, transcript: Transcript, within: float, *, chosen: bool = False
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


def _readable(file: Path) -> tuple[tuple[Line, ...], list[str]]:
    """The messages, each one that the daemon will take, and what is wrong with other lines. Raises
    InvalidRequest for what is no file of lines.
    """
    lines, wrong = _lines(file)
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
