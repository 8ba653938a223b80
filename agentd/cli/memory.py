"""`agentd memory`: read, write and search what the agent remembers."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, answer, ask
from agentd.cli.group import Group
from agentd.cli.plain import fields
from agentd.cli.report import AsJson, reporting, show

app = Group("Read, write and search what the agent remembers.")


@app.command()
def read(
    path: Annotated[str, typer.Argument(help="A file of the workspace, or sessions/KEY.jsonl.")],
    first: Annotated[int | None, typer.Option("--from", min=1, help="First line.")] = None,
    lines: Annotated[int | None, typer.Option(min=1, help="How many lines.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print a file of the workspace."""
    with reporting(as_json=as_json):
        show(_whole(path, first, lines), _text, as_json=as_json)


@app.command()
def write(
    content: Annotated[
        str,
        typer.Argument(
            help="The text; `-` reads standard input. Put `--` before a text that begins with a dash."
        ),
    ] = "",
    target: Annotated[
        str, typer.Option(help="memory, daily_log, heartbeat, bootstrap or a path.")
    ] = "daily_log",
    append: Annotated[bool, typer.Option("--append/--replace", help="Add, or overwrite.")] = True,
    old_string: Annotated[str | None, typer.Option(help="Text to be replaced.")] = None,
    new_string: Annotated[str | None, typer.Option(help="What replaces it.")] = None,
    replace_all: Annotated[bool, typer.Option(help="Replace every occurrence.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write into a file of the workspace."""
    answer(
        "memory/write",
        _text,
        as_json=as_json,
        content=sys.stdin.read() if content == "-" else content,
        target=target,
        append=append,
        old_string=old_string,
        new_string=new_string,
        replace_all=replace_all,
    )


@app.command()
def tree(
    path: Annotated[str, typer.Argument(help="A folder of the workspace.")] = "",
    depth: Annotated[int, typer.Option(min=1, help="How many levels.")] = 1,
    as_json: AsJson = False,
) -> None:
    """List a folder of the workspace."""
    answer("memory/tree", _tree, as_json=as_json, path=path, depth=depth)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for, in your own words.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many hits.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Find pieces of memory."""
    answer("memory/search", _hits, as_json=as_json, query=query, limit=limit)


@app.command()
def index(as_json: AsJson = False) -> None:
    """Bring the search index up to date, and return when nothing is pending."""
    answer("memory/index", fields, as_json=as_json, within=MODEL_SECONDS)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show the state of the search index."""
    answer("memory/status", fields, as_json=as_json)


def _whole(path: str, first: int | None, lines: int | None) -> dict[str, Any]:
    """All that was asked for, of a long file page by page."""
    options: dict[str, Any] = {"path": path, "from": first, "lines": lines}
    whole: dict[str, Any] = ask("memory/read", **options)
    while (go_on := whole.get("next")) is not None:
        left = None if lines is None else lines - whole["lines"]
        page = ask("memory/read", **{**options, "from": go_on, "lines": left})
        whole["text"] += page["text"]
        whole["lines"] += page["lines"]
        whole["next"] = page.get("next")
    return whole


def _text(result: Any) -> str:
    if isinstance(result, dict) and isinstance(result.get("text"), str):
        text: str = result["text"]
        return text.removesuffix("\n")
    return fields(result)


def _tree(result: dict[str, Any]) -> str:
    return "\n".join(
        entry["path"] if entry.get("is_dir") else f"{entry['path']}  {entry.get('size', 0)}"
        for entry in result["entries"]
    )


def _hits(result: dict[str, Any]) -> str:
    hits = [
        f"{hit['path']}:{hit['start_line']}-{hit['end_line']}  ({hit['score']:.3f})\n"
        + "\n".join(f"    {line}" for line in hit["text"].splitlines())
        for hit in result["results"]
    ]
    if result.get("reason"):
        hits.append(f"({result['reason']})")
    return "\n".join(hits)
