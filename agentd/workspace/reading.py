"""Reads files as text and keeps what it has read until the file changes. Blocking."""

from __future__ import annotations

import codecs
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from agentd.domain.workspace import FileView
from agentd.errors import FileUnreadable, WorkspaceError
from agentd.workspace.changes import most_bytes
from agentd.workspace.folder import Folder, Stamp
from agentd.workspace.names import Name
from agentd.workspace.refusals import translated
from agentd.workspace.versions import digest_of

_NOWHERE = (".agentd-hidden",)  # no path from outside may begin with a dot
_MAX_CACHED = 256
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads for somebody: `asked` is how it was spelled, `parts` are below `folder`.
    `is_named`: others than the owner may know of the path. `alone`: whoever asks is one of them, for
    whom a file with a second name is not there.
    """

    asked: str
    name: Name
    folder: Folder
    parts: tuple[str, ...]
    is_named: bool = False
    alone: bool = False

    @classmethod
    def hidden(cls, asked: str, name: Name, folder: Folder) -> Place:
        """A place where nothing can be: what must not be seen is looked for there."""
        return cls(asked, name, folder, _NOWHERE)

    @property
    def is_hidden(self) -> bool:
        """Whether it was made by `hidden`."""
        return self.parts is _NOWHERE


class Reading:
    """Loads files, the unchanged ones from memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Stamp, FileView]] = OrderedDict()

    def load(
        self, places: Sequence[Place], *, keep: bool = True
    ) -> list[FileView | WorkspaceError]:
        """For each place the file, or the error that reading it would raise. Without `keep` what is
        read now is not kept for the next time.
        """
        return [self._load(place, keep=keep) for place in places]

    def damaged(self, place: Place) -> FileView:
        """The file with each byte that is no UTF-8 as the surrogate that `surrogateescape` makes of it.
        Raises WorkspaceError, for a file in UTF-16 too: nothing of it can be read so.
        """
        key = str(place.name)
        with translated(place.asked):
            data = place.folder.read(place.parts, most_bytes(key), alone=place.alone)
        errors = "strict" if data.startswith(_UTF_16) else "surrogateescape"
        try:
            return FileView(key, data.decode(errors=errors), digest_of(data))
        except UnicodeDecodeError as error:
            raise _not_text(place.asked, error) from None

    def _load(self, place: Place, *, keep: bool) -> FileView | WorkspaceError:
        key = str(place.name)
        try:
            with translated(place.asked):
                # Taken first, so that a change while we read is seen the next time.
                stamp = place.folder.stamp(place.parts, alone=place.alone)
                kept = self._kept.get(key)
                if kept is not None and kept[0] == stamp:
                    return kept[1]
                data = place.folder.read(place.parts, most_bytes(key), alone=place.alone)
            is_shared = place.is_named and stamp.is_alone
            view = FileView(key, data.decode(), digest_of(data), is_shared)
        except UnicodeDecodeError as error:
            return _not_text(place.asked, error)
        except WorkspaceError as error:
            # A traceback that is kept holds all that was at work then, this list among it.
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)
        if keep or kept is not None:
            self._kept[key] = (stamp, view)
        while len(self._kept) > _MAX_CACHED:
            self._kept.popitem(last=False)
        return view


def _not_text(path: str, error: UnicodeDecodeError) -> FileUnreadable:
    return FileUnreadable(
        f"{path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}",
        cure=f"convert it, for example with: iconv -f latin1 -t utf-8 {path}",
    )
