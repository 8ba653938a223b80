"""Where text comes from: who wrote it, and whether text from outside has a part in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

_TAINT = "tainted"


class Writer(StrEnum):
    """Who wrote a text."""

    OWNER = "owner"
    AGENT = "agent"  # the model, a tool, or agentd itself
    OTHER = "other"  # somebody who reads along, or a stranger


@dataclass(frozen=True, slots=True)
class TextSource:
    """Who wrote a text. It is tainted when it holds text from outside (a tool's output, an attachment,
    words of others), or was made from such text.
    """

    writer: Writer
    tainted: bool = False

    @property
    def is_owners_own(self) -> bool:
        """Whether the owner said it himself, so that it can prove what is known about him. What came
        with his words, and taints them, is quotation.
        """
        return self.writer is Writer.OWNER

    def __str__(self) -> str:
        """As it is stored, for example `owner` or `agent tainted`."""
        return f"{self.writer} {_TAINT}" if self.tainted else str(self.writer)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The source that `str` wrote. Raises ValueError for anything else."""
        writer, space, taint = text.partition(" ")
        if space and taint != _TAINT:
            msg = f"not a source of text: {text!r}"
            raise ValueError(msg)
        return cls(Writer(writer), bool(space))


BY_OWNER = TextSource(Writer.OWNER)
BY_AGENT = TextSource(Writer.AGENT)
BY_OTHERS = TextSource(Writer.OTHER, tainted=True)
