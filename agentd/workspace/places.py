"""Where a path leads, for whom.

`daily/X` and the like are other spellings of `X` in the folder of daily notes. Which of these folders
holds the file is looked up only for those who may see it, and never shows in a spelling or an error:
otherwise the spelling would tell others that a hidden file is there.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentd.domain.turn import Kind
from agentd.domain.workspace import Reader
from agentd.errors import PathRefused, WorkspaceError
from agentd.workspace.folder import Folder
from agentd.workspace.names import Name, parse, parse_file
from agentd.workspace.reading import Place
from agentd.workspace.settings import WorkspaceSettings
from agentd.workspace.sight import IN_EVERY_PROMPT, Sight

_ROOT = Name("", ())


class Places:
    """Paths of a workspace and of the scopes beside it; the scope "" is the workspace itself."""

    def __init__(
        self, folders: Mapping[str, Folder], settings: WorkspaceSettings, sight: Sight
    ) -> None:
        self._folders = folders
        self._sight = sight
        self._daily = tuple(settings.daily_dir.split("/"))
        aliases = (tuple(alias.split("/")) for alias in settings.daily_aliases)
        self._aliases = tuple(alias for alias in aliases if alias != self._daily)

    def spelled(self, path: str) -> Name:
        """The canonical name of a file. No I/O. Raises PathRefused."""
        name = parse_file(path)
        for alias in self._aliases:
            if len(name.parts) > len(alias) and name.parts[: len(alias)] == alias:
                return Name(name.scope, (*self._daily, *name.parts[len(alias) :]))
        return name

    def standing(self, path: str) -> Name:
        """The name under which the file is there: as it is asked for, even where another of that name
        is in the folder of daily notes; else the canonical one, or one below an alias. In a scope that
        there is not, nothing stands: the canonical one. Blocks. Raises PathRefused.
        """
        asked, name = parse_file(path), self.spelled(path)
        folder, depth = self._folders.get(name.scope), len(self._daily)
        if folder is None:
            return name
        if asked != name and _stands(folder, asked.parts):
            return asked
        if name.parts[:depth] != self._daily or _stands(folder, name.parts):
            return name
        others = (Name(name.scope, (*alias, *name.parts[depth:])) for alias in self._aliases)
        return next((other for other in others if _stands(folder, other.parts)), name)

    def file(self, path: str, reader: Reader) -> Place:
        """Where the reader finds the file. Blocks. Raises PathRefused."""
        asked, name = parse_file(path), self.spelled(path)
        if name.scope not in self._folders or not self._sight.sees(name, reader.kind):
            return Place.hidden(str(asked), name, self._folders[""])
        found = self.standing(path)
        is_named, alone = self._sight.sees(found, Kind.GROUP), reader.kind is not Kind.MAIN
        return Place(str(asked), found, self._folders[name.scope], found.parts, is_named, alone)

    def in_prompt(self, path: str, reader: Reader) -> Place:
        """Where the reader's prompts find a file: also the few that are in all of them. Blocks. Raises
        PathRefused.
        """
        if path not in IN_EVERY_PROMPT:
            return self.file(path, reader)
        alone = reader.kind is not Kind.MAIN
        return Place(path, Name("", (path,)), self._folders[""], (path,), alone=alone)

    def directory(self, path: str, reader: Reader) -> Place:
        """Where the reader finds a directory; "" is the workspace itself. Others find, beside what is
        shared, the way to it. Blocks. Raises PathRefused.
        """
        name = parse(path)
        is_seen = self._sight.sees_folder(name, reader.kind) or (
            reader.kind is not Kind.MAIN and bool(self._sight.shared_below(name))
        )
        if name.scope not in self._folders or not (is_seen or name == _ROOT):
            return Place.hidden(str(name), name, self._folders[""])
        folder = self._folders[name.scope]
        if name.parts in self._aliases and not _stands(folder, name.parts):
            return Place(str(name), Name(name.scope, self._daily), folder, self._daily)
        return Place(str(name), name, folder, name.parts)

    def standing_own(self, path: str) -> Name:
        """The same of a file that may be written. Blocks. Raises PathRefused."""
        self.changeable(path)
        return self.standing(path)

    def changeable(self, path: str) -> Name:
        """The canonical name of a file that may be written. Raises PathRefused."""
        name = self.spelled(path)
        if name.scope:
            raise PathRefused(
                f"{name} belongs to another workspace, which is only read",
                cure="write to a file of the own workspace",
            )
        return name

    def require_changeable(self, path: str, reader: Reader) -> None:
        """Raises PathRefused unless the reader may write there, whether a file is there or not."""
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
