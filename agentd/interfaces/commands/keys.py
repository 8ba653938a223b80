"""Sessions that are there, and those that nobody has used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentd.core.errors import NotFound
from agentd.core.turn import MAIN, SessionKey

if TYPE_CHECKING:
    from agentd.core.ports import Transcripts
    from agentd.core.transcript import SessionInfo

_MADE = re.compile(r"chat:[0-9a-f]{12}")  # for a client that named none


def is_unused(info: SessionInfo) -> bool:
    """Whether a client made the session without naming it, and nothing was ever said there."""
    return not info.rows and not info.turns and bool(_MADE.fullmatch(info.key))


async def existing_key(store: Transcripts, text: str) -> SessionKey:
    """The key of a session that is there. Raises NotFound."""
    key = SessionKey(text)
    if text == MAIN or await store.exists(key):
        return key
    raise absent(text)


def absent(text: str) -> NotFound:
    """The one answer for a session that is not there and for one that a client must not know of."""
    return NotFound(
        f"there is no session {text[:100]!r}", cure="`agentd sessions list` shows which there are"
    )
