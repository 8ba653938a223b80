"""`agentd sessions`: the conversations that the daemon keeps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, agree, answer, ask, fitted, sockets
from agentd.cli.group import Group
from agentd.cli.report import AsJson, as_line, note, reporting, say, show
from agentd.commands.plain import fields, table
from agentd.errors import StorageError
from agentd.paths import chat_history

app = Group("See, move and shorten conversations.")

_UNSAVED = {  # by the reason of a report in which nothing was flushed
    "flush": "nothing could be saved; `agentd logs` says why",
    "below_threshold": "all that was said is saved already",
}

Key = Annotated[str, typer.Argument(metavar="KEY", help="The session's key.")]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the sessions, the last used first."""
    columns = ("key", "updated_at", "rows", "turns", "context_tokens", "title")
    answer(
        "sessions/list",
        lambda result: table(result["sessions"], columns, "no sessions"),
        as_json=as_json,
    )


@app.command("show")
def show_(
    key: Key = "main",
    last: Annotated[int, typer.Option(min=0, help="How many of its newest rows.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show one session: what it cost, how its context stands, and what was said last."""
    from agentd.cli.told import conversation

    with reporting(as_json=as_json):
        session = ask("sessions/show", key=key, in_words=not as_json)
        show(session, lambda told: fitted(fields(told)), as_json=as_json)
        if last and not as_json and session["rows"]:
            first = max(1, session["rows"] - last + 1)
            say(f"\n{fitted(conversation(list(_messages(key, first, in_words=True))))}")


@app.command()
def export(
    key: Key = "main",
    as_json: Annotated[
        bool, typer.Option("--json", help="The export is JSON lines anyway.")
    ] = False,
) -> None:
    """Print a session's transcript, one JSON object a line."""
    with reporting(as_json=as_json):
        for message in _messages(key):
            say(as_line(message))


@app.command("import")
def import_(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="JSONL files or folders.", exists=True)
    ],
    as_: Annotated[
        str | None, typer.Option("--as", metavar="KEY", help="The session that one file becomes.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring in transcripts, ours, OpenClaw's or RustyClaw's; each becomes the session that its file is
    named for, as `agentd export` names them, or else `chat:<file name>`.
    """
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


@app.command()
def compact(
    key: Key = "main",
    instructions: Annotated[
        str, typer.Option(metavar="TEXT", help="What the summary should keep.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Summarise the older part of a session, memories saved first."""
    given = {"key": key, "instructions": instructions}
    answer("sessions/compact", fields, as_json=as_json, within=MODEL_SECONDS, **given)


@app.command()
def flush(
    key: Key = "main",
    explain: Annotated[
        bool, typer.Option(help="Only say what was decided, and from which figures.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Let the agent save what it should remember of a session."""
    answer(
        "sessions/flush", _flushed, as_json=as_json, key=key, explain=explain, within=MODEL_SECONDS
    )


@app.command()
def reset(key: Key, as_json: AsJson = False) -> None:
    """Save what should be remembered, then begin the session anew under its key."""
    answer("sessions/reset", fields, as_json=as_json, key=key, within=MODEL_SECONDS)


@app.command()
def delete(
    key: Key,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a session for good; `main` is emptied. Notes made from it stay."""
    with reporting(as_json=as_json):
        if not yes:
            ask("sessions/show", key=key)  # nobody is asked about one that is not there
        agree(f"Erase session {key} for good?", yes=yes, ask=not as_json)
    answer("sessions/delete", _deleted, as_json=as_json, key=key, within=MODEL_SECONDS)
    _forget_typed(key)


def _forget_typed(key: str) -> None:
    """The daemon has erased what was typed beside its own state; a service may not see this place."""
    import asyncio

    from agentd.domain.turn import SessionKey
    from agentd.storage.typed import TypedWords

    with suppress(StorageError):
        asyncio.run(TypedWords(chat_history(os.environ)).erase(SessionKey(key)))


def _flushed(result: dict[str, Any]) -> str:
    """The figures; `reason` is only what asked for the flush, so that it does not say why it failed."""
    told = fields(result)
    if result.get("flushed") is False:
        told += f"\n{_UNSAVED.get(str(result.get('reason')), '')}".rstrip()
    return told


def _deleted(result: dict[str, Any]) -> str:
    done = "is empty now" if result["kept"] else "is erased"
    return f"{result['key']} {done}; notes made from it stay in your workspace, and old backups hold it"


def _messages(
    key: str, first: int | None = 1, *, in_words: bool = False
) -> Iterator[dict[str, Any]]:
    """The transcript, page by page: `next` names the first row of the page that follows."""
    while first is not None:
        page = ask("sessions/export", key=key, first=first, in_words=in_words)
        yield from page["lines"]
        first = page.get("next")
