"""What the settings of an outside service share, whether it answers or turns texts into vectors."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agentd.core.settings import Reaches, Shown, address_alone

OPENAI_URL = "https://api.openai.com/v1"

ServiceAddress = Annotated[  # "" means the official one
    str,
    Field(pattern=r"^(https?://.*)?$"),
    Shown(address_alone),
    Reaches("is sent conversations, notes and the key"),
]
KeyVariable = Annotated[str, Reaches("names the variable that the service is sent as its key")]
CredentialName = Annotated[  # "" means the usual one
    str,
    Field(pattern=r"^[A-Za-z0-9._-]*$"),
    Reaches("names the credential that the service is sent as its key"),
]
KeyFile = Annotated[
    str,
    Field(description="file that holds the key; only its owner may read it (mode 0600)"),
    Reaches("is read, and sent to the service as its key"),
]


def openai_needs_key(base_url: str) -> bool:
    """Whether there is no use in asking that address without a key; other servers than the official
    one may need none.
    """
    return base_url.rstrip("/") in ("", OPENAI_URL)
