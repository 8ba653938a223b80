"""`agentd sessions`: the conversations that the daemon keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, ask
from agentd.cli.group import Group
from agentd.cli.plain import fields, table
from agentd.cli.report import AsJson, as_line, reporting, show

app = Group("See, move and shorten conversations.")

Key = Annotated[str, typer.Argument(metavar="KEY", help="The session's key.")]
_PAGE = 200  # rows asked for at a time: an answer must fit into one frame


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the sessions, the last used first."""
    columns = ("key", "title", "updated_at", "rows", "turns", "context_tokens")
    with reporting(as_json=as_json):
        show(
            ask("sessions/list"),
            lambda result: table(result["sessions"], columns, "no sessions"),
            as_json=as_json,
        )


@app.command("show")
def show_(key: Key = "main", as_json: AsJson = False) -> None:
    """Show one session."""
    with reporting(as_json=as_json):
        show(ask("sessions/show", key=key), fields, as_json=as_json)


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
            print(as_line(message))


@app.command("import")
def import_(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="JSONL files or folders.", exists=True)
    ],
    as_json: AsJson = False,
) -> None:
    """Bring in transcripts; each becomes the session `chat:<file name>`."""
    with reporting(as_json=as_json):
        files = [str(path.absolute()) for path in paths]
        show(ask("sessions/import", paths=files, within=MODEL_SECONDS), fields, as_json=as_json)


@app.command()
def compact(key: Key = "main", as_json: AsJson = False) -> None:
    """Summarise the older part of a session, memories saved first."""
    with reporting(as_json=as_json):
        show(ask("sessions/compact", key=key, within=MODEL_SECONDS), fields, as_json=as_json)


@app.command()
def flush(
    key: Key = "main",
    explain: Annotated[
        bool, typer.Option(help="Only say what was decided, and from which figures.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Let the agent save what it should remember of a session."""
    with reporting(as_json=as_json):
        result = ask("sessions/flush", key=key, explain=explain, within=MODEL_SECONDS)
        show(result, fields, as_json=as_json)


def _messages(key: str) -> Iterator[dict[str, Any]]:
    """The transcript, page by page: `next` names the first row of the page that follows."""
    first: int | None = 1
    while first is not None:
        page = ask("sessions/export", key=key, first=first, limit=_PAGE)
        yield from page["messages"]
        first = page.get("next")
