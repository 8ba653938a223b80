"""Session keys as clients name them."""

from __future__ import annotations

import re
import secrets

from agentd.domain.turn import MAIN, SessionKey
from agentd.errors import InvalidRequest
from agentd.redaction import Redactor

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
