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
from agentd.errors import Busy, InvalidRequest
from agentd.server.methods.imports import read_line

_PIECE_BYTES = MAX_FRAME_BYTES // 2
_SUFFIX = ".jsonl"
_MOST_TOLD = 20  # bad lines
MOST_BYTES = 256 << 20  # of one file
_SOME_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A file that was read: its messages in our form, and the session they become."""

    key: str
    file: Path
    lines: tuple[Line, ...]


async def bring_in(
    sockets: Sequence[Path], paths: Sequence[Path], within: float, key: str | None = None
) -> list[dict[str, Any]]:
    """Import files, and those of folders; returns key and number of rows of each session.

    Every file is read, and every session looked for, before the first is sent. Raises InvalidRequest
    for files that hold something else, naming each bad line; Busy for a session that exists.
    """
    transcripts = read_files(paths, key)
    async with connected(sockets) as connection:
        taken = await existing(connection)
        if old := [t.key for t in transcripts if t.key in taken]:
            raise Busy(
                f"{', '.join(old)}: there are such sessions already; nothing was imported",
                cure="import one file with --as KEY, or delete the session first",
            )
        return [await send(connection, transcript, within) for transcript in transcripts]


def read_files(paths: Sequence[Path], key: str | None = None) -> list[Transcript]:
    """The transcripts in files and folders. Raises InvalidRequest, naming each bad line."""
    files = list(_files(paths))
    if key and len(files) != 1:
        raise InvalidRequest(
            f"--as names one session, and there are {len(files)} files", cure="import one by one"
        )
    transcripts, wrong = [], []
    for file in files:
        try:
            lines = _readable(_lines(file))
        except InvalidRequest as error:
            faults = error.message.split("\n")
            wrong += [f"{file}, {one}" if one.startswith("line ") else one for one in faults]
        else:
            transcripts.append(Transcript(key or f"chat:{file.stem}", file, lines))
    if wrong:
        more = [f"and {len(wrong) - _MOST_TOLD} more"] if len(wrong) > _MOST_TOLD else []
        raise InvalidRequest(
            "\n".join([*wrong[:_MOST_TOLD], *more]),
            cure="mend or leave out what is named; nothing was imported",
        )
    return transcripts


async def existing(connection: Connection) -> frozenset[str]:
    """The sessions that have messages. Raises RemoteError."""
    result = await connection.call("_agentd/sessions/list", {})
    return frozenset(info["key"] for info in result["sessions"] if info["rows"])


async def send(connection: Connection, transcript: Transcript, within: float) -> dict[str, Any]:
    """Import one transcript, whole or not at all. Raises RemoteError."""
    rows = 0
    pieces = list(_pieces(transcript.lines))
    for number, piece in enumerate(pieces, start=1):
        params = {"key": transcript.key, "lines": piece, "more": number < len(pieces)}
        answer = await connection.call("_agentd/sessions/import", params, within=within)
        rows = answer["rows"]
    return {"key": transcript.key, "rows": rows}


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob(f"*{_SUFFIX}"))
        else:
            yield path


def _lines(file: Path) -> list[Numbered]:
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
    if wrong:
        raise InvalidRequest("\n".join(wrong))
    return lines


def _readable(lines: Sequence[Numbered]) -> tuple[Line, ...]:
    """The messages, each one that the daemon will take."""
    messages, wrong = read(lines), []
    for number, message in messages:
        try:
            read_line(message, number, _SOME_TIME, UTC)
        except InvalidRequest as error:
            wrong.append(error.message)
    if wrong:
        raise InvalidRequest("\n".join(wrong))
    return tuple(message for _, message in messages)


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
