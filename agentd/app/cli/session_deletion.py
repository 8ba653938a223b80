"""`agentd sessions delete`: erases a session, and what this user typed in it."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Annotated, Any

import typer

from agentd.app.cli.ask import agree, ask
from agentd.app.cli.declared import tell
from agentd.app.cli.report import reporting
from agentd.core.errors import StorageError
from agentd.core.paths import chat_history
from agentd.core.turn import SessionKey
from agentd.interfaces.commands.sessions import SESSIONS
from agentd.storage.chat_history import TypedHistory


def delete(
    given: dict[str, Any],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: bool,
) -> None:
    """Delete a session after a yes. The process ends with the exit code of a failure."""
    key = given["key"]
    with reporting(as_json=as_json):
        if not yes:
            ask("sessions/show", key=key)  # fails for a missing session before the user is asked
        agree(f"Erase session {key} for good?", yes=yes, ask=not as_json)
    tell(SESSIONS["delete"], given, as_json=as_json)
    # The daemon has erased the chat history in its own state folder; that of a system service
    # cannot reach the user's.
    with suppress(StorageError):
        asyncio.run(TypedHistory(chat_history(os.environ)).erase(SessionKey(key)))
