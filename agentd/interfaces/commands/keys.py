"""Session keys: as clients name them, of sessions that are there, and of those that nobody has used."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from agentd.core.errors import InvalidRequest, NotFound
from agentd.core.redaction import Redactor
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


_KEY = re.compile(r"(?:chat|group|isolated):[^/\x00-\x1f\x7f]{1,200}")

_SECRETS = Redactor()


def parse_key(text: str) -> SessionKey:
    """The key of a session that may be created. Raises InvalidRequest."""
    require_no_secret(text, "a session's key")
    if text == MAIN or (_KEY.fullmatch(text) and text.isprintable()):
        return SessionKey(text)
    raise InvalidRequest(
        f"{text[:100]!r} is no session key", cure="use main, chat:NAME, group:NAME or isolated:NAME"
    )


def require_no_secret(name: str, what: str) -> None:
    """Raises InvalidRequest for a name with a service's key in it: what things are called is kept as it
    is, and goes into lists and logs.
    """
    if _SECRETS.holds(name):
        raise InvalidRequest(f"{what} holds a key of a service", cure="name it something else")


def new_key(like: SessionKey = MAIN) -> SessionKey:
    """A key nobody has used, of the same kind of session as another; `chat:` like `main`. What it looks like
    `is_unused` knows.
    """
    prefix = "chat" if like == MAIN else like.partition(":")[0]
    return SessionKey(f"{prefix}:{secrets.token_hex(6)}")
