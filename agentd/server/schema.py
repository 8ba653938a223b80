"""The protocol's types, loaded beside the running daemon so that the socket answers early."""

from __future__ import annotations

import asyncio

from agentd.server.requests import Parser


class LateParser:
    """A Parser that is there once `load` has run."""

    def __init__(self) -> None:
        self._parser: Parser | None = None
        self._loaded = asyncio.Event()

    async def load(self) -> None:
        """Import the types in a thread."""
        self._parser = await asyncio.to_thread(_import_parser)
        self._loaded.set()

    async def ready(self) -> Parser:
        """The parser, as soon as it is loaded."""
        await self._loaded.wait()
        assert self._parser is not None
        return self._parser


def _import_parser() -> Parser:
    from agentd.server.acp_schema import AcpParser

    return AcpParser()
