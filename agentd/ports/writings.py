"""What agentd keeps, as text that may have to be erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from agentd.domain.erasure import Written


class Wanted(Protocol):
    """Who looks through texts, of which he has to be given few. Methods may be called in threads."""

    def may_be(self, text: str, where: str) -> bool:
        """Whether it is to be given a text that is kept there, or any part of a file with this text. The text
        may stand there as JSON.
        """

    def pass_over(self, count: int) -> None:
        """So many texts, about, were there that did not have to be."""


class Writings(Protocol):
    """A place whose texts can be looked through."""

    @property
    def name(self) -> str:
        """The place in an ErasureReport."""

    def texts(self, wanted: Wanted | None = None) -> AsyncIterator[Sequence[Written]]:
        """Its texts, as far as they are wanted, else all of them; portion by portion, those of one file or
        table in their order.
        """
