"""The web addresses that a turn may open once its prompt holds text from outside. Pure.

Whoever wrote that text may want the turn to carry something out in an address that it makes up. So an
address counts only where it stands, byte for byte and as a whole, in what the owner himself has said, or
in what was read on the web before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus

from agentd.core.message import Text, ToolResult, ToolUse, Writer
from agentd.core.outside import typed
from agentd.core.transcript import Row, RowRole, opens_turn

FETCH = "web_fetch"
SEARCH = "web_search"

_ENDS = re.compile(
    r"""[.,;:!?)\]}'*_~|`"»”’]*(?:[\s<>\["«“„`]|$)"""
)  # what may stand behind an address
_GLUE = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class KnownText:
    """A text whose addresses may be opened. `asked` is what the model itself has put into it: a search
    service may give back what it was asked for.
    """

    text: str
    asked: str = ""


def is_known(url: str, texts: Sequence[KnownText]) -> bool:
    """Whether the address stands in one of the texts, and not just a part of a longer one."""
    return any(_stands(url, one.text) and not _is_echo(url, one.asked) for one in texts)


def known_texts(rows: Sequence[Row]) -> tuple[KnownText, ...]:
    """What the owner has said in these rows, what beats and jobs of his ask, and what was read on the web."""
    calls = _web_calls(rows)
    return tuple(text for row in rows for text in _of_row(row, calls))


def _stands(url: str, text: str) -> bool:
    at = text.find(url) if url else -1
    while at >= 0:
        is_begun = at == 0 or not text[at - 1].isalnum()
        if is_begun and _ENDS.match(text, at + len(url)):
            return True
        at = text.find(url, at + 1)
    return False


def _is_echo(url: str, asked: str) -> bool:
    """Whether the address says no more than the question: then who asked has made it up."""
    told = _letters(url.partition("://")[2])
    return bool(told) and told in _letters(asked)


def _letters(text: str) -> str:
    return _GLUE.sub("", unquote_plus(text).casefold())


def _web_calls(rows: Sequence[Row]) -> dict[str, str]:
    """The calls that read the web, each with what it asked for."""
    uses = (block for row in rows for block in row.blocks if isinstance(block, ToolUse))
    return {use.id: str(use.input.get("query", "")) for use in uses if use.name in (FETCH, SEARCH)}


def _of_row(row: Row, calls: dict[str, str]) -> Iterator[KnownText]:
    if row.role is not RowRole.USER:
        return
    for block in row.blocks:
        if isinstance(block, ToolResult):
            # A refusal names the address that was refused.
            if block.tool_use_id in calls and not block.is_error:
                yield KnownText(block.text, calls[block.tool_use_id])
        elif isinstance(block, Text) and opens_turn(row) and _is_his(row):
            yield KnownText(typed(block.text, block.quoted, " "))


def _is_his(row: Row) -> bool:
    """Whether the owner wrote it, or agentd for a beat or a job of his."""
    writer = row.source.writer
    return writer is Writer.OWNER or (writer is Writer.AGENT and not row.source.tainted)
