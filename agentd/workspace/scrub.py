"""Masking words in the user's files, as far as agentd wrote them, and in what is kept of them."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import Enum, auto
from functools import partial
from itertools import accumulate
from pathlib import Path
from time import time_ns
from typing import TypeVar

from agentd.core.erasure import Erasure, Written, mask_spans, offset_after_masking
from agentd.core.errors import EditConflict, FileUnreadable, PathRefused, WorkspaceError
from agentd.core.offloading import to_the_end
from agentd.core.outside import marks_in
from agentd.core.ports import Wanted
from agentd.core.spans import Span, apart
from agentd.core.times import date_in
from agentd.core.turn import MAIN, Kind
from agentd.core.workspace import FACTS_PATH, Reader, TreeEntry, is_graph_text
from agentd.workspace.changes import MAX_READ_BYTES, TRIES, changed_error
from agentd.workspace.files import Files
from agentd.workspace.folder import Folder
from agentd.workspace.os_errors import translate_os_errors
from agentd.workspace.versions import Versions, folder_of

_BEGINS = re.compile(r"\s*(?:[-*+•–#>|]|\d{1,3}[.)]\s)")
_MOST = 20  # lines of one


class LineAuthor(Enum):
    """Who wrote a line."""

    USER = auto()
    AGENT = auto()
    SHIPPED = auto()  # it came with agentd, for a new workspace


@dataclass(frozen=True, slots=True)
class Paragraph:
    """What of a note is read, and masked, as one: lines of one author that belong together, a list's
    entry with what is below it, a heading, a few lines of prose. `line` is the first one, from 1 on;
    `start` and `end` are characters.
    """

    line: int
    start: int
    end: int
    author: LineAuthor

    @property
    def is_own(self) -> bool:
        """Whether agentd wrote it."""
        return self.author is LineAuthor.AGENT


def paragraphs(text: str, authors: Sequence[LineAuthor]) -> Iterator[Paragraph]:
    """The paragraphs, in order. `authors` says for each line who wrote it."""
    first, begun, at = 0, 0, 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if number > first and (
            not line.strip()
            or not lines[number - 1].strip()
            or _BEGINS.match(line)
            or authors[number] is not authors[number - 1]
            or number - first == _MOST
        ):
            yield Paragraph(first + 1, begun, at - 1, authors[first])
            first, begun = number, at
        at += len(line) + 1
    yield Paragraph(first + 1, begun, len(text), authors[first])


_OWNER = Reader(MAIN, Kind.MAIN)
_DEPTH = 64
_NOTHING: Mapping[str, Collection[str]] = {}
_DAY = timedelta(days=2)  # its end, in every zone
_MOST_HELD = 1 << 22  # characters of files that are not read twice
_FRESH_NS = 2 * 10**9  # a time stamp this young may hide a second change
_PORTION = 250  # files that are looked at before others have their turn

_T = TypeVar("_T")


class _Held:
    """What files said, at most so much, that were as they are now before the time `settled`: a younger
    stamp may hide a second change.
    """

    def __init__(self, settled: int) -> None:
        self._settled = settled
        self._texts: dict[str, tuple[tuple[int, ...], str]] = {}  # by path, behind the stamps
        self._room = _MOST_HELD

    def __len__(self) -> int:
        return len(self._texts)

    def put(self, entry: TreeEntry, text: str) -> None:
        """Hold what a file says that was listed so before it was read."""
        if 0 < entry.ctime_ns < self._settled and len(text) <= self._room:
            self._room -= len(text)
            self._texts[entry.path] = entry.stamp, text

    def text(self, entry: TreeEntry) -> str | None:
        """What the file says; None if that is not known."""
        stamp, text = self._texts.get(entry.path, ((), ""))
        return text if stamp == entry.stamp else None


class NoteEraser:
    """The Eraser and the Writings of the files below `root`: what agentd wrote there is masked, the user's
    own lines stay as they are unless a mark names them. Files of `apart` and the graph's text have other
    owners; of the lines that are `shipped`, by path, none is anybody's words. It comes before the eraser
    of versions.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        versions_dir: Path,
        apart: frozenset[str] = frozenset(),
        shipped: Mapping[str, Collection[str]] = _NOTHING,
        now_ns: Callable[[], int] = time_ns,
        folder: Folder | None = None,
    ) -> None:
        self._files = files
        self._folder = folder or Folder(root)
        self._versions = Versions(versions_dir)
        self._apart = apart
        self._shipped = shipped
        self._now_ns = now_ns  # as the stamps of files have it
        self._read_before = _Held(0)

    @property
    def name(self) -> str:
        """See Eraser."""
        return "notes"

    async def erase(self, erasure: Erasure) -> int:
        """See Eraser; counts what was masked. Raises WorkspaceError."""
        try:
            return await self._erase(erasure)
        finally:
            self._read_before = _Held(
                0
            )  # what was masked is not to be held, by whoever still reads

    async def _erase(self, erasure: Erasure) -> int:
        marked = _by_path(erasure)
        count = 0
        failed: list[
            WorkspaceError
        ] = []  # a file that cannot be read or changed keeps no other one
        for some in _portions(await self._entries()):
            said = await asyncio.to_thread(self._saying, some, erasure, failed)
            for path in (e.path for e in some if e.path in marked or e.path in said):
                try:
                    count += await self._mask_in(path, erasure, marked.get(path, {}))
                except WorkspaceError as error:
                    failed.append(error)
        if failed:
            raise failed[0]
        return count

    async def _mask_in(self, path: str, erasure: Erasure, marks: Mapping[int, Erasure]) -> int:
        with translate_os_errors(path):
            async with self._files.lock(path):
                try:
                    return await to_the_end(partial(self._mask, path, erasure, marks))
                finally:
                    self._files.count_write(path)

    async def texts(self, wanted: Wanted | None = None) -> AsyncIterator[Sequence[Written]]:
        """See Writings; a paragraph each. What they say is held until `erase` has asked for it, or the next
        call. Raises WorkspaceError.
        """
        held = self._read_before = _Held(self._now_ns() - _FRESH_NS)
        for some in _portions(await self._entries()):
            found = await asyncio.to_thread(self._written_in, some, wanted, held)
            if found:
                yield found

    async def _entries(self) -> list[TreeEntry]:
        entries = await self._files.tree("", _DEPTH, _OWNER)
        return [
            entry
            for entry in entries
            if not entry.is_dir
            and not entry.path.startswith("@")
            and entry.size <= MAX_READ_BYTES
            and entry.path not in self._apart
            and not is_graph_text(entry.path)
        ]

    def _read(
        self, entries: Sequence[TreeEntry], failed: list[WorkspaceError] | None = None
    ) -> Iterator[tuple[TreeEntry, str]]:
        """What the files say. Raises WorkspaceError for one that cannot be read, unless there is a list for
        those.
        """
        with translate_os_errors("the workspace"), self._folder.held() as folder:
            for entry in entries:
                text = self._read_before.text(entry)
                try:
                    yield entry, _text(folder, entry.path) if text is None else text
                except WorkspaceError as error:
                    if failed is None:
                        raise
                    failed.append(error)

    def _saying(
        self, entries: Sequence[TreeEntry], erasure: Erasure, failed: list[WorkspaceError]
    ) -> frozenset[str]:
        """The paths of those files that say it."""
        read = self._read(entries, failed)
        return frozenset(entry.path for entry, text in read if erasure.stands_in(text))

    def _written_in(
        self, entries: Sequence[TreeEntry], wanted: Wanted | None, held: _Held
    ) -> list[Written]:
        found: list[Written] = []
        for entry, text in self._read(entries):
            path = entry.path
            held.put(entry, text)
            if wanted is not None and not wanted.may_be(text, path):
                wanted.pass_over(1 + text.count("\n") // 2)  # paragraphs, about
            else:
                with translate_os_errors(path):
                    found += self._paragraph_texts(path, text)
        return found

    def _paragraph_texts(self, path: str, text: str) -> Iterator[Written]:
        at = _day_end(path)
        for one in paragraphs(text, self._authors(path, text)):
            if one.start < one.end and one.author is not LineAuthor.SHIPPED:
                said = text[one.start : one.end]
                is_users = not one.is_own
                yield Written(f"{path}:{one.line}", said, at, is_users, is_in_file=True)

    def _authors(self, path: str, text: str) -> list[LineAuthor]:
        """Who wrote each line."""
        lines = text.split("\n")
        shipped = self._shipped.get(path, ())
        own = self._versions.own(path, [_encode(line) for line in lines])
        return [
            LineAuthor.SHIPPED
            if line.strip() in shipped
            else LineAuthor.AGENT
            if is_own
            else LineAuthor.USER
            for line, is_own in zip(lines, own, strict=True)
        ]

    def _mask(self, path: str, erasure: Erasure, marks: Mapping[int, Erasure]) -> int:
        """Mask what is to be masked; returns how much that was. What others write meanwhile stays. Raises
        EditConflict if they write on and on.
        """
        parts = path.split("/")
        for _ in range(TRIES):
            text = _text(self._folder, path)
            if not (spans := self._masked_in(path, text, erasure, marks)):
                return 0
            old, new = _encode(text), _encode(mask_spans(text, spans))
            self._versions.masked(path, old, new)
            with suppress(EditConflict):
                late = self._folder.exchange(parts, new, partial(self._require, path, old))
                self._put_behind(path, late)
                return len(spans)
        raise changed_error(path)

    def _put_behind(self, path: str, late: bytes) -> None:
        """Let what others wrote to the file that stood there stand in the one that has its place."""
        parts = path.split("/")
        for _ in range(TRIES if late else 0):
            data = self._folder.read_for_change(parts, MAX_READ_BYTES) or b""
            with suppress(EditConflict):
                look = partial(self._require, path, data)
                late = self._folder.exchange(parts, data + late, look)
                if not late:
                    break

    def _require(self, path: str, data: bytes) -> None:
        """Raises EditConflict unless the file still has this content, PathRefused where it must not be
        changed.
        """
        if self._folder.read_for_change(path.split("/"), MAX_READ_BYTES) != data:
            raise changed_error(path)

    def _masked_in(
        self, path: str, text: str, erasure: Erasure, marks: Mapping[int, Erasure]
    ) -> list[Span]:
        """What stands in agentd's lines alone, and what is marked."""
        authors, starts = self._authors(path, text), _starts(text)
        spans = [
            span
            for span in erasure.found(text)
            if all(authors[n] is LineAuthor.AGENT for n in _lines_of(span, starts))
        ]
        for one in paragraphs(text, authors):
            if one.line in marks:
                found = marks[one.line].found(text[one.start : one.end])
                spans += [(one.start + start, one.start + end) for start, end in found]
        return list(apart(spans, marks_in(text)))


class VersionEraser:
    """The Eraser and the Writings of what files were: whoever wrote a line, it is masked there."""

    def __init__(self, files: Files, versions_dir: Path) -> None:
        self._files = files
        self._versions = Versions(versions_dir)

    @property
    def name(self) -> str:
        """See Eraser."""
        return "versions"

    async def erase(self, erasure: Erasure) -> int:
        """See Eraser; counts versions. Raises WorkspaceError."""
        count = 0
        with translate_os_errors("the versions of files"):
            for some in _portions(list((await self._folders()).items())):
                said = await asyncio.to_thread(self._saying, some, erasure)
                for folder, path in (one for one in some if one in said):
                    # Of a file that is neither known by name nor there nobody makes a version.
                    async with self._files.lock(path):
                        count += await to_the_end(partial(self._rewrite, folder, path, erasure))
        return count

    async def texts(self, wanted: Wanted | None = None) -> AsyncIterator[Sequence[Written]]:
        """See Writings; each paragraph once for each file, but for the page of facts, which holds facts
        line by line. Raises WorkspaceError.
        """
        with translate_os_errors("the versions of files"):
            for some in _portions(list((await self._folders()).items())):
                found = await asyncio.to_thread(self._written_in, some, wanted)
                if found:
                    yield found

    async def _folders(self) -> dict[str, str]:
        """The folders with versions, and whose they are; a folder's own name where that is not known."""
        folders = await asyncio.to_thread(self._versions.folders)
        entries = () if all(folders.values()) else await self._files.tree("", _DEPTH, _OWNER)
        paths = {folder_of(entry.path): entry.path for entry in entries}
        return {folder: path or paths.get(folder, folder) for folder, path in folders.items()}

    def _written_in(
        self, folders: Sequence[tuple[str, str]], wanted: Wanted | None
    ) -> list[Written]:
        return [
            one
            for folder, path in folders
            if path != FACTS_PATH
            for one in self._version_texts(folder, path, wanted)
        ]

    def _version_texts(self, folder: str, path: str, wanted: Wanted | None) -> Iterator[Written]:
        first: dict[str, str] = {}  # where each paragraph stood first
        for number, data in self._versions.contents(folder):
            for line, text in _paragraphs_of(_decode(data)):
                first.setdefault(text, f"{path}@{number}:{line}")
        at = _day_end(path)
        for text, where in first.items():
            if wanted is None or wanted.may_be(text, where):
                yield Written(where, text, at)
            else:
                wanted.pass_over(1)

    def _saying(
        self, folders: Sequence[tuple[str, str]], erasure: Erasure
    ) -> frozenset[tuple[str, str]]:
        """Those of which something is to be masked."""
        marked = {name.rpartition("@")[0] for name in _by_path(erasure)}
        return frozenset(
            (folder, path)
            for folder, path in folders
            if path in marked
            or any(self._says(data, path, erasure) for data in self._versions.longest(folder))
        )

    def _says(self, data: bytes, path: str, erasure: Erasure) -> bool:
        text = _decode(data)
        ids = erasure.ids if path == FACTS_PATH else ()
        return any(f"id={i}" in text for i in ids) or erasure.glimpsed(text)

    def _rewrite(self, folder: str, path: str, erasure: Erasure) -> int:
        marks = {
            int(number): at_lines
            for name, at_lines in _by_path(erasure).items()
            for file, _, number in (name.rpartition("@"),)
            if file == path and number.isdecimal()
        }
        marked: dict[str, Erasure] = {}
        for number, data in self._versions.contents(folder) if marks else ():
            for line, text in _paragraphs_of(_decode(data)):
                if line in marks.get(number, {}):
                    marked[text] = marks[number][line]
        ids = erasure.ids if path == FACTS_PATH else ()
        return self._versions.rewrite(folder, _Cut(erasure, marked, ids))


class _Cut:
    """Takes it out of contents, one after the other. What only grew is looked through once, in its longest
    form, if that comes first: of what begins it, the same goes.
    """

    def __init__(self, erasure: Erasure, marked: Mapping[str, Erasure], ids: Sequence[str]) -> None:
        self._erasure = erasure
        self._marked = marked  # by their text, paragraphs: what is added may make others of them
        self._ids = ids
        self._long = b""
        self._lines: list[Span] = []  # what goes as lines of facts, in bytes of it;
        self._spans: list[
            Span
        ] = []  # what is masked in what is left without these, in bytes of that,
        self._kept: list[Span] = []  # and what is not, whatever it says
        self._cut = b""

    def __call__(self, data: bytes) -> bytes:
        """What is left of it."""
        is_grown = data.endswith(b"\n") and self._long.startswith(data) and not self._marked
        if is_grown and (end := self._end(len(data))) is not None:
            return self._cut[: offset_after_masking(end, self._spans)]
        self._look_through(data)
        return self._cut

    def _end(self, size: int) -> int | None:
        """Where so many bytes of the longest form end without its lines; None in the middle of what is
        masked, or may not be.
        """
        end = size - sum(last - first for first, last in self._lines if last <= size)
        is_cut = any(first < end < last for first, last in (*self._spans, *self._kept))
        return None if is_cut else end

    def _look_through(self, data: bytes) -> None:
        text = _decode(data)
        # Lines first: the words are looked for in a moment, but placed slowly.
        lines = list(_lines_naming(text, self._ids))
        self._long, self._lines = data, _in_bytes(text, lines)
        text = _without(text, lines)
        spans = list(self._erasure.found(text))
        if self._marked:
            for one in paragraphs(text, _unknown(text)):
                here = self._marked.get(text[one.start : one.end])
                found = here.found(text[one.start : one.end]) if here else ()
                spans += [(one.start + start, one.start + end) for start, end in found]
        kept = () if self._ids else marks_in(text)
        masked = apart(spans, kept)
        self._kept, self._spans = _in_bytes(text, kept), _in_bytes(text, masked)
        self._cut = _encode(mask_spans(text, masked))


def _in_bytes(text: str, spans: Sequence[Span]) -> list[Span]:
    """The same parts, which are in order, counted in the bytes of the text."""
    if text.isascii():
        return list(spans)
    found: list[Span] = []
    at = size = 0
    for start, end in spans:
        first = size + len(_encode(text[at:start]))
        at, size = end, first + len(_encode(text[start:end]))
        found.append((first, size))
    return found


def _lines_naming(text: str, ids: Sequence[str]) -> Iterator[Span]:
    """The lines that name these facts."""
    if not ids:
        return
    named = re.compile(rf"id=(?<!\wid=)(?:{'|'.join(map(re.escape, ids))})(?![\w-])")
    done = 0
    for found in named.finditer(text):
        if found.start() >= done:
            first = text.rfind("\n", 0, found.start()) + 1
            done = text.find("\n", found.end()) + 1 or len(text)
            yield first, done


def _without(text: str, spans: Sequence[Span]) -> str:
    """The text without these parts, which are in order."""
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    return "".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def _portions(all_: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Some at a time, for a thread to look at."""
    return (all_[first : first + _PORTION] for first in range(0, len(all_), _PORTION))


def _by_path(erasure: Erasure) -> dict[str, dict[int, Erasure]]:
    """What is marked in files and in what they were, by path and line."""
    found: dict[str, dict[int, Erasure]] = defaultdict(dict)
    for mark in erasure.marks:
        path, _, line = mark.where.rpartition(":")
        if line.isdecimal():
            found[path][int(line)] = erasure.at(mark.where)
    return found


def _paragraphs_of(text: str) -> Iterator[tuple[int, str]]:
    for one in paragraphs(text, _unknown(text)):
        if one.start < one.end:
            yield one.line, text[one.start : one.end]


def _unknown(text: str) -> list[LineAuthor]:
    """As if one author had written all lines."""
    return [LineAuthor.USER] * (text.count("\n") + 1)


def _day_end(path: str) -> datetime | None:
    """When all of a day's note was written; None for other files."""
    day = date_in(path)
    return datetime.combine(day, time(), UTC) + _DAY if day else None


def _text(folder: Folder, path: str) -> str:
    """What a note says; nothing where none of its name is there by now, or a larger one than notes are.
    Raises WorkspaceError for one that cannot be read.
    """
    with translate_os_errors(path):
        try:
            return _decode(folder.read(path.split("/"), MAX_READ_BYTES))
        except (FileNotFoundError, NotADirectoryError, FileUnreadable, PathRefused):
            return ""


def _starts(text: str) -> list[int]:
    """Where the lines begin, and the end of the text."""
    return list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))


def _lines_of(span: Span, starts: Sequence[int]) -> range:
    first = bisect_right(starts, span[0]) - 1
    return range(first, bisect_right(starts, span[1] - 1))


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
