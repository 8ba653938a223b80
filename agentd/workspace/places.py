"""Resolves paths to files according to who asks, and reads the files.

The owner's sessions see everything in the user's own workspace. Sessions that others read (groups)
and isolated ones see what is below the folders of `[workspace] group_paths`, and nothing else: a
file is visible to them because its folder was named, never because its own name looks harmless. A
file with a second name on the disk (a hard link) is not visible to them either, since that name may
be anywhere; the path does not show this, so it is checked where the file is opened. Four files that
shape the agent are in the prompt of every session, although only prompts find them there. Another
scope is visible to the owner only, and without its identity files: only the user's own workspace
says whose agent this is. Those names are compared folded, wherever they are in a path.

`daily/X` and similar paths are other spellings of `X` in the folder of daily notes. Which of these
folders contains the file is looked up only for readers who may see it, and never shows in a
spelling or an error: otherwise the spelling would tell others that a hidden file exists.
"""

from __future__ import annotations

import codecs
import shlex
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from agentd.core.errors import FileUnreadable, PathRefused, WorkspaceError
from agentd.core.turn import SessionKind
from agentd.core.workspace import FileView, Reader
from agentd.workspace.changes import GrowingDigest, most_bytes
from agentd.workspace.folder import Folder, Stamp
from agentd.workspace.names import Name, fold, parse, parse_file
from agentd.workspace.os_errors import translate_os_errors
from agentd.workspace.workspace_settings import WorkspaceSettings

IN_EVERY_PROMPT = frozenset({"SOUL.md", "AGENTS.md", "TOOLS.md", "IDENTITY.md"})
_IDENTITY = frozenset({"agents", "soul", "user", "identity", "tools", "bootstrap", "heartbeat"})
_NOWHERE = (".agentd-hidden",)  # no path from outside may begin with a dot
_MAX_CACHED = 256
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKED = (  # the longer mark first: that of UTF-32 starts with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    *((mark, "utf-16") for mark in _UTF_16),
)


class Visibility:
    """Decides which files a kind of session may see."""

    def __init__(self, group_paths: Iterable[str]) -> None:
        """`group_paths` are folders. Raises PathRefused for an invalid path."""
        named = sorted({parse(path).parts for path in group_paths})
        self._shared = tuple(f for f in named if not any(_is_below(f, other) for other in named))

    def sees(self, name: Name, kind: SessionKind) -> bool:
        """Whether such a session may see a file of this name, judged by the path only."""
        if kind is not SessionKind.OWNER:
            return not name.scope and any(_is_below(name.parts, f) for f in self._shared)
        return not name.scope or not any(_stem(part) in _IDENTITY for part in name.parts)

    def sees_folder(self, name: Name, kind: SessionKind) -> bool:
        """Whether such a session may see all that is directly in the folder, apart from identity
        files.
        """
        return self.sees(Name(name.scope, (*name.parts, "any")), kind)

    def shared_below(self, name: Name) -> tuple[tuple[str, ...], ...]:
        """Return the shared folders below a folder, as parts."""
        return () if name.scope else tuple(f for f in self._shared if _is_below(f, name.parts))


class ResolvedPath(Struct, frozen=True):
    """The file or folder to which a path leads for a reader. `asked` is the spelling that was asked
    for, `parts` the path below `folder`. `is_named`: the path is visible to others than the owner.
    `alone`: the reader is one of these others, for whom a file with a second hard link does not
    exist.
    """

    asked: str
    name: Name
    folder: Folder
    parts: tuple[str, ...]
    is_named: bool = False
    alone: bool = False

    @classmethod
    def hidden(cls, asked: str, name: Name, folder: Folder) -> ResolvedPath:
        """Return a place at which no file can exist, in the stead of one that must not be seen."""
        return cls(asked, name, folder, _NOWHERE)

    @property
    def is_hidden(self) -> bool:
        """Whether the place was made by `hidden`."""
        return self.parts is _NOWHERE


class TextReader:
    """Reads files as text and caches them until they change. Blocking."""

    def __init__(self, digests: GrowingDigest) -> None:
        self._digests = digests
        self._kept: OrderedDict[str, tuple[Stamp, FileView]] = OrderedDict()

    def load(
        self, places: Sequence[ResolvedPath], *, keep: bool = True
    ) -> list[FileView | WorkspaceError]:
        """Return for each place the file, or the error that reading it gave. Without `keep`, files
        that are not in the cache are not added to it.
        """
        return [self._load(place, keep=keep) for place in places]

    def damaged(self, place: ResolvedPath) -> FileView:
        """Return the file with each byte that is not UTF-8 as a surrogate (`surrogateescape`).
        Raises WorkspaceError, also for a file in UTF-16, which this would not make readable.
        """
        key = str(place.name)
        with translate_os_errors(place.asked):
            data = place.folder.read(place.parts, most_bytes(key), alone=place.alone)
        errors = "strict" if data.startswith(_UTF_16) else "surrogateescape"
        try:
            return FileView(key, data.decode(errors=errors), self._digests.of(data))
        except UnicodeDecodeError as error:
            raise _not_text(place, error) from None

    def _load(self, place: ResolvedPath, *, keep: bool) -> FileView | WorkspaceError:
        key = str(place.name)
        try:
            with translate_os_errors(place.asked):
                # Before the read, so that a change during the read is noticed by the next load.
                stamp = place.folder.stamp(place.parts, alone=place.alone)
                kept = self._kept.get(key)
                if kept is not None and kept[0] == stamp:
                    return kept[1]
                data = place.folder.read(place.parts, most_bytes(key), alone=place.alone)
            is_shared = place.is_named and stamp.is_alone
            view = FileView(key, data.decode(), self._digests.of(data), is_shared)
        except UnicodeDecodeError as error:
            return _not_text(place, error)
        except WorkspaceError as error:
            # A kept traceback would keep all frames alive, and with them the list of results.
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)
        if keep or kept is not None:
            self._kept[key] = (stamp, view)
        while len(self._kept) > _MAX_CACHED:
            self._kept.popitem(last=False)
        return view


def _not_text(place: ResolvedPath, error: UnicodeDecodeError) -> FileUnreadable:
    data, at = error.object, error.start
    encoding = next((name for mark, name in _MARKED if data.startswith(mark)), "")
    is_binary = not encoding and b"\0" in data
    what = f"not UTF-8 text: byte {at} is {data[at]:#04x}"
    if is_binary:
        what = f"no text: byte {data.index(0)} is 0x00"
    if place.alone:  # only the owner may learn the folder's path on this machine
        cure = "the owner's `agentd doctor` names the command that mends it"
        return FileUnreadable(f"{place.asked} is {what}", cure=cure)
    path = str(place.folder.root.joinpath(*place.parts).absolute())
    file, new, other = (shlex.quote(path + ending) for ending in ("", ".new", ".bin"))
    if is_binary:
        cure = f"move it elsewhere, or give it an ending that is not read: mv {file} {other}"
    else:
        convert = f"iconv -f {encoding or 'latin1'} -t utf-8 {file} > {new} && mv {new} {file}"
        cure = f"convert it, {'' if encoding else 'for example '}with: {convert}"
    return FileUnreadable(f"{place.asked} is {what}", cure=cure)


_ROOT = Name("", ())


class NotePlaces:
    """Resolves paths in a workspace and in its other scopes; the scope "" is the
    workspace itself.
    """

    def __init__(
        self, folders: Mapping[str, Folder], settings: WorkspaceSettings, sight: Visibility
    ) -> None:
        self._folders = folders
        self._sight = sight
        self._daily = tuple(settings.daily_dir.split("/"))
        aliases = (tuple(alias.split("/")) for alias in settings.daily_aliases)
        self._aliases = tuple(alias for alias in aliases if alias != self._daily)

    def spelled(self, path: str) -> Name:
        """Return the canonical name of a file. No I/O. Raises PathRefused."""
        return self._canonical(parse_file(path))

    def standing(self, path: str) -> Name:
        """Return the name under which the file exists: the name as spelled, if there is a file;
        else the canonical name, or the name below an alias where there is a file. If none exists,
        or the scope does not, the canonical name. Blocking. Raises PathRefused.
        """
        asked = parse_file(path)
        return self._standing(asked, self._canonical(asked))

    def _canonical(self, asked: Name) -> Name:
        for alias in self._aliases:
            if _is_below(asked.parts, alias):
                return Name(asked.scope, (*self._daily, *asked.parts[len(alias) :]))
        return asked

    def _standing(self, asked: Name, name: Name) -> Name:
        folder, depth = self._folders.get(name.scope), len(self._daily)
        if folder is None:
            return name
        if asked != name and _stands(folder, asked.parts):
            return asked
        if name.parts[:depth] != self._daily or _stands(folder, name.parts):
            return name
        others = (Name(name.scope, (*alias, *name.parts[depth:])) for alias in self._aliases)
        return next((other for other in others if _stands(folder, other.parts)), name)

    def file(self, path: str, reader: Reader) -> ResolvedPath:
        """Return the place at which the reader finds the file. Blocking. Raises PathRefused."""
        asked = parse_file(path)
        name = self._canonical(asked)
        if name.scope not in self._folders or not self._sight.sees(name, reader.kind):
            return ResolvedPath.hidden(str(asked), name, self._folders[""])
        found = self._standing(asked, name)
        is_named, alone = (
            self._sight.sees(found, SessionKind.GROUP),
            reader.kind is not SessionKind.OWNER,
        )
        return ResolvedPath(
            str(asked), found, self._folders[name.scope], found.parts, is_named, alone
        )

    def in_prompt(self, path: str, reader: Reader) -> ResolvedPath:
        """Return the place at which the reader's prompts find a file, including the files that are
        in every prompt. Blocking. Raises PathRefused.
        """
        if path not in IN_EVERY_PROMPT:
            return self.file(path, reader)
        alone = reader.kind is not SessionKind.OWNER
        return ResolvedPath(path, Name("", (path,)), self._folders[""], (path,), alone=alone)

    def directory(self, path: str, reader: Reader) -> ResolvedPath:
        """Return the place at which the reader finds a directory; "" is the workspace itself.
        Readers other than the owner also find the folders that lead to shared ones. Blocking.
        Raises PathRefused.
        """
        name = parse(path)
        is_seen = self._sight.sees_folder(name, reader.kind) or (
            reader.kind is not SessionKind.OWNER and bool(self._sight.shared_below(name))
        )
        if name.scope not in self._folders or not (is_seen or name == _ROOT):
            return ResolvedPath.hidden(str(name), name, self._folders[""])
        folder = self._folders[name.scope]
        if name.parts in self._aliases and not _stands(folder, name.parts):
            return ResolvedPath(str(name), Name(name.scope, self._daily), folder, self._daily)
        return ResolvedPath(str(name), name, folder, name.parts)

    def standing_own(self, path: str) -> Name:
        """Return what `standing` returns, for a file that may be written. Blocking. Raises
        PathRefused.
        """
        self.changeable(path)
        return self.standing(path)

    def changeable(self, path: str) -> Name:
        """Return the canonical name of a file that may be written. Raises PathRefused for other
        scopes.
        """
        name = self.spelled(path)
        if name.scope:
            raise PathRefused(
                f"{name} belongs to another workspace, which is only read",
                cure="write to a file of the own workspace",
            )
        return name

    def require_changeable(self, path: str, reader: Reader) -> None:
        """Check that the reader may write to this path, whether a file is there or not. Raises
        PathRefused.
        """
        if not self._sight.sees(self.changeable(path), reader.kind):
            raise PathRefused(
                f"{parse_file(path)} cannot be changed from this session",
                cure="ask for it in a session of the owner's own",
            )


def _stands(folder: Folder, parts: tuple[str, ...]) -> bool:
    try:
        folder.beneath.stat(parts)
    except (OSError, WorkspaceError):
        return False
    return True


def _is_below(parts: tuple[str, ...], folder: tuple[str, ...]) -> bool:
    return len(parts) > len(folder) and parts[: len(folder)] == folder


def _stem(part: str) -> str:
    return fold(part).partition(".")[0].strip()
