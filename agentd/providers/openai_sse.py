"""Server-sent events out of bytes, as the HTML standard reads them.

Lines end at LF, CR or both and at nothing else: what else Unicode calls a line end is part of the
data. What stands behind the last blank line is no event.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterator

from agentd.providers.faults import failure

_BLANK = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_LONGEST = 4 * 1024 * 1024  # bytes of one event
_MARK = b"\xef\xbb\xbf"


async def data_of(pieces: AsyncIterable[bytes]) -> AsyncGenerator[str, None]:
    """The data of each event; comments and other fields are left out.

    Raises UnicodeDecodeError, and ProviderError for an event without an end.
    """
    left, is_first = b"", True
    async for piece in pieces:
        left += piece
        if is_first and len(left) >= len(_MARK):
            left, is_first = left.removeprefix(_MARK), False
        *events, left = _BLANK.split(left)
        if len(left) > _LONGEST:
            raise failure("bad_stream", "an event without an end")
        for event in events:
            data = list(_data(event))
            if data:
                yield "\n".join(data)


def _data(event: bytes) -> Iterator[str]:
    for line in _LINE_END.split(event):
        name, _, value = line.partition(b":")
        if name == b"data":
            yield value.removeprefix(b" ").decode()
