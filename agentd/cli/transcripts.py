"""Transcripts on their way into the daemon, in pieces that fit its frames."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentd.client.connection import MAX_FRAME_BYTES, connected
from agentd.errors import AgentdError, InvalidRequest

_PIECE_BYTES = MAX_FRAME_BYTES // 2
_SUFFIX = ".jsonl"


async def bring_in(
    sockets: Sequence[Path], paths: Sequence[Path], within: float
) -> list[dict[str, Any]]:
    """Import files, and those of folders; returns key and number of rows of each session.

    Every file is read before the first is sent. Raises InvalidRequest for a file that holds
    something else, RemoteError for a session that exists already.
    """
    transcripts = [(f"chat:{file.stem}", _lines(file)) for file in _files(paths)]
    made: list[dict[str, Any]] = []
    async with connected(sockets) as connection:
        for key, lines in transcripts:
            rows = 0
            pieces = list(_pieces(lines))
            for number, piece in enumerate(pieces, start=1):
                params = {"key": key, "lines": piece, "more": number < len(pieces)}
                answer = await connection.call("_agentd/sessions/import", params, within=within)
                rows = answer["rows"]
            made.append({"key": key, "rows": rows})
    return made


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob(f"*{_SUFFIX}"))
        else:
            yield path


def _lines(file: Path) -> list[dict[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AgentdError(f"cannot read {file}", cure="it must be a UTF-8 file of yours") from error
    lines: list[dict[str, Any]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise InvalidRequest(
                f"{file}, line {number}: not a JSON object", cure="one message a line is expected"
            )
        lines.append(message)
    return lines


def _pieces(lines: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """At least one piece, so that an empty transcript is told as such."""
    piece: list[dict[str, Any]] = []
    size = 0
    for line in lines:
        weight = len(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace"))
        if piece and size + weight > _PIECE_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(line)
        size += weight
    yield piece
