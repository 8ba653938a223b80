"""Completion in a chat: commands, sessions, notes and resources after `@`, and image files."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from agentd.app.chat.slash import Suggestion
from agentd.interfaces.commands.plain import visible

_FILE = re.compile(r"(?:^|(?<=\s))@(\S*)$")
_RESOURCE = re.compile(r"([a-z0-9][a-z0-9-]{0,23}):")
_KEY = re.compile(r"/switch\s+(\S*)$")
_IMAGE = re.compile(r"/image\s+((?:\\ |[^\s\"'])*)$")
_MOST = 200  # files of one folder


class SuggestionSources(Protocol):
    """Port: the sources of suggestions. A source that is not available returns none."""

    def commands(self) -> Sequence[Suggestion]:
        """Return the slash commands, without the slash."""

    async def sessions(self) -> Sequence[Suggestion]:
        """Return the sessions' keys and titles."""

    async def paths(self, folder: str) -> Sequence[Suggestion]:
        """Return the entries of a folder of the workspace; folders end in a slash."""

    async def resources(self, server: str) -> Sequence[Suggestion]:
        """Return the resources of an MCP server as NAME:URI; for "" the servers as NAME:."""


class ChatCompleter(Completer):
    """Completes the text at the cursor; the daemon is asked only for what that text needs."""

    def __init__(self, sources: SuggestionSources) -> None:
        self._sources = sources

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Return nothing: completions need waiting, see `get_completions_async`."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the completions at the cursor."""
        begun, known = await self._suggest(document.text_before_cursor)
        for text, what in known:
            if text.lower().startswith(begun.lower()) and text.isprintable():
                yield Completion(text, -len(begun), display_meta=visible(what))

    async def _suggest(self, before: str) -> tuple[str, Sequence[Suggestion]]:
        if file := _FILE.search(before):
            if of_server := _RESOURCE.match(file[1]):
                return file[1], await self._sources.resources(of_server[1])
            folder, slash, _ = file[1].rpartition("/")
            if not slash:
                servers = await self._sources.resources("")
                return file[1], [*servers, *await self._sources.paths("")]
            return file[1], await self._sources.paths(folder + slash)
        if image := _IMAGE.fullmatch(before):
            return image[1], await asyncio.to_thread(_own_files, image[1])
        if key := _KEY.fullmatch(before):
            return key[1], await self._sources.sessions()
        if before.startswith("/") and not re.search(r"\s", before):
            return before[1:], self._sources.commands()
        return before, ()


def may_complete(before: str) -> bool:
    """Return whether the text before the cursor can be completed."""
    return before.startswith("/") or bool(_FILE.search(before))


def _own_files(begun: str) -> Sequence[Suggestion]:
    """Return the completions of a path on this machine, as `/image` takes it; none for an
    unreadable folder. Hidden files are included if the name begins with a dot.
    """
    folder, slash, name = begun.rpartition("/")
    name = name.replace("\\ ", " ").lower()
    try:
        place = Path((folder + slash).replace("\\ ", " ") or ".").expanduser()
        with os.scandir(place) as found:
            entries = sorted((entry.name, entry.is_dir()) for entry in found)
    except (OSError, ValueError, RuntimeError):  # RuntimeError: `~` has no home folder
        return ()
    meant = [
        (entry.replace(" ", "\\ "), is_folder)
        for entry, is_folder in entries
        if entry.lower().startswith(name) and (name or not entry.startswith("."))
    ]
    return [
        (f"{folder}{slash}{entry}/", "folder") if is_folder else (f"{folder}{slash}{entry}", "")
        for entry, is_folder in meant[:_MOST]
    ]
