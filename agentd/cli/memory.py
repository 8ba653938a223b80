"""`agentd memory`: read, write and search what the agent remembers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from agentd.cli.ask import agree, answer, ask, fitted
from agentd.cli.declared import add_all
from agentd.cli.group import Group
from agentd.cli.report import AsJson, note, reporting, show
from agentd.cli.texts import piped
from agentd.commands.plain import fields, visible
from agentd.commands.proposals import PROPOSALS
from agentd.errors import InvalidRequest

_A_DAY = 86_400.0  # seconds: a large archive and a model that thinks about each line

app = Group("Read, write and search what the agent remembers.")

_FUSIONS = ("structured", "weighted", "rrf")
_SOURCES = ("notes", "sessions")
_MOST_ALSO = 5


@app.command()
def read(
    path: Annotated[str, typer.Argument(help="A file of the workspace, or sessions/KEY.jsonl.")],
    first: Annotated[int | None, typer.Option("--from", min=1, help="First line.")] = None,
    lines: Annotated[int | None, typer.Option(min=1, help="How many lines.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print a file of the workspace."""
    with reporting(as_json=as_json):
        whole = _whole(path, first, lines)
        show(whole, _text, as_json=as_json)
        if first and whole.get("lines") == 0 and not as_json:
            note(f"{path} has no line {first}")


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
    with reporting(as_json=as_json):
        text = piped() if content == "-" else content
    answer(
        "memory/write",
        _written,
        as_json=as_json,
        content=text,
        target=target,
        append=append,
        old_string=old_string,
        new_string=new_string,
        replace_all=replace_all,
    )


@app.command()
def history(
    path: Annotated[str, typer.Argument(help="A file of the workspace.")],
    show: Annotated[int | None, typer.Option(min=1, help="Print this version.")] = None,
    diff: Annotated[
        int | None, typer.Option(min=1, help="Print what this version changed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what a file was, and who changed it."""
    answer("memory/history", _versions, as_json=as_json, path=path, show=show, diff=diff)


@app.command()
def restore(
    path: Annotated[str, typer.Argument(help="A file of the workspace.")],
    version: Annotated[int, typer.Option(min=1, help="Which version, as `history` counts.")],
    digest: Annotated[
        str | None, typer.Option(help="Only if the file still has this SHA-256.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a file what it was in a version; what it is now is kept."""
    answer("memory/restore", _text, as_json=as_json, path=path, version=version, digest=digest)


@app.command()
def tree(
    path: Annotated[str, typer.Argument(help="A folder of the workspace.")] = "",
    depth: Annotated[int, typer.Option(min=1, max=20, help="How many levels.")] = 1,
    as_json: AsJson = False,
) -> None:
    """List a folder of the workspace."""
    answer("memory/tree", _tree, as_json=as_json, path=path, depth=depth)


@app.command()
def search(
    query: Annotated[
        str,
        typer.Argument(
            help="What to look for, in your own words; `-` reads standard input. Put `--` before a "
            "query that begins with a dash."
        ),
    ],
    also: Annotated[
        list[str] | None,
        typer.Option(help="The same in other words or another language; up to five times."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many hits.")] = 5,
    sources: Annotated[
        str | None, typer.Option(help="notes, sessions or both, with a comma between them.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Of all hits together.")
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out hits that score less.")
    ] = None,
    half_life_days: Annotated[
        float | None, typer.Option(min=0.01, max=100_000, help="How quickly hits age.")
    ] = None,
    no_recency: Annotated[bool, typer.Option("--no-recency", help="Let no hit age.")] = False,
    fusion: Annotated[
        str | None, typer.Option(help="structured, weighted or rrf: how words and meaning add up.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print every partial score, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find pieces of memory."""
    from agentd.cli.hits import Look, degraded, shown

    with reporting(as_json=as_json):
        wanted, *others = _wordings(query, also or ())
        result = ask(
            "memory/search",
            query=wanted,
            queries=others,
            limit=limit,
            sources=_one_of("sources", sources.split(","), _SOURCES) if sources else None,
            max_tokens=max_tokens,
            min_score=min_score,
            half_life_days=half_life_days,
            recency=False if no_recency else None,
            fusion=_one_of("fusion", [fusion], _FUSIONS)[0] if fusion else None,
        )
        if not as_json and (lacking := degraded(result)):
            note(lacking)
        phrased = "\n".join((wanted, *others))
        show(result, lambda r: shown(r, phrased, Look.here(), explain=explain), as_json=as_json)


@app.command()
def index(
    export_onnx: Annotated[
        bool,
        typer.Option(
            "--export-onnx",
            help="Instead, make a quicker form of the model behind the vectors; used after a restart.",
        ),
    ] = False,
    words: Annotated[
        bool,
        typer.Option(
            "--words", help="Return as soon as words find everything, before meanings do."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Build the search index anew from notes and conversations, and return when it is done."""
    from agentd.cli import progress

    options = {"export_onnx": export_onnx, "words": words}
    options = {name: True for name, is_wanted in options.items() if is_wanted}
    with reporting(as_json=as_json):
        with progress.shown():
            result = ask("memory/index", within=_A_DAY, **options)
        show(result, lambda told: fitted(fields(told)), as_json=as_json)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show the state of the search index."""
    answer("memory/status", fields, as_json=as_json)


@app.command()
def forget(
    text: Annotated[str, typer.Argument(help="Words; every sentence that has them is erased.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a text wherever agentd keeps it."""
    from agentd.commands.fact_words import erased
    from agentd.commands.facts import ERASING_SECONDS

    with reporting(as_json=as_json):
        agree(
            f"Erase every sentence that says {visible(text)!r}, for good?", yes=yes, ask=not as_json
        )
        result = ask("memory/forget", within=ERASING_SECONDS, text=text)
        show(result, lambda told: fitted(erased(told)), as_json=as_json)


def _proposed(given: dict[str, Any], *, as_json: bool) -> None:
    with reporting(as_json=as_json):
        result = ask("memory/proposals", **given)
        show(result, PROPOSALS["proposals"].show, as_json=as_json)
        if result["done"] in {"changed", "too_long"}:
            raise typer.Exit(1)


add_all(app, PROPOSALS, {"proposals": _proposed})


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


def _written(result: dict[str, Any]) -> str:
    for found in result.get("warnings") or []:
        place = f"{result['path']}:{found['line']}:{found['column']}"
        note(f"warning: {place} {found['reason']} ({found['severity']}); prompts carry it")
    return _text(result)


def _versions(result: dict[str, Any]) -> str:
    if "text" in result:
        return _text(result)
    lines = [
        f"{v['version']:>4}  {v['at']}  {v['size']:>8}  {_author(v)}"
        f"{'' if v['digest'] else '  deleted'}{'  now' if v['current'] else ''}"
        for v in result["versions"]
    ]
    if result.get("changed_by_hand") and result.get("digest"):
        lines.insert(0, "      changed by hand since")
    return "\n".join(lines) or f"agentd has not changed {result['path']} yet"


def _author(version: dict[str, Any]) -> str:
    return f"{version['by']} in {version['session']}" if version["session"] else version["by"]


def _tree(result: dict[str, Any]) -> str:
    return "\n".join(
        entry["path"] if entry.get("is_dir") else f"{entry['path']}  {entry.get('size', 0)}"
        for entry in result["entries"]
    )


def _wordings(query: str, also: Sequence[str]) -> list[str]:
    """Every way in which it is asked; bytes that are no text are no words. Raises InvalidRequest."""
    if len(also) > _MOST_ALSO:
        raise InvalidRequest(
            f"--also: stands {len(also)} times",
            cure=f"give it up to {_MOST_ALSO} times, the best wordings",
        )
    text = sys.stdin.buffer.read().decode(errors="replace") if query == "-" else query
    return [one.encode(errors="replace").decode() for one in (text, *also)]


def _one_of(name: str, given: list[str], known: tuple[str, ...]) -> list[str]:
    """What was given, without spaces. Raises InvalidRequest for what is not known."""
    words = [word.strip() for word in given]
    for word in words:
        if word not in known:
            raise InvalidRequest(
                f"--{name}: there is no {word!r}", cure=f"choose from {', '.join(known)}"
            )
    return words
