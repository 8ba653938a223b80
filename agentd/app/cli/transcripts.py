"""`agentd sessions import`: transcripts of agentd, OpenClaw and RustyClaw, converted to lines of
agentd's export and sent to the daemon in pieces that fit its frames.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct

from agentd.app.cli.ask import MODEL_SECONDS, sockets
from agentd.app.cli.report import note, reporting, show
from agentd.core.errors import InvalidRequest
from agentd.core.message import IMAGE_TYPES
from agentd.interfaces.acp.transcript_lines import read_line
from agentd.interfaces.client.connection import MAX_FRAME_BYTES, DaemonConnection, connect
from agentd.interfaces.commands.plain import table
from agentd.interfaces.commands.sessions import parse_key


def read_regular(path: Path, most: int) -> bytes:
    """Return the bytes of a file of another agent. Raises InvalidRequest for a file that is not
    regular, cannot be read or has more than `most` bytes. Does not block on a named pipe and does
    not read a device.
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
_MOST_TOLD = 20  # faults in one report
MOST_BYTES = 256 << 20  # of one file
_SOME_TIME = datetime(1970, 1, 1, tzinfo=UTC)


class BroughtTranscript(Struct, frozen=True):
    """A transcript that was read: the key of its session, its messages as lines of agentd's export,
    and the faults of lines that are left out.
    """

    key: str
    file: Path
    lines: tuple[Line, ...]
    faults: tuple[str, ...] = ()


def import_files(
    _: dict[str, Any],
    *,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="JSONL files or folders.", exists=True)
    ],
    as_: Annotated[
        str | None, typer.Option("--as", metavar="KEY", help="The session that one file becomes.")
    ] = None,
    as_json: bool,
) -> None:
    """Import transcripts, and print the sessions that they have become."""
    with reporting(as_json=as_json):
        made = asyncio.run(bring_in(sockets(), paths, MODEL_SECONDS, as_))
        show(
            {"sessions": made},
            lambda result: table(result["sessions"], ("key", "rows"), "no transcripts found"),
            as_json=as_json,
        )
        for fault in (fault for session in made for fault in session.get("left_out", ())):
            note(f"left out: {fault}")


async def bring_in(
    sockets: Sequence[Path], paths: Sequence[Path], within: float, key: str | None = None
) -> list[dict[str, Any]]:
    """Import JSONL files, and those in folders. Return for each session `{key, rows}`, and in
    `left_out` the faults of lines that were left out. `key` names the session of a single file;
    `within` is the time limit of a call, in seconds.

    Nothing is sent until every file is read and every session checked. Raises InvalidRequest for a
    file without a readable line, naming its faults, and for a session that exists;
    DaemonUnreachable, RemoteError.
    """
    transcripts = read_files(paths, key)
    async with connect(sockets) as connection:
        taken = await existing(connection)
        if old := [t.key for t in transcripts if t.key in taken]:
            raise InvalidRequest(
                f"{', '.join(old)}: there are such sessions already; nothing was imported",
                cure="import one file with --as KEY, or delete the session first",
            )
        return [await send(connection, one, within, chosen=key is not None) for one in transcripts]


def read_files(paths: Sequence[Path], key: str | None = None) -> list[BroughtTranscript]:
    """Read the transcripts in files and folders. Raises InvalidRequest for a file that has faults
    but no readable line, naming the faults, and for a `key` with more or less than one file.
    """
    files = list(_files(paths))
    if key and len(files) != 1:
        raise InvalidRequest(
            f"--as names one session, and there are {len(files)} files", cure="import one by one"
        )
    transcripts, wrong = [], []
    for file in files:
        try:
            lines, faults = check_messages(*_lines(file))
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
    """Return the key of the file's session: its name without suffix if that is a key, as in an
    export, else `chat:` and the name.
    """
    try:
        return parse_key(file.stem)
    except InvalidRequest:
        return f"chat:{file.stem}"


def some_of(faults: Sequence[str]) -> tuple[str, ...]:
    """Return the first 20 faults, and the number of the others as one more text."""
    more = [f"and {len(faults) - _MOST_TOLD} more"] if len(faults) > _MOST_TOLD else []
    return (*faults[:_MOST_TOLD], *more)


async def existing(connection: DaemonConnection) -> frozenset[str]:
    """Return the keys of the sessions that have messages. Raises RemoteError."""
    result = await connection.call("_agentd/sessions/list", {})
    return frozenset(info["key"] for info in result["sessions"] if info["rows"])


async def send(
    connection: DaemonConnection,
    transcript: BroughtTranscript,
    within: float,
    *,
    chosen: bool = False,
) -> dict[str, Any]:
    """Import one transcript, completely or not at all; return `{key, rows}`, and its faults in
    `left_out`. `chosen` says that the user gave the key; otherwise it comes from a file's name.
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


def check_messages(
    lines: Sequence[Numbered], wrong: Sequence[str]
) -> tuple[tuple[Line, ...], list[str]]:
    """Convert numbered lines. Return the messages that the daemon will accept, and the faults of
    the other lines, including those already found (`wrong`), by line number.
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
    """Yield the lines in pieces of limited size. An empty transcript is one empty piece, so that it
    is sent, too.
    """
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


Line = dict[str, Any]
Numbered = tuple[int, Line]  # its number in the file, the line
_SHOWN = frozenset({"message", "compaction", "branch_summary", "custom_message"})
_IMAGE: Line = {"type": "text", "text": "[image]"}  # replaces an image that cannot be imported
_IMAGES = 1_000_000  # characters of base64 in one message: a frame must also hold its text
_MILLISECONDS = 1e11  # a number this large is not seconds since 1970
_UNNAMED = object()  # the entry has no such field, not even null


def read(lines: Sequence[Numbered]) -> tuple[list[Numbered], list[str]]:
    """Convert the lines of a transcript to agentd's form. Return the messages, each with its line
    number, and the faults of the other lines.
    """
    if not any("type" in line and "role" not in line for _, line in lines[:1]):
        return [(number, _message(line)) for number, line in lines], []
    path, faults = _path(lines)
    found = []
    for number, line in path:
        try:
            if line.get("type") in _SHOWN:
                found.append((number, _entry(number, line)))
        except InvalidRequest as error:
            faults.append(error.message)
    return found, faults


def _path(lines: Sequence[Numbered]) -> tuple[list[Numbered], list[str]]:
    """Return OpenClaw's entries on the branch that ends in the last entry, oldest first, and the
    faults. Without ids all entries are returned. An entry that names no parent follows the nearest
    one above it; so does one whose parent is not above it, and a fault is added. `"parentId": null`
    begins a conversation.
    """
    entries = [(n, line) for n, line in lines if line.get("type") != "session"]
    known = {line["id"]: (n, line) for n, line in entries if isinstance(line.get("id"), str)}
    if not known:
        return entries, []
    by_number = sorted(known.values(), key=lambda entry: entry[0])
    path, faults = [by_number.pop()], []
    while (parent := path[-1][1].get("parentId", _UNNAMED)) is not None:
        number = path[-1][0]
        before = known.get(parent) if isinstance(parent, str) else None
        if before is None or before[0] >= number:
            if parent is not _UNNAMED:
                told = (
                    "what it follows is not above it in the file; it is taken to "
                    "follow the last that is"
                )
                faults.append(f"line {number}: {told}")
            while by_number and by_number[-1][0] >= number:
                by_number.pop()
            if not by_number:
                break
            before = by_number[-1]
        path.append(before)
    return path[::-1], faults[::-1]


def _entry(number: int, entry: Line) -> Line:
    """Convert an entry of OpenClaw to a message of agentd. Raises InvalidRequest."""
    at = _time(entry.get("timestamp"))
    match entry:
        case {"type": "message", "message": {"role": "user" | "assistant" as role, **message}}:
            line = {"role": role, "content": _content(message.get("content"))}
        case {"type": "message", "message": {"role": "toolResult", "toolCallId": str(id_), **rest}}:
            result = _result(id_, rest.get("content"), is_error=rest.get("isError") is True)
            line = {"role": "user", "content": [result], "tainted": True}
        case {"type": "message", "message": {"role": str(role), **message}}:
            line = {"role": "notice", "content": f"[{role}] {_as_text(message)}"}
        case {"type": "compaction", "summary": str(summary)}:
            line = {"role": "summary", "content": summary}
        case {"type": "branch_summary", "summary": str(summary)}:
            line = {"role": "notice", "content": summary}
        case {"type": "custom_message", "content": content}:
            line = {"role": "notice", "content": _words(content)}
        case _:
            raise InvalidRequest(
                f"line {number}: this {entry.get('type')} cannot be read", cure="leave it out"
            )
    return line if at is None else {**line, "at": at}


def _message(line: Line) -> Line:
    """Convert a message of RustyClaw. What agentd's export writes stays as it is."""
    changed = dict(line)
    if line.get("role") == "tool":
        result = _result(str(line.get("tool_call_id", "")), line.get("content"), is_error=False)
        changed |= {"role": "user", "content": [result], "tainted": True}
    elif isinstance(line.get("content"), list):
        changed["content"] = _content(line["content"])
    for name in ("at", "timestamp"):
        if name in line:
            changed[name] = _time(line[name])
    return changed


def _content(content: Any) -> Any:
    """Convert a list of blocks to agentd's form; other content is returned for the daemon to
    check.
    """
    if not isinstance(content, list):
        return content
    blocks = [block for item in content if (block := _block(item)) is not None]
    return list(_fitting_images(blocks))


def _fitting_images(blocks: Sequence[Any]) -> Iterator[Any]:
    """Yield the blocks; from the image on that makes the message too long for a frame, each image
    is replaced by text.
    """
    left = _IMAGES
    for block in blocks:
        match block:
            case {"type": "image", "source": {"data": str(data)}}:
                left -= len(data)
                yield block if left >= 0 else _IMAGE
            case _:
                yield block


def _block(item: Any) -> Any:
    """Convert a block to agentd's form; None for thinking, which only the model it is from can
    use.
    """
    match item:
        case str():
            return {"type": "text", "text": item}
        case {"type": "thinking" | "redacted_thinking"}:
            return None
        case {"type": "toolCall", "id": str(id_), "name": str(name), **rest}:
            arguments = rest.get("arguments")
            given = arguments if isinstance(arguments, dict) else {}
            return {"type": "tool_use", "id": id_, "name": name, "input": given}
        case {"type": "toolResult", "toolCallId": str(id_), **rest}:
            return _result(id_, rest.get("content"), is_error=rest.get("isError") is True)
        case {"type": "tool_result", "tool_use_id": str(id_), "content": list(content), **rest}:
            return _result(id_, content, is_error=rest.get("is_error") is True)
        case {"type": "image" | "image_url" | "document" | "audio"}:
            return _medium(item)
        case {"type": "text", "text": str(text), **rest}:
            # The spans that the sender did not write himself stay marked.
            own = {"quoted": rest["quoted"]} if "quoted" in rest else {}
            return {"type": "text", "text": text, **own}
    return item


def _medium(item: Mapping[str, Any]) -> Line:
    """Convert an image, given as bytes or by digest, to agentd's form; other media become text."""
    match item:
        case {"type": "image", "sha256": str()} | {"type": "image", "source": {"type": "base64"}}:
            return dict(item)
        case {"type": "image", "data": str(data), "mimeType": str(kind)} if kind in IMAGE_TYPES:
            source = {"type": "base64", "media_type": kind, "data": data}
            return {"type": "image", "source": source}
    return {"type": "text", "text": f"[{item['type']}]"}


def _result(id_: str, content: Any, *, is_error: bool) -> Line:
    text = _words(content)
    return {"type": "tool_result", "tool_use_id": id_, "content": text, "is_error": is_error}


def _words(content: Any) -> str:
    """Return the text in a message's content, a line a block; images become `[image]`."""
    if isinstance(content, str):
        return content
    blocks = _content(content) if isinstance(content, list) else []
    texts = (_without_image(b).get("text") for b in blocks if isinstance(b, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _without_image(block: Mapping[str, Any]) -> Mapping[str, Any]:
    return _IMAGE if block.get("type") == "image" else block


def _as_text(message: Mapping[Any, Any]) -> str:
    """Return the text of a message with a role that agentd does not have: its command, output,
    summary and content.
    """
    parts = [message.get(name) for name in ("command", "output", "summary")]
    return "\n".join(
        p for p in (*parts, _words(message.get("content"))) if isinstance(p, str) and p
    )


def _time(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value / 1000 if is_number and value >= _MILLISECONDS else value
