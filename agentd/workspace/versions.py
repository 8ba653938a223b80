"""The earlier contents of files that agentd changes, with the author of each change; kept outside
the workspace. Blocking.

Each path has a folder below the versions directory, named by a part of its SHA-256. In it, `path`
contains the path, `log` lists the versions, `lines` and `outside` record which lines agentd wrote
and which are from outside (see `authored`), and the other files are contents. A content that only
grew is kept once, in its longest form: a version names the file (which bears the digest of one
form) and how many of its bytes belong to the version. The content that a file had before agentd
first changed it is kept too, as made by hand. A content that contains a key is not kept: its
version is listed, but cannot be read.

A change is announced (`begin`) and then confirmed (`finish`). After a crash between the two, the
next `begin` tells from the file whether the change was made.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import compress, count
from pathlib import Path, PurePosixPath

import structlog
from msgspec.structs import replace

from agentd.core.errors import NotFound
from agentd.core.health import Problem
from agentd.core.paths import ensure_private_dir
from agentd.core.redaction import Redactor
from agentd.core.workspace import HAND, OWNER, Author, Version
from agentd.workspace.authored import LINES, OUTSIDE, Authored, added_lines, lines_of, writes_lines
from agentd.workspace.folder import Folder
from agentd.workspace.resolver import FOLDER_MODE
from agentd.workspace.version_list import (
    ABSENT,
    MISMADE,
    VersionEntry,
    drop_announced,
    entries_in,
    entry_as_json,
    newest_within,
    next_number,
    readable_entries,
)

log = structlog.get_logger()

KEEP = 50
LIST_DAMAGED = "versions_damaged"  # a Problem's code

_LOG, _PATH = "log", "path"
_CONTENT = re.compile(r"[0-9a-f]{64}(\.\d+)?")  # the name of a file that contains a content
_DAMAGED = ".damaged"  # ends the names of damaged lists that were put aside
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_LIMIT = 1 << 26
_FRESH_NS = 2 * 10**9  # a time stamp this young may hide a second change
AFFORDED = 1 << 27  # most bytes of one file's versions; the last two are kept in any case


class Content:
    """The content of a file (None: absent) with its digest, computed on demand unless given."""

    def __init__(self, data: bytes | None, digest: str = "") -> None:
        self.data = data
        self._digest = digest

    @property
    def digest(self) -> str:
        """SHA-256 in hex; "" for an absent file."""
        if not self._digest and self.data is not None:
            self._digest = digest_of(self.data)
        return self._digest


class Versions:
    """Keeps the earlier contents of files. Methods raise OSError besides the errors that they name.
    The caller of `begin` and `finish` holds the lock of the path.
    """

    def __init__(
        self,
        root: Path,
        keep: int = KEEP,
        redactor: Redactor | None = None,
        *,
        afforded: int = AFFORDED,
    ) -> None:
        """Keep the last `keep` versions of each file, or fewer if together they exceed `afforded`
        bytes. The last two are always kept.
        """
        self._root = Folder(root, passing=_pass_by)
        self._authored = Authored(self._root)
        self._outside = Authored(self._root, OUTSIDE, forgets=False)
        self._keep = keep
        self._most_bytes = afforded
        self._bare: dict[str, int] = {}  # folders without contents, with their mtime in ns
        self._redactor = redactor or Redactor()

    def begin(self, path: str, old: Content, new: Content, by: Author, at: datetime) -> None:
        """Keep `old`, and announce that `by` is about to change the file to `new`."""
        self._make_root()
        folder = folder_of(path)
        log = drop_announced(self._load(folder), old.digest)
        if old.data is not None and not self._is_kept(folder, log, old.digest):
            blob = self._keep_content(folder, old)
            if not log or log[-1].version.digest != old.digest:
                before = Version(next_number(log), at, old.digest, len(old.data), HAND)
                log.append(VersionEntry(before, blob))
        after = Version(next_number(log), at, new.digest, len(new.data or b""), by)
        log.append(VersionEntry(after, after.digest, is_done=False))
        if _PATH not in self._names(folder):
            self._root.replace((folder, _PATH), path.encode())
        lines = added_lines(old.data, new.data, by)
        self._authored.note(folder, lines)
        self._note_outside(path, old.data, new.data, lines, by)
        self._save(folder, log)

    def finish(self, path: str, old: Content, new: Content) -> None:
        """Confirm the announced change: the file is now `new`."""
        folder = folder_of(path)
        log = self._load(folder)
        last = log.pop()
        version = replace(last.version, digest=new.digest, size=len(new.data or b""))
        if self._has_grown(folder, log, old.data, new.data):
            log, blob = self._grown(folder, log, new)
        else:
            is_kept = bool(log) and log[-1].blob != ABSENT and log[-1].version.digest == old.digest
            blob = self._keep_content(folder, new, old.data if is_kept else None)
        self._save(
            folder,
            newest_within([*log, VersionEntry(version, blob)][-self._keep :], self._most_bytes),
        )

    def of(self, path: str, now: str) -> tuple[Version, ...]:
        """Return the versions of `path`, newest first; `now` is the digest of the current file."""
        return tuple(e.version for e in reversed(drop_announced(self._load(folder_of(path)), now)))

    def read(self, path: str, number: int) -> bytes:
        """Return the content of a version. Raises NotFound if it is not kept."""
        folder = folder_of(path)
        for entry in self._load(folder):
            version = entry.version
            if version.number == number and version.digest:
                try:
                    data = self._root.read((folder, entry.blob), _LIMIT)[: version.size]
                except FileNotFoundError:
                    break
                if digest_of(data) == version.digest:
                    return data
        raise NotFound(
            f"no version {number} of {path} is kept", cure=f"agentd memory history {path}"
        )

    def own(self, path: str, lines: Sequence[bytes]) -> list[bool]:
        """Return for each line of the file whether agentd wrote it, as far as is known."""
        folder = folder_of(path)
        if not self._names(folder):
            return [False] * len(lines)
        seen = {line.strip() for line in self._own_lines(folder)}
        noted = self._authored.own(folder, lines)
        return [
            is_noted or line.strip() in seen for is_noted, line in zip(noted, lines, strict=True)
        ]

    def outside(self, path: str, lines: Sequence[bytes]) -> list[bool]:
        """Return for each complete line whether a tainted change added it. If the file's name came
        from outside, all lines count as from outside, since they are always shown with the name.
        """
        folder = folder_of(path)
        if not self._names(folder):
            return [False] * len(lines)
        named, *brought = self._outside.own(folder, [_name_line(path), *lines])
        return [True] * len(lines) if named else brought

    def record_outside_names(self, paths: Iterable[str]) -> None:
        """Record that the names of these paths came from outside: folders that a tainted change is
        about to create, or transcripts.
        """
        for path in paths:
            self._make_root()
            self._outside.note(folder_of(path), [_name_line(path)])

    def add_outside_lines(self, path: str, lines: Iterable[bytes]) -> None:
        """Record these lines of a file without versions as from outside, before it is written."""
        self._make_root()
        self._outside.note(folder_of(path), lines)

    def set_outside_lines(self, path: str, lines: Iterable[bytes]) -> None:
        """Record that exactly these lines of a file without versions are from outside."""
        self._make_root()
        self._outside.set(folder_of(path), lines)

    def masked(self, path: str, old: bytes, new: bytes) -> None:
        """Keep lines from outside recorded as such after words in them were masked."""
        folder = folder_of(path)
        if not self._outside.is_empty(folder):
            self._keep_outside(folder, old, new)

    def inherit(self, path: str, source: str, lines: Sequence[bytes]) -> None:
        """Record `lines` as agentd's or from outside where they are so in `source`."""
        folder = folder_of(path)
        self._authored.note(folder, compress(lines, self.own(source, lines)))
        self._outside.note(folder, compress(lines, self.outside(source, lines)))

    def folders(self) -> dict[str, str]:
        """Return the folders that contain contents, with the files' paths ("" if not recorded)."""
        if not self._root.root.is_dir():
            return {}
        now = time.time_ns()
        folders = {entry.name: entry.mtime_ns for entry in self._root.entries(()) if entry.is_dir}
        bare = {folder: at for folder, at in self._bare.items() if folders.get(folder) == at}
        for folder, at in folders.items():
            if folder not in bare and not any(map(_is_listed, self._names(folder))):
                bare[folder] = at
        # Thousands of transcripts have a folder with marks only, so these are remembered; folders
        # that have just changed are checked again.
        self._bare = {folder: at for folder, at in bare.items() if at < now - _FRESH_NS}
        return {folder: self._path(folder) for folder in folders if folder not in bare}

    def contents(self, folder: str) -> Iterator[tuple[int, bytes]]:
        """Yield the kept contents of this folder with their version numbers, oldest first."""
        log = self._load(folder)
        kept = _Kept(self._root, folder, log)
        for entry in log:
            data = kept.content(entry)
            if data is not None:
                yield entry.version.number, data

    def longest(self, folder: str) -> Iterator[bytes]:
        """Yield the kept contents of this folder, newest first, leaving out those that the one
        before starts with. Each is the whole file that contains it, including what a crash may have
        left after the versions.
        """
        log = self._load(folder)
        kept = _Kept(self._root, folder, log)
        form: bytes | None = None
        for entry in reversed(log):
            data = kept.view(entry)
            if data is not None and not (form is not None and form.startswith(data)):
                form = kept.whole
                yield form

    def rewrite(
        self,
        folder: str,
        change: Callable[[bytes], bytes],
        new_size: Callable[[int], int | None],
    ) -> int:
        """Replace every kept content of this folder by `change(content)`, the newest first; return
        how many versions changed. For a content that is the first N bytes of the one passed last,
        `new_size(N)` is asked first: if it returns a size, the new content is that many bytes of
        the last result, and `change` is not called. The record of agentd's lines stays valid. Bytes
        that a crash left after the versions in a file are dropped.
        """
        log = self._load(folder)
        kept = _Kept(self._root, folder, log)
        rewritten: list[VersionEntry] = []
        changed, is_left = 0, False
        called_with = b""
        form, blob = b"", ABSENT  # the longest form of a content that only grew, and its file
        grown: list[int] = []  # indices in `rewritten` of the versions that `form` starts with
        sizes = {entry.name: entry.size for entry in self._root.entries((folder,))}
        is_marked = not self._outside.is_empty(folder)
        for entry in reversed(log):
            there = kept.view(entry)
            if there is None:
                rewritten.append(replace(entry, blob=ABSENT))
                continue
            is_known = bool(form) and called_with.startswith(there)
            size = new_size(len(there)) if is_known else None
            if size is None:
                called_with = bytes(there)
                new = change(called_with)
                size = len(new)
                if not (form and form.startswith(new)):
                    _digest(rewritten, grown, form)
                    form, grown = new, []
                    is_alone = new == called_with and sizes.get(entry.blob) == size
                    blob = entry.blob if is_alone else self._keep_alone(folder, form, called_with)
            if size != len(there) or not form.startswith(there):
                changed += 1
                if is_marked:
                    self._keep_outside(folder, bytes(there), form[:size])
            is_left = is_left or blob != entry.blob
            grown.append(len(rewritten))
            version = replace(entry.version, size=size)
            rewritten.append(VersionEntry(version, blob, entry.is_done))
        _digest(rewritten, grown, form)
        if changed or is_left:
            self._authored.note(folder, self._own_lines(folder))
            self._save(folder, rewritten[::-1])
        return changed

    def problems(self) -> tuple[Problem, ...]:
        """Return a problem for each damaged list that was put aside."""
        return tuple(self._problem(aside) for aside in sorted(self._root.root.glob(f"*{_DAMAGED}")))

    def _problem(self, aside: Path) -> Problem:
        folder = aside.name.partition(".")[0]
        path = self._path(folder) or folder
        text = (
            f"the list of former versions of {path} was damaged: what could be read of it, and "
            f"every content that is there, is kept; the damaged list is {aside}"
        )
        cure = f"see `agentd memory history {path}`; deleting the damaged list ends this notice"
        return Problem(LIST_DAMAGED, text, cure)

    def clear_strays(self) -> int:
        """Remove temporary files that a crash left behind; return how many."""
        return self._root.clear_strays() if self._root.root.is_dir() else 0

    def _make_root(self) -> None:
        ensure_private_dir(self._root.root).chmod(FOLDER_MODE)

    def _note_outside(
        self,
        path: str,
        old: bytes | None,
        new: bytes | None,
        lines: Sequence[bytes],
        by: Author,
    ) -> None:
        """Record the lines that a tainted change added, and the name of a file that it created, as
        from outside. Remove those that the owner wrote or approved from the record: exactly these
        lines and this name, not their neighbours.
        """
        folder, name = folder_of(path), [_name_line(path)] if old is None else []
        if by.tainted:
            self._outside.note(folder, [*lines, *name])
        elif by.approved:
            self._outside.drop(folder, lines)
            for named in (path, *map(str, PurePosixPath(path).parents)):
                self._outside.drop(folder_of(named), [_name_line(named)])
        elif by.kind == OWNER.kind:
            self._outside.drop(folder, [*lines, *name])

    def _keep_outside(self, folder: str, old: bytes, new: bytes) -> None:
        before, after = lines_of(old), lines_of(new)
        gone = set(compress(before, self._outside.own(folder, before))).difference(after)
        if gone:
            self._outside.note(folder, set(after).difference(before))

    def _path(self, folder: str) -> str:
        try:
            return self._root.read((folder, _PATH), _LIMIT).decode()
        except FileNotFoundError:
            return ""

    def _own_lines(self, folder: str) -> Iterator[bytes]:
        """Yield the lines that agentd added, according to the kept versions."""
        before: bytes | None = None
        log = self._load(folder)
        number = 0
        if not any(writes_lines(entry.version.by) for entry in log):
            return
        is_known = True
        kept = _Kept(self._root, folder, log)
        for entry in log:
            data = kept.content(entry)
            is_next = entry.version.number == number + 1  # else those between are not listed
            if is_known and is_next:
                yield from added_lines(before, data, entry.version.by)
            before, number = data, entry.version.number
            is_known = data is not None or not entry.version.digest

    def _is_kept(self, folder: str, log: Sequence[VersionEntry], digest: str) -> bool:
        """Whether the newest version has this digest, and its content is kept or must not be."""
        if not log or log[-1].version.digest != digest:
            return False
        return log[-1].blob == ABSENT or log[-1].blob in self._names(folder)

    def _has_grown(
        self, folder: str, log: Sequence[VersionEntry], old: bytes | None, new: bytes | None
    ) -> bool:
        """Whether the newest version is `old`, its file starts with `old`, and so does `new`."""
        if not (old and new and log and new.startswith(old) and log[-1].version.size == len(old)):
            return False
        try:
            return self._root.read((folder, log[-1].blob), _LIMIT).startswith(old)
        except FileNotFoundError:
            return False

    def _keep_content(self, folder: str, content: Content, before: bytes | None = None) -> str:
        """Keep the content; return the name of its file, "" for an absent file, `ABSENT` if it
        contains a key. `before`, if given, is already kept and so contains no key, which makes the
        search faster.
        """
        data = content.data
        if data is None:
            return ""
        if self._holds(data, before):
            return ABSENT
        if content.digest not in self._names(folder):
            self._root.replace((folder, content.digest), data)
        return content.digest

    def _keep_alone(self, folder: str, data: bytes, before: bytes) -> str:
        """Keep the rewritten content in a file that contains nothing else; return the file's name.
        `before` is the kept content that it was made from.
        """
        if self._holds(data, before):
            return ABSENT
        sizes = {entry.name: entry.size for entry in self._root.entries((folder,))}
        digest = digest_of(data)
        names = (f"{digest}.{number}" if number else digest for number in count())
        name = next(name for name in names if sizes.get(name, len(data)) == len(data))
        if name not in sizes:
            self._root.replace((folder, name), data)
        return name

    def _holds(self, data: bytes, before: bytes | None) -> bool:
        """Whether the data contain a key. `before`, if given, contains none."""
        text = data.decode(errors="replace")
        if before is None:
            return self._redactor.holds(text)
        return self._redactor.holds_beside(text, before.decode(errors="replace"))

    def _grown(
        self, folder: str, log: list[VersionEntry], new: Content
    ) -> tuple[list[VersionEntry], str]:
        """Keep a content that starts with the newest version: append to that version's file if it
        contains nothing more, else write a new file. Return the log, with the versions that the
        content starts with moved to that file, and the file's name.
        """
        blob, size, data = log[-1].blob, log[-1].version.size, new.data or b""
        if self._redactor.holds_behind(data, size):
            return log, ABSENT
        if self._root.extend((folder, blob), data[size:], size):
            return log, blob
        name = new.digest
        if name not in self._names(folder):
            self._root.replace((folder, name), data)
        is_in = [entry.blob == blob and entry.version.size <= size for entry in log]
        return [
            replace(e, blob=name) if one else e for e, one in zip(log, is_in, strict=True)
        ], name

    def _load(self, folder: str) -> list[VersionEntry]:
        sizes = self._sizes(folder)
        if _LOG not in sizes:
            return self._unlisted(sizes)
        data = self._root.read((folder, _LOG), _LIMIT)
        try:
            return entries_in(data)
        except MISMADE as error:
            log.warning("versions_list_damaged", folder=folder, error=type(error).__name__)
        if data:
            self._root.replace((f"{folder}.{digest_of(data)[:8]}{_DAMAGED}",), data)
        return self._salvaged(folder, readable_entries(data))

    def _salvaged(self, folder: str, entries: list[VersionEntry]) -> list[VersionEntry]:
        """Return the entries that could be read of a damaged list, followed by one for each stored
        content that they do not name, oldest first. These get HAND as their author.
        """
        named = {entry.blob for entry in entries}
        files = [e for e in self._root.entries((folder,)) if _CONTENT.fullmatch(e.name)]
        for file in sorted(files, key=lambda e: (e.mtime_ns, e.name)):
            if file.name not in named:
                data = self._root.read((folder, file.name), _LIMIT)
                at = datetime.fromtimestamp(file.mtime_ns / 1e9, UTC)
                version = Version(next_number(entries), at, digest_of(data), len(data), HAND)
                entries.append(VersionEntry(version, file.name))
        return entries

    def _unlisted(self, sizes: Mapping[str, int]) -> list[VersionEntry]:
        """Return a log made from the files `STAMP-DIGEST` of older releases, which kept no list."""
        entries: list[VersionEntry] = []
        for name in sorted(name for name in sizes if "-" in name):
            stamp, _, digest = name.partition("-")
            at = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
            version = Version(len(entries) + 1, at, digest, sizes[name], HAND)
            entries.append(VersionEntry(version, name))
        return entries

    def _save(self, folder: str, log: Sequence[VersionEntry]) -> None:
        """Write the list, then delete files not in it: a crash leaves too many, never too few."""
        rows = [entry_as_json(entry) for entry in log]
        self._root.replace((folder, _LOG), json.dumps(rows).encode())
        wanted = {entry.blob for entry in log} | {_LOG, _PATH, LINES, OUTSIDE}
        for name in self._names(folder):
            if name not in wanted:
                self._root.delete((folder, name))

    def _names(self, folder: str) -> list[str]:
        return list(self._sizes(folder))

    def _sizes(self, folder: str) -> dict[str, int]:
        """Return the files in this folder with their sizes in bytes."""
        if not self._root.root.is_dir():
            return {}
        try:
            entries = self._root.entries((folder,))
        except FileNotFoundError:
            return {}
        return {e.name: e.size for e in entries if not e.name.startswith(".")}


class _Kept:
    """Reads the contents of versions. A file that contains many of them is read and hashed once, if
    they are asked for one after another.
    """

    def __init__(self, files: Folder, folder: str, log: Sequence[VersionEntry]) -> None:
        self._root = files
        self._folder = folder
        self._sizes: dict[str, set[int]] = {}
        for entry in log:
            self._sizes.setdefault(entry.blob, set()).add(entry.version.size)
        self._blob = ""
        self._data = b""
        self._digests: dict[int, str] = {}

    @property
    def whole(self) -> bytes:
        """The whole file that contains the content returned last."""
        return self._data

    def content(self, entry: VersionEntry) -> bytes | None:
        """Return the version's content; None if absent or not kept. Raises OSError."""
        return None if self.view(entry) is None else self._data[: entry.version.size]

    def view(self, entry: VersionEntry) -> memoryview | None:
        """Do what `content` does without copying what may be one of many beginnings of a file."""
        version = entry.version
        if not version.digest:
            return None
        if entry.blob != self._blob:
            try:
                self._data = self._root.read((self._folder, entry.blob), _LIMIT)
            except FileNotFoundError:
                return None
            self._blob = entry.blob
            self._digests = _digests_of(self._data, self._sizes[entry.blob])
        is_whole = self._digests[version.size] == version.digest
        return memoryview(self._data)[: version.size] if is_whole else None


def _digests_of(data: bytes, sizes: Iterable[int]) -> dict[int, str]:
    """Return the digest of the first N bytes, for each of these sizes N."""
    view, done = memoryview(data), 0
    digest = hashlib.sha256()
    found = {}
    for size in sorted(sizes):
        digest.update(view[done:size])
        found[size], done = digest.hexdigest(), size
    return found


def _digest(entries: list[VersionEntry], grown: Sequence[int], form: bytes) -> None:
    """Set the digests of the entries at the indices `grown`, which `form` starts with."""
    digests = _digests_of(form, {entries[n].version.size for n in grown})
    for n in grown:
        version = entries[n].version
        version = replace(version, digest=digests[version.size])
        entries[n] = replace(entries[n], version=version)


def _is_listed(name: str) -> bool:
    """Whether a file of this name shows that its folder has contents."""
    return name == _LOG or "-" in name


def digest_of(data: bytes | None) -> str:
    """SHA-256 in hex; "" for an absent file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def folder_of(path: str) -> str:
    """Return the name of the folder in which versions of this file are kept."""
    return hashlib.sha256(path.encode()).hexdigest()[:32]


def _name_line(path: str) -> bytes:
    """Return what stands for the file's name among its lines in a record; no line can equal it."""
    return b"name\0" + path.encode()


def _pass_by(_name: str) -> None:
    """Do nothing: the failpoints concern the workspace's own files."""
