"""`agentd facts`: what the agent knows about its user."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.cli import exchange, fact_words, graph, states, zero
from agentd.cli.ask import MODEL_SECONDS, agree, answer, ask, fitted
from agentd.cli.group import Group
from agentd.cli.report import AsJson, as_line, reporting, say, show
from agentd.cli.texts import piped
from agentd.commands.plain import fields, visible
from agentd.errors import InvalidRequest

app = Group("See and change what the agent knows about you.")

ERASING_SECONDS = 300.0  # seconds: every file that agentd wrote is gone through
_PAGE = 500
_CATEGORIES = "personal, preference, project, decision, instruction or outcome"


def _known_category(given: str | None) -> str | None:
    """Raises BadParameter for a word that no fact has."""
    from agentd.domain.fact import Category

    if given is not None and given not in set(Category):
        raise typer.BadParameter(f"{given[:100]!r} is none of {_CATEGORIES}")
    return given


_Category = Annotated[str | None, typer.Option(help=f"{_CATEGORIES}.", callback=_known_category)]


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
        fact_words.listed,
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
    answer(
        "facts/add",
        fact_words.added,
        as_json=as_json,
        within=MODEL_SECONDS,
        text=text,
        category=category,
    )


@app.command()
def forget(
    query: Annotated[str, typer.Argument(help="Words that the fact says, or its id.")],
    more: Annotated[
        list[int] | None, typer.Argument(min=1, metavar="[N]", help="More numbers for --also.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every fact that says the words.")] = False,
    also: Annotated[
        list[int] | None,
        typer.Option(
            min=1, metavar="N...", help="Lines that mention the same, by the numbers of --dry-run."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be erased, and what stays.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a fact and what says it wherever agentd keeps it; other lines that mention it are listed."""
    with reporting(as_json=as_json):
        if more and not also:
            raise InvalidRequest(
                "the words to forget are one argument", cure="put them in quotation marks"
            )
        wanted = {"query": query, "all": all_, "also": [*(also or ()), *(more or ())] or None}
        if not (dry_run or yes):
            wanted = _agreed(wanted, ask_him=sys.stdin.isatty() and not as_json)
        result = _forget(dry_run=dry_run, **wanted)
        texts = _texts(result["forgotten"]) if dry_run and not as_json else {}
        show(result, lambda told: fitted(fact_words.forgotten(told, texts)), as_json=as_json)
        if not result["forgotten"]:
            raise typer.Exit(1)


@app.command()
def history(
    fact: Annotated[str, typer.Argument(help="The fact's id, or words that only it says.")],
    as_json: AsJson = False,
) -> None:
    """Show what a fact was before, and from when to when."""
    answer("facts/history", fact_words.history, as_json=as_json, fact=fact)


@app.command()
def parked(
    accept: Annotated[bool, typer.Option("--accept", help="Yes, forget them.")] = False,
    restore: Annotated[bool, typer.Option("--restore", help="No, write them again.")] = False,
    as_json: AsJson = False,
) -> None:
    """List facts whose lines went from memory/facts.md, many at once, and say what to do."""
    answer(
        "facts/parked",
        fact_words.parked,
        as_json=as_json,
        within=ERASING_SECONDS,
        accept=accept,
        restore=restore,
    )


@app.command()
def changes(
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List what changed in the facts, the newest first."""
    with reporting(as_json=as_json):
        result = ask("facts/changes", in_words=not as_json, limit=limit)
        ids = [i for one in result["changes"] for i in (one["new"], *one["old"]) if i]
        texts = {} if as_json else _texts(ids)
        show(result, lambda told: fitted(fact_words.changes(told, texts)), as_json=as_json)


@app.command()
def undo(
    change: Annotated[
        int | None,
        typer.Argument(min=1, help="Its number in `changes`; without, the newest that can be."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take a change back: what it brought goes, and what it put aside holds again."""
    answer("facts/undo", fact_words.taken_back, as_json=as_json, id=change)


@app.command()
def merge(
    keep: Annotated[str, typer.Argument(help="The id of the fact that stays.")],
    others: Annotated[list[str], typer.Argument(help="The ids of those that say the same.")],
    as_json: AsJson = False,
) -> None:
    """Let one fact stand for others that say the same."""
    answer("facts/merge", fact_words.merged, as_json=as_json, keep=keep, others=others)


@app.command()
def pending(as_json: AsJson = False) -> None:
    """List facts that no words of yours prove and that wait for your yes."""
    answer("facts/pending", fact_words.pending, as_json=as_json)


@app.command()
def accept(
    ids: Annotated[list[str], typer.Argument(help="Ids that `pending` lists.")],
    as_json: AsJson = False,
) -> None:
    """Say yes to facts that wait for it."""
    answer("facts/accept", fact_words.accepted, as_json=as_json, ids=ids)


@app.command()
def reject(
    ids: Annotated[list[str], typer.Argument(help="Ids that `pending` lists.")],
    as_json: AsJson = False,
) -> None:
    """Say no to facts that wait for a yes: they are dropped."""
    answer("facts/reject", fact_words.rejected, as_json=as_json, ids=ids)


@app.command()
def validate(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look for what is said twice, no longer so, or stale, as it is done once a day, and put it aside."""
    answer(
        "facts/validate",
        fact_words.validated,
        as_json=as_json,
        within=MODEL_SECONDS,
        dry_run=dry_run,
    )


@app.command()
def export(as_json: AsJson = False) -> None:
    """Write all facts to standard output, one JSON object a line."""
    with reporting(as_json=as_json):
        for fact in _all():
            say(as_line(fact))


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


def _forget(**wanted: Any) -> dict[str, Any]:
    result: dict[str, Any] = ask("facts/forget", within=ERASING_SECONDS, **wanted)
    return result


def _texts(ids: Sequence[str]) -> dict[str, str]:
    """The sentences of facts, whether they hold or not; without those that are gone or forgotten."""
    found: dict[str, str] = {}
    wanted = list(dict.fromkeys(ids))
    for at in range(0, len(wanted), _PAGE):
        facts = ask("facts/list", ids=wanted[at : at + _PAGE], limit=_PAGE)["facts"]
        found |= {fact["id"]: fact["text"] for fact in facts if fact["text"] is not None}
    return found


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


def _agreed(wanted: dict[str, Any], *, ask_him: bool) -> dict[str, Any]:
    """What the owner wants erased once he has seen it, his choice among several included. Ends the
    command where he does not; raises InvalidRequest where nobody can be asked about more than one fact.
    """
    if not ask_him:
        if wanted["all"]:
            agree("", yes=False, ask=False)
        return wanted
    seen = _forget(dry_run=True, **wanted)
    if not seen["forgotten"] and (chosen := _chosen(seen["candidates"])):
        wanted = {**wanted, "query": chosen}
        seen = _forget(dry_run=True, **wanted)
    if seen["forgotten"]:
        say(fitted(fact_words.forgotten(seen, _texts(seen["forgotten"]))))
        agree("Erase this for good?", yes=False, ask=True)
    return wanted


def _chosen(candidates: Sequence[dict[str, Any]]) -> str:
    """The id of the fact that the owner chooses; "" where he chooses none."""
    if not candidates:
        return ""
    for number, fact in enumerate(candidates, start=1):
        say(f"{number:>3}  {visible(fact['text'])}")
    answered: str = typer.prompt(
        "Which one? (number, or nothing to keep all)", default="", show_default=False
    )
    if not answered.strip().isdecimal() or not 1 <= int(answered) <= len(candidates):
        return ""
    return str(candidates[int(answered) - 1]["id"])


app.command("query")(graph.query)
app.command("graph")(graph.graph)
app.command("run")(zero.run)
app.command("compile")(zero.compile_statements)
for command in (
    states.snapshot,
    states.graph_changes,
    states.apply,
    exchange.share,
    exchange.unshare,
    exchange.send,
    exchange.take,
    exchange.import_graph,
    exchange.export_graph,
    exchange.chain,
):
    app.command()(command)
