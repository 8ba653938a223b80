"""Masks words in the lines that agentd wrote in the user's files, and in the kept versions of all
files.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from enum import Enum, auto
from functools import partial
from itertools import accumulate
from pathlib import Path
from time import time_ns
from typing import TypeVar

from msgspec import Struct

from agentd.core.erasure import Erasure, StoredText, mask_spans, offset_after_masking
from agentd.core.errors import EditConflict, FileUnreadable, PathRefused, WorkspaceError
from agentd.core.offloading import to_the_end
from agentd.core.outside import marks_in
from agentd.core.ports import TextFilter
from agentd.core.spans import Span, apart
from agentd.core.times import date_in
from agentd.core.turn import MAIN, SessionKind
from agentd.core.workspace import FACTS_PATH, Reader, TreeEntry, is_graph_text
from agentd.workspace.changes import MAX_READ_BYTES, TRIES, changed_error
from agentd.workspace.files import Files
from agentd.workspace.folder import Folder
from agentd.workspace.os_errors import translate_os_errors
from agentd.workspace.versions import Versions, folder_of

_BEGINS = re.compile(r"\s*(?:[-*+•–#>|]|\d{1,3}[.)]\s)")
_TOMBSTONE = re.compile(r"<!-- forgotten id=[\w-]+ at=\S+ -->\s*")
_MOST = 20  # lines of one paragraph


class LineAuthor(Enum):
    """The author of a line."""

    USER = auto()
    AGENT = auto()
    SHIPPED = auto()  # it came with agentd, for a new workspace


class Paragraph(Struct, frozen=True):
    """The unit in which notes are read and masked: adjoining lines of one author, such as a list
    entry with the lines below it, a heading, or a few lines of prose. `line` is the number of the
    first line, from 1; `start` and `end` are character offsets.
    """

    line: int
    start: int
    end: int
    author: LineAuthor

    @property
    def is_own(self) -> bool:
        """Whether agentd wrote the paragraph."""
        return self.author is LineAuthor.AGENT


def paragraphs(text: str, authors: Sequence[LineAuthor]) -> Iterator[Paragraph]:
    """Yield the paragraphs in order, blank lines as empty ones. `authors` has the author of each
    line.
    """
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


_OWNER = Reader(MAIN, SessionKind.OWNER)
_DEPTH = 64
_NOTHING: Mapping[str, Collection[str]] = {}
_DAY = timedelta(days=2)  # from the start of a day in UTC to its end in every zone
_MOST_HELD = 1 << 22  # characters of file texts that are held, so that they are not read twice
_FRESH_NS = 2 * 10**9  # a time stamp this young may hide a second change
_PORTION = 250  # files read by one call in a thread

_T = TypeVar("_T")


class _Held:
    """The texts of files, up to a limit, that have not changed since the time `settled` (ns). Files
    with a younger time stamp are not held, since it may hide a second change.
    """

    def __init__(self, settled: int) -> None:
        self._settled = settled
        self._texts: dict[str, tuple[tuple[int, ...], str]] = {}  # by path, behind the stamps
        self._room = _MOST_HELD

    def __len__(self) -> int:
        return len(self._texts)

    def put(self, entry: TreeEntry, text: str) -> None:
        """Hold the text of a file; `entry` is how the file was listed before it was read."""
        if 0 < entry.ctime_ns < self._settled and len(text) <= self._room:
            self._room -= len(text)
            self._texts[entry.path] = entry.stamp, text

    def text(self, entry: TreeEntry) -> str | None:
        """Return the text of the file if it is held and the file is unchanged, else None."""
        stamp, text = self._texts.get(entry.path, ((), ""))
        return text if stamp == entry.stamp else None


class NoteEraser:
    """The Eraser and SearchableTexts of the files below `root`. In lines that agentd wrote, words
    are masked; the user's own lines stay unchanged unless a mark names them. Files of `apart` and
    the graph's text have erasers of their own. `shipped` maps paths to lines that came with agentd
    and are nobody's words. Must run before VersionEraser.
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
        self._now_ns = now_ns  # the clock of the files' time stamps
        self._read_before = _Held(0)

    @property
    def name(self) -> str:
        """See Eraser."""
        return "notes"

    async def erase(self, erasure: Erasure) -> int:
        """See Eraser; counts masked passages. Other files are masked even if one fails. Raises
        WorkspaceError for the first that cannot be read or changed.
        """
        try:
            return await self._erase(erasure)
        finally:
            self._read_before = _Held(0)  # no longer hold texts that contain what was masked

    async def _erase(self, erasure: Erasure) -> int:
        marked = _by_path(erasure)
        count = 0
        failed: list[
            WorkspaceError
        ] = []  # a file that cannot be read or changed does not stop the others
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

    async def texts(self, wanted: TextFilter | None = None) -> AsyncIterator[Sequence[StoredText]]:
        """See SearchableTexts; yields one text for each paragraph. The texts are held for the next
        call of `erase`. Raises WorkspaceError.
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
        """Yield the files with their texts, from memory where they are held. A file that cannot be
        read adds its error to `failed`; without such a list it raises WorkspaceError.
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
        """Return the paths of the files that contain words to erase."""
        read = self._read(entries, failed)
        return frozenset(entry.path for entry, text in read if erasure.stands_in(text))

    def _written_in(
        self, entries: Sequence[TreeEntry], wanted: TextFilter | None, held: _Held
    ) -> list[StoredText]:
        found: list[StoredText] = []
        for entry, text in self._read(entries):
            path = entry.path
            held.put(entry, text)
            if wanted is not None and not wanted.may_be(text, path):
                wanted.pass_over(1 + text.count("\n") // 2)  # paragraphs, about
            else:
                with translate_os_errors(path):
                    found += self._paragraph_texts(path, text)
        return found

    def _paragraph_texts(self, path: str, text: str) -> Iterator[StoredText]:
        at = _day_end(path)
        for one in paragraphs(text, self._authors(path, text)):
            if one.start < one.end and one.author is not LineAuthor.SHIPPED:
                said = text[one.start : one.end]
                is_users = not one.is_own
                yield StoredText(f"{path}:{one.line}", said, at, is_users, is_in_file=True)

    def _authors(self, path: str, text: str) -> list[LineAuthor]:
        """Return the author of each line."""
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
        """Mask the words in one file; return the number of passages. What others write in the
        meantime is kept. Raises EditConflict if the file changes all the time.
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
        """Append to the new file what others wrote to the file that it replaced."""
        parts = path.split("/")
        for _ in range(TRIES if late else 0):
            data = self._folder.read_for_change(parts, MAX_READ_BYTES) or b""
            with suppress(EditConflict):
                look = partial(self._require, path, data)
                late = self._folder.exchange(parts, data + late, look)
                if not late:
                    break

    def _require(self, path: str, data: bytes) -> None:
        """Check that the file still has this content. Raises EditConflict if not, PathRefused if
        the file must not be changed.
        """
        if self._folder.read_for_change(path.split("/"), MAX_READ_BYTES) != data:
            raise changed_error(path)

    def _masked_in(
        self, path: str, text: str, erasure: Erasure, marks: Mapping[int, Erasure]
    ) -> list[Span]:
        """Return the spans to mask: words that lie entirely in agentd's lines, and marked passages;
        without origin markers.
        """
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
    """The Eraser and SearchableTexts of the kept versions of files. Words are masked there whoever
    wrote the line.
    """

    def __init__(self, files: Files, versions_dir: Path) -> None:
        self._files = files
        self._versions = Versions(versions_dir)

    @property
    def name(self) -> str:
        """See Eraser."""
        return "versions"

    async def erase(self, erasure: Erasure) -> int:
        """See Eraser; counts changed versions. Raises WorkspaceError."""
        count = 0
        with translate_os_errors("the versions of files"):
            for some in _portions(list((await self._folders()).items())):
                said = await asyncio.to_thread(self._saying, some, erasure)
                for folder, path in (one for one in some if one in said):
                    # If the path is unknown, this locks another name; but then there is no such
                    # file, so nobody else adds a version.
                    async with self._files.lock(path):
                        count += await to_the_end(partial(self._rewrite, folder, path, erasure))
        return count

    async def texts(self, wanted: TextFilter | None = None) -> AsyncIterator[Sequence[StoredText]]:
        """See SearchableTexts; yields each paragraph of a file once, not once for each version.
        `memory/facts.md` is left out: it contains facts, one in each line. Raises WorkspaceError.
        """
        with translate_os_errors("the versions of files"):
            for some in _portions(list((await self._folders()).items())):
                found = await asyncio.to_thread(self._written_in, some, wanted)
                if found:
                    yield found

    async def _folders(self) -> dict[str, str]:
        """Return the folders with versions, mapped to the paths of their files, or to the folder's
        own name if the path is unknown.
        """
        folders = await asyncio.to_thread(self._versions.folders)
        entries = () if all(folders.values()) else await self._files.tree("", _DEPTH, _OWNER)
        paths = {folder_of(entry.path): entry.path for entry in entries}
        return {folder: path or paths.get(folder, folder) for folder, path in folders.items()}

    def _written_in(
        self, folders: Sequence[tuple[str, str]], wanted: TextFilter | None
    ) -> list[StoredText]:
        return [
            one
            for folder, path in folders
            if path != FACTS_PATH
            for one in self._version_texts(folder, path, wanted)
        ]

    def _version_texts(
        self, folder: str, path: str, wanted: TextFilter | None
    ) -> Iterator[StoredText]:
        first: dict[str, str] = {}  # paragraph → PATH@VERSION:LINE of the oldest version with it
        for number, data in self._versions.contents(folder):
            for line, text in _paragraphs_of(_decode(data)):
                first.setdefault(text, f"{path}@{number}:{line}")
        at = _day_end(path)
        for text, where in first.items():
            if wanted is None or wanted.may_be(text, where):
                yield StoredText(where, text, at)
            else:
                wanted.pass_over(1)

    def _saying(
        self, folders: Sequence[tuple[str, str]], erasure: Erasure
    ) -> frozenset[tuple[str, str]]:
        """Return the folders with something to mask."""
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
        cut = _Cutter(erasure, marked, ids)
        return self._versions.rewrite(folder, cut, cut.new_size)


class _Cutter:
    """Removes the words to erase from contents. The beginning of a content (a file that only grew)
    need not be searched again: its result is the beginning of that of the whole.
    """

    def __init__(self, erasure: Erasure, marked: Mapping[str, Erasure], ids: Sequence[str]) -> None:
        self._erasure = erasure
        self._marked = marked  # by paragraph text; added lines may change where paragraphs end
        self._ids = ids
        self._long = b""  # the content of the last call
        self._lines: list[Span] = []  # removed lines of facts: byte spans in `_long`
        self._spans: list[
            Span
        ] = []  # masked passages: byte spans in what is left without these lines
        self._kept: list[Span] = []  # passages never masked, whatever they say: spans as above

    def new_size(self, size: int) -> int | None:
        """Return the size of the result for the first `size` bytes of the content of the last call,
        None if that result may not be the beginning of what the call returned.
        """
        is_complete = self._long[size - 1 : size] == b"\n" and not self._marked
        end = self._end(size) if is_complete else None
        return None if end is None else offset_after_masking(end, self._spans)

    def _end(self, size: int) -> int | None:
        """Return the byte offset that corresponds to `size` once the lines of facts are removed;
        None if the offset is inside a passage that is masked or must not be.
        """
        end = size - sum(last - first for first, last in self._lines if last <= size)
        is_cut = any(first < end < last for first, last in (*self._spans, *self._kept))
        return None if is_cut else end

    def __call__(self, data: bytes) -> bytes:
        """Return the content without the words to erase."""
        text = _decode(data)
        # Lines of facts first: searching the words is fast, but locating each match is slow.
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
        return _encode(mask_spans(text, masked))


def _in_bytes(text: str, spans: Sequence[Span]) -> list[Span]:
    """Convert spans, which are in order, from characters to bytes of the text."""
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
    """Yield the spans of the lines that contain the ids of these facts, except tombstones: they say
    nothing, and without them a version would not equal the page that it was made from.
    """
    if not ids:
        return
    named = re.compile(rf"id=(?<!\wid=)(?:{'|'.join(map(re.escape, ids))})(?![\w-])")
    done = 0
    for found in named.finditer(text):
        if found.start() >= done:
            first = text.rfind("\n", 0, found.start()) + 1
            done = text.find("\n", found.end()) + 1 or len(text)
            if not _TOMBSTONE.fullmatch(text, first, done):
                yield first, done


def _without(text: str, spans: Sequence[Span]) -> str:
    """Return the text without these spans, which are in order."""
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    return "".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def _portions(all_: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Yield the sequence in portions, each to be processed by one call in a thread."""
    return (all_[first : first + _PORTION] for first in range(0, len(all_), _PORTION))


def _by_path(erasure: Erasure) -> dict[str, dict[int, Erasure]]:
    """Return the marked passages in files and versions, by path and line number."""
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
    """Return one and the same author for all lines."""
    return [LineAuthor.USER] * (text.count("\n") + 1)


def _day_end(path: str) -> datetime | None:
    """Return the end of the day of a daily note, by when all of it was written; None for other
    files.
    """
    day = date_in(path)
    return datetime.combine(day, time(), UTC) + _DAY if day else None


def _text(folder: Folder, path: str) -> str:
    """Return the text of a note; "" if there is no regular file there or it is larger than notes
    may be. Raises WorkspaceError if it cannot be read.
    """
    with translate_os_errors(path):
        try:
            return _decode(folder.read(path.split("/"), MAX_READ_BYTES))
        except (FileNotFoundError, NotADirectoryError, FileUnreadable, PathRefused):
            return ""


def _starts(text: str) -> list[int]:
    """Return the offset at which each line starts, and the end of the last one."""
    return list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))


def _lines_of(span: Span, starts: Sequence[int]) -> range:
    first = bisect_right(starts, span[0]) - 1
    return range(first, bisect_right(starts, span[1] - 1))


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
