"""What agentd keeps, as text that may have to be erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from agentd.domain.erasure import Written


class Writings(Protocol):
    """A place whose texts can be looked through."""

    @property
    def name(self) -> str:
        """The place in an ErasureReport."""

    def texts(self) -> AsyncIterator[Sequence[Written]]:
        """All of its texts, portion by portion, those of one file or table in their order."""
