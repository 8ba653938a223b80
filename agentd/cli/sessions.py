"""`agentd sessions`, where it takes more than one question: pages, files, a yes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, agree, ask, fitted, sockets
from agentd.cli.declared import grouped, tell
from agentd.cli.report import as_line, note, reporting, say, show
from agentd.commands.plain import table
from agentd.commands.sessions import SESSIONS
from agentd.errors import StorageError
from agentd.paths import chat_history


def _show(
    given: dict[str, Any],
    *,
    last: Annotated[int, typer.Option(min=0, help="How many of its newest rows.")] = 20,
    as_json: bool,
) -> None:
    from agentd.cli.told import conversation

    with reporting(as_json=as_json):
        session = ask("sessions/show", in_words=not as_json, **given)
        show(session, lambda told: fitted(SESSIONS["show"].show(told)), as_json=as_json)
        if last and not as_json and session["rows"]:
            first = max(1, session["rows"] - last + 1)
            messages = _messages(given["key"], first, in_words=True)
            say(f"\n{fitted(conversation(list(messages)))}")


def _export(given: dict[str, Any], *, as_json: bool) -> None:
    with reporting(as_json=as_json):
        for message in _messages(given["key"]):
            say(as_line(message))


def _import(
    _: dict[str, Any],
    *,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="JSONL files or folders.", exists=True)
    ],
    as_: Annotated[
        str | None, typer.Option("--as", metavar="KEY", help="The session that one file becomes.")
    ] = None,
    as_json: bool,
) -> None:
    import asyncio

    from agentd.cli.transcripts import bring_in

    with reporting(as_json=as_json):
        made = asyncio.run(bring_in(sockets(), paths, MODEL_SECONDS, as_))
        show(
            {"sessions": made},
            lambda result: table(result["sessions"], ("key", "rows"), "no transcripts found"),
            as_json=as_json,
        )
        for fault in (fault for session in made for fault in session.get("left_out", ())):
            note(f"left out: {fault}")


def _delete(
    given: dict[str, Any],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: bool,
) -> None:
    key = given["key"]
    with reporting(as_json=as_json):
        if not yes:
            ask("sessions/show", key=key)  # nobody is asked about one that is not there
        agree(f"Erase session {key} for good?", yes=yes, ask=not as_json)
    tell(SESSIONS["delete"], given, as_json=as_json)
    _forget_typed(key)


app = grouped(SESSIONS, {"show": _show, "export": _export, "import": _import, "delete": _delete})


def _forget_typed(key: str) -> None:
    """The daemon has erased what was typed beside its own state; a service may not see this place."""
    import asyncio

    from agentd.domain.turn import SessionKey
    from agentd.storage.typed import TypedWords

    with suppress(StorageError):
        asyncio.run(TypedWords(chat_history(os.environ)).erase(SessionKey(key)))


def _messages(
    key: str, first: int | None = 1, *, in_words: bool = False
) -> Iterator[dict[str, Any]]:
    """The transcript, page by page: `next` names the first row of the page that follows."""
    while first is not None:
        page = ask("sessions/export", key=key, first=first, in_words=in_words)
        yield from page["lines"]
        first = page.get("next")
