"""What other agents said and is not to come in again: it was taken back, or forgotten here.

`memory/graph/taken-back.txt` has its names, under which it was sent. A name is a hash with a salt that
goes with what it names, so nobody can guess from it what that was; and what is shared once more has
another name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from agentd.domain.health import Problem
from agentd.domain.tool import FileAction
from agentd.domain.turn import Kind, SessionKey
from agentd.domain.workspace import TAKEN_BACK_PATH, Author, Reader
from agentd.errors import AgentdError, FileMissing, GraphError
from agentd.ports import Workspace

MOST = 5_000  # names; the newest stay

_HEADER = "# What other agents said and took back, or you forgot. agentd keeps this.\n"
_NAME = re.compile(r"[0-9a-f]{64}")
_READER = Reader(SessionKey("graph"), Kind.MAIN)
_AUTHOR = Author("graph")


class Withdrawn:
    """The names. Methods raise WorkspaceError."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._failure: AgentdError | None = None

    async def names(self) -> frozenset[str]:
        """All of them. Raises GraphError, with the line, for a file that holds something else."""
        try:
            found = _parse(await self._text())
        except AgentdError as error:
            self._failure = error
            raise
        self._failure = None
        return frozenset(found)

    async def note(self, names: Collection[str]) -> None:
        """Add names, durably. A file that holds something else is added to as it is: what is forgotten
        does not wait for it.
        """
        text = await self._text()
        fresh = [name for name in sorted(names) if name not in text]
        if not fresh:
            return
        try:
            kept = [*_parse(text), *fresh]
        except GraphError:
            text = f"{text.rstrip()}\n{_lines(fresh)}"
        else:
            text = _HEADER + _lines(kept[-MOST:])
        async with self._workspace.lock(TAKEN_BACK_PATH):
            intent = await self._workspace.plan(TAKEN_BACK_PATH, FileAction.WRITE, text.encode())
            await self._workspace.apply(intent, _READER, _AUTHOR)

    def problems(self) -> tuple[Problem, ...]:
        """A file that cannot be used."""
        if self._failure is None:
            return ()
        text = f"what other agents took back is not known: {self._failure.message}"
        return (Problem("graph_taken_back", text, self._failure.cure),)

    async def _text(self) -> str:
        try:
            return (await self._workspace.read(TAKEN_BACK_PATH, _READER)).text
        except FileMissing:
            return ""


def _parse(text: str) -> list[str]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if _NAME.fullmatch(line) is None:
            raise GraphError(
                f"{TAKEN_BACK_PATH} cannot be read: it names nothing that was taken back",
                cure="take the line out, or put the file back from a backup",
                line=number,
            )
        found.append(line)
    return found


def _lines(names: Iterable[str]) -> str:
    return "".join(f"{name}\n" for name in names)
