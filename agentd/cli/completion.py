"""What can be completed in a chat: commands, sessions, and files after an `@`."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Protocol

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from agentd.cli.plain import visible
from agentd.cli.slash import Suggestion

_FILE = re.compile(r"(?:^|(?<=\s))@(\S*)$")
_KEY = re.compile(r"/switch\s+(\S*)$")


class Sources(Protocol):
    """Where suggestions come from. An empty answer stands for one that cannot be had now."""

    def commands(self) -> Sequence[Suggestion]:
        """Slash commands, without the slash."""

    async def sessions(self) -> Sequence[Suggestion]:
        """Keys and titles."""

    async def paths(self, folder: str) -> Sequence[Suggestion]:
        """What lies in a folder of the workspace; folders end in a slash."""


class ChatCompleter(Completer):
    """Asks the daemon only for what stands at the cursor."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Nothing without waiting: see `get_completions_async`."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """What may follow at the cursor."""
        begun, known = await self._known(document.text_before_cursor)
        for text, what in known:
            if text.lower().startswith(begun.lower()) and text.isprintable():
                yield Completion(text, -len(begun), display_meta=visible(what))

    async def _known(self, before: str) -> tuple[str, Sequence[Suggestion]]:
        if file := _FILE.search(before):
            folder, slash, _ = file[1].rpartition("/")
            return file[1], await self._sources.paths(folder + slash)
        if key := _KEY.fullmatch(before):
            return key[1], await self._sources.sessions()
        if before.startswith("/") and not re.search(r"\s", before):
            return before[1:], self._sources.commands()
        return before, ()


def may_complete(before: str) -> bool:
    """Whether something can be completed behind this text."""
    return before.startswith("/") or bool(_FILE.search(before))
