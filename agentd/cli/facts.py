"""`agentd facts`: what the agent knows about its user."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.cli.ask import agree, answer, ask, fitted
from agentd.cli.group import Group
from agentd.cli.plain import counted, fields, visible
from agentd.cli.report import AsJson, as_line, reporting, show
from agentd.cli.texts import piped
from agentd.errors import InvalidRequest

app = Group("See and change what the agent knows about you.")

ERASING_SECONDS = 300.0  # seconds: every file that agentd wrote is gone through
_PAGE = 500
_Category = Annotated[
    str | None,
    typer.Option(help="personal, preference, project, decision, instruction or outcome."),
]


@app.command("list")
def list_(
    query: Annotated[
        str | None, typer.Argument(help="Only what this finds, the best first.")
    ] = None,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Also what no longer holds, and ids of what was forgotten."),
    ] = False,
    category: _Category = None,
    limit: Annotated[int, typer.Option(min=1, max=2000, help="How many.")] = 200,
    as_json: AsJson = False,
) -> None:
    """List the facts that hold now."""
    answer(
        "facts/list",
        _listed,
        as_json=as_json,
        query=query,
        all=all_,
        category=category,
        limit=limit,
    )


@app.command()
def add(
    text: Annotated[str, typer.Argument(help='One sentence: "my dog is called Rex".')],
    category: _Category = None,
    as_json: AsJson = False,
) -> None:
    """Have a fact remembered."""
    answer("facts/add", _added, as_json=as_json, text=text, category=category)


@app.command()
def forget(
    query: Annotated[str, typer.Argument(help="Words that the fact says, or its id.")],
    all_: Annotated[bool, typer.Option("--all", help="Every fact that says the words.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a fact wherever agentd wrote it; your own notes that say it are listed."""
    with reporting(as_json=as_json):
        if all_:
            agree("Erase every fact that says this?", yes=yes, ask=not as_json)
        result = ask("facts/forget", within=ERASING_SECONDS, query=query, all=all_)
        if not result["forgotten"] and not as_json:
            result = _chosen(result)
        show(result, lambda told: fitted(_forgotten(told)), as_json=as_json)
        if not result["forgotten"]:
            raise typer.Exit(1)


@app.command()
def history(
    fact: Annotated[str, typer.Argument(help="The fact's id, or words that only it says.")],
    as_json: AsJson = False,
) -> None:
    """Show what a fact was before, and from when to when."""
    answer("facts/history", _history, as_json=as_json, fact=fact)


@app.command()
def parked(
    accept: Annotated[bool, typer.Option("--accept", help="Yes, forget them.")] = False,
    restore: Annotated[bool, typer.Option("--restore", help="No, write them again.")] = False,
    as_json: AsJson = False,
) -> None:
    """List facts whose lines went from memory/facts.md, many at once, and say what to do."""
    answer(
        "facts/parked",
        _parked,
        as_json=as_json,
        within=ERASING_SECONDS,
        accept=accept,
        restore=restore,
    )


@app.command()
def validate(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look for duplicates, contradictions and facts that time has passed by, and put them aside."""
    answer("facts/validate", _validated, as_json=as_json, within=ERASING_SECONDS, dry_run=dry_run)


@app.command()
def export(as_json: AsJson = False) -> None:
    """Write all facts to standard output, one JSON object a line."""
    with reporting(as_json=as_json):
        for fact in _all():
            print(as_line(fact))


@app.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(help="A file as `export` writes it; `-` is standard input.")
    ],
    as_json: AsJson = False,
) -> None:
    """Take in facts that another agentd exported."""
    with reporting(as_json=as_json):
        rows = list(_read(file))
        done: dict[str, Any] = {"added": 0, "known": 0, "refused": {}}
        for at in range(0, len(rows), _PAGE):
            page = ask("facts/import", within=ERASING_SECONDS, facts=rows[at : at + _PAGE])
            done["added"] += page["added"]
            done["known"] += page["known"]
            for reason, count in page["refused"].items():
                done["refused"][reason] = done["refused"].get(reason, 0) + count
        show(done, lambda told: fitted(fields(told)), as_json=as_json)


def erased(result: dict[str, Any]) -> str:
    """What an erasure did, in words."""
    counts = ", ".join(f"{count} in {place}" for place, count in result["places"].items() if count)
    lines = [f"forgotten{f', with {counts}' if counts else ''}"]
    lines += [f"you wrote it yourself, it stays: {place}" for place in result["kept"]]
    lines += [f"a copy may still hold it: {place}" for place in result["backups"]]
    lines += [f"still being erased: {place}" for place in result["pending"]]
    return "\n".join(lines)


def _all() -> Iterator[dict[str, Any]]:
    offset = 0
    while page := ask("facts/list", all=True, limit=_PAGE, offset=offset)["facts"]:
        yield from page
        offset += len(page)


def _read(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of the lines. Raises InvalidRequest, which names a line that is none."""
    try:
        text = piped() if str(file) == "-" else file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"{file}: {error.strerror}", cure="name a readable file") from None
    except UnicodeDecodeError:
        raise InvalidRequest(f"{file}: is not UTF-8", cure="name an exported file") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise InvalidRequest(
                f"{file}:{number}: is no JSON object",
                cure="give lines as `facts export` writes them",
            )
        yield row


def _chosen(result: dict[str, Any]) -> dict[str, Any]:
    """The result after the owner has chosen one of several facts; as it was if nobody can."""
    candidates = result["candidates"]
    if not candidates or not sys.stdin.isatty():
        return result
    for number, fact in enumerate(candidates, start=1):
        typer.echo(f"{number:>3}  {visible(fact['text'])}")
    wanted: str = typer.prompt(
        "Which one? (number, or nothing to keep all)", default="", show_default=False
    )
    if not wanted.strip().isdecimal() or not 1 <= int(wanted) <= len(candidates):
        return result
    chosen: dict[str, Any] = ask(
        "facts/forget", within=ERASING_SECONDS, query=candidates[int(wanted) - 1]["id"]
    )
    return chosen


def _listed(result: dict[str, Any]) -> str:
    lines = [_line(fact) for fact in result["facts"]]
    if (left := result["total"] - len(lines)) > 0:
        lines.append(f"… and {left} more: --limit")
    return "\n".join(lines) or "nothing is known yet: `agentd facts add` or just tell it in a chat"


def _line(fact: dict[str, Any]) -> str:
    text = "(forgotten)" if fact["text"] is None else visible(fact["text"])
    told = [str(fact["category"]), str(fact["source"])]
    if fact["status"] == "superseded":
        told.append(f"until {fact['valid_to']}" if fact["valid_to"] else "no longer so")
    return f"{fact['id']}  {text}  ({', '.join(told)})"


def _added(result: dict[str, Any]) -> str:
    lines = [f"remembered: {visible(fact['text'])}" for fact in result["before"]]
    if not result["new"]:
        return "\n".join([*lines, f"known already: {visible(result['fact']['text'])}"])
    lines.append(f"remembered: {visible(result['fact']['text'])}")
    lines += [f"  replaces: {visible(fact['text'])}" for fact in result["superseded"]]
    return "\n".join(lines)


def _forgotten(result: dict[str, Any]) -> str:
    if not result["forgotten"]:
        lines = [f"{fact['id']}  {visible(fact['text'])}" for fact in result["candidates"]]
        if not lines:
            return "no fact says that; `agentd memory forget` erases any other text"
        return "\n".join(["several facts may be meant; give one's id:", *lines])
    return erased(result)


def _history(result: dict[str, Any]) -> str:
    return "\n".join(
        f"{fact['valid_from']} – {fact['valid_to'] or 'now'}  "
        f"{'(forgotten)' if fact['text'] is None else visible(fact['text'])}"
        for fact in result["facts"]
    )


def _parked(result: dict[str, Any]) -> str:
    if not result["facts"]:
        return "no line is missing"
    lines = [_line(fact) for fact in result["facts"]]
    if result["done"]:
        return "\n".join([f"{result['done']}:", *lines])
    return "\n".join(["these lines are gone from memory/facts.md; --accept or --restore:", *lines])


def _validated(result: dict[str, Any]) -> str:
    lines = [f"{pair['id']}  says the same as {pair['of']}" for pair in result["duplicates"]]
    lines += [f"{pair['id']}  is no longer so: {pair['by']}" for pair in result["conflicts"]]
    lines += [f"{fact_id}  was not said again for long" for fact_id in result["stale"]]
    lines += [f"{fact_id}  is one too many" for fact_id in result["evicted"]]
    if not lines:
        return f"nothing to do about {counted(result['checked'], 'fact')}"
    facts = counted(result["checked"], "fact")
    verb = "would be" if result["dry_run"] else "was" if len(lines) == 1 else "were"
    head = f"{len(lines)} of {facts} {verb} put aside; `history` shows what became of one:"
    return "\n".join([head, *lines])
