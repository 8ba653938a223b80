"""`initialize`, checked without the protocol's own types: a client that comes early need not wait for
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentd.errors import InvalidRequest
from agentd.server.roles import read_bind


@dataclass(frozen=True, slots=True)
class Hello:
    """What a client says about itself."""

    client_name: str
    denies: bool


def read_hello(params: dict[str, Any]) -> Hello:
    """The params of `initialize`. Raises InvalidRequest. What they say of the connection's role has been
    taken from them already.

    Some clients send a date as the protocol's version; they are taken like those of any other version,
    since the answer names the one that is spoken.
    """
    version = params.get("protocolVersion")
    if isinstance(version, bool) or not isinstance(version, int | str):
        raise InvalidRequest("protocolVersion: is missing, or neither a number nor text")
    meta = params.get("_meta")
    if not isinstance(meta, dict | None):
        raise InvalidRequest("_meta: is no object")
    read_bind(meta or {})
    info = params.get("clientInfo")
    name = info.get("name") if isinstance(info, dict) else None
    denies = (meta or {}).get("agentd/permissions") == "deny"
    return Hello(name[:100] if isinstance(name, str) else "", denies)
