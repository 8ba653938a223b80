"""What happens to the graph, entered into its chain if one is kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import structlog

from agentd.domain.concept import Record
from agentd.domain.health import Problem
from agentd.errors import AgentdError, StorageError, WorkspaceError
from agentd.graph.chain import Chain, Receipt, Verdict
from agentd.graph.formats.writing import write

log = structlog.get_logger()

_RECEIPT = re.compile(r"([1-9][0-9]{0,11}) ([0-9a-f]{64})")


class Journal:
    """The chain of the graph; without one nothing is entered. That it cannot be written, or is broken,
    holds up nobody: `problems` says so.
    """

    def __init__(self, chain: Chain | None = None) -> None:
        self._chain = chain
        self._failure: AgentdError | None = None

    @property
    def is_kept(self) -> bool:
        """Whether there is a chain."""
        return self._chain is not None

    async def enter(self, kind: str, content: bytes) -> str:
        """Enter that this happens to the content; durable when it returns. Gives the receipt, which is
        to be kept beside the content and erased with it: "" where nothing could be entered.
        """
        if self._chain is None:
            return ""
        try:
            receipt = await self._chain.append(kind, content)
        except (StorageError, WorkspaceError) as error:
            self._fail(error)
            return ""
        self._failure = None
        return f"{receipt.number} {receipt.salt.hex()}"

    async def verdict(self) -> Verdict:
        """Whether the chain is as it was written. Raises StorageError, WorkspaceError."""
        if self._chain is None:
            return Verdict(0)
        found = await self._chain.verify()
        try:
            found.check()
        except StorageError as error:
            self._fail(error)
        else:
            self._failure = None
        return found

    async def look(self) -> None:
        """The same for those who only want it to be among the problems."""
        try:
            await self.verdict()
        except (StorageError, WorkspaceError) as error:
            self._fail(error)

    async def changed(self, receipts: Sequence[tuple[str, str, Record]]) -> tuple[str, ...]:
        """Of records, each with who says it and its receipt, those who say something else by now than
        was entered. Raises StorageCorrupt when the chain is not sound, WorkspaceError.
        """
        if self._chain is None:
            return ()
        read = await asyncio.to_thread(_contents, [one[1:] for one in receipts])
        proven = await self._chain.proven(read)
        found = (one[0] for one, is_so in zip(receipts, proven, strict=True) if not is_so)
        return tuple(dict.fromkeys(found))

    def problems(self) -> tuple[Problem, ...]:
        """That the chain is broken, or cannot be written."""
        if self._failure is None:
            return ()
        text = f"what happens to the graph is not entered in its chain: {self._failure.message}"
        return (Problem("graph_chain", text, self._failure.cure),)

    def _fail(self, error: AgentdError) -> None:
        self._failure = error
        log.warning("graph_chain_failed", reason=error.reason)


def _receipt(text: str) -> Receipt:
    """What `enter` gave; one that proves nothing for any other text."""
    found = _RECEIPT.fullmatch(text)
    return Receipt(int(found[1]), bytes.fromhex(found[2])) if found else Receipt(0, b"")


def _contents(many: Sequence[tuple[str, Record]]) -> list[tuple[bytes, Receipt]]:
    return [(write(record).encode(), _receipt(receipt)) for receipt, record in many]
