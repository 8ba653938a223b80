"""Decides which web addresses a turn may open once its prompt holds text from outside. Pure.

The author of such text may try to make the turn send data out inside an invented address. So an
address is allowed only if it occurs, byte for byte and as a whole, in what the owner himself said
or in what was read on the web before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote_plus

from msgspec import Struct

from agentd.core.message import Text, ToolResult, ToolUse, Writer
from agentd.core.outside import replace_spans
from agentd.core.transcript import Row, RowRole, opens_turn

FETCH = "web_fetch"
SEARCH = "web_search"

_ENDS = re.compile(r"""[.,;:!?)\]}'*_~|`"»”’]*(?:[\s<>\["«“„`]|$)""")  # what may follow an address
_GLUE = re.compile(r"[\W_]+")


class KnownText(Struct, frozen=True):
    """A text whose addresses may be opened. `asked` is the model's own query that the text answers:
    a search service may echo it.
    """

    text: str
    asked: str = ""


def is_known(url: str, texts: Sequence[KnownText]) -> bool:
    """Whether the address occurs in one of the texts, and not only as part of a longer address or
    as an echo of the query.
    """
    return any(_stands(url, one.text) and not _is_echo(url, one.asked) for one in texts)


def openable_texts(rows: Sequence[Row]) -> tuple[KnownText, ...]:
    """Return the texts in these rows whose addresses may be opened: what the owner said, what his
    beats and jobs ask, and what was read on the web.
    """
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
    """Whether the address contains nothing but words of the query: then the model may have invented
    it.
    """
    told = _letters(url.partition("://")[2])
    return bool(told) and told in _letters(asked)


def _letters(text: str) -> str:
    return _GLUE.sub("", unquote_plus(text).casefold())


def _web_calls(rows: Sequence[Row]) -> dict[str, str]:
    """Return the calls that read the web, by id, each with its query."""
    uses = (block for row in rows for block in row.blocks if isinstance(block, ToolUse))
    return {use.id: str(use.input.get("query", "")) for use in uses if use.name in (FETCH, SEARCH)}


def _of_row(row: Row, calls: dict[str, str]) -> Iterator[KnownText]:
    if row.role is not RowRole.USER:
        return
    for block in row.blocks:
        if isinstance(block, ToolResult):
            # A refusal repeats the refused address.
            if block.tool_use_id in calls and not block.is_error:
                yield KnownText(block.text, calls[block.tool_use_id])
        elif isinstance(block, Text) and opens_turn(row) and _is_his(row):
            yield KnownText(replace_spans(block.text, block.quoted, " "))


def _is_his(row: Row) -> bool:
    """Whether the owner wrote the row, or agentd for one of his beats or jobs."""
    writer = row.source.writer
    return writer is Writer.OWNER or (writer is Writer.AGENT and not row.source.tainted)
