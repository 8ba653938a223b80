"""The `agentd facts` commands that need more than one call: they read a file, show first, or ask
for a yes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.app.cli.ask import agree, ask, fit_to_terminal
from agentd.app.cli.declared import add_all, group_of
from agentd.app.cli.group import deferred
from agentd.app.cli.report import AsJson, as_line, reporting, say, show
from agentd.app.cli.text_files import read_stdin
from agentd.core.errors import InvalidRequest
from agentd.interfaces.commands import fact_words
from agentd.interfaces.commands.exchange import EXCHANGE
from agentd.interfaces.commands.fact_changes import FACT_CHANGES
from agentd.interfaces.commands.facts import ERASING_SECONDS, FACTS, GRAPH
from agentd.interfaces.commands.plain import fields, visible
from agentd.memory.facts.import_order import successors_first

_PAGE = 500


def _forgotten(
    given: dict[str, Any],
    *,
    more: Annotated[
        list[int] | None, typer.Argument(min=1, metavar="[N]", help="More numbers for --also.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: bool,
) -> None:
    with reporting(as_json=as_json):
        dry_run, also = given.pop("dry_run"), given.pop("also")
        if more and not also:
            raise InvalidRequest(
                "the words to forget are one argument", cure="put them in quotation marks"
            )
        wanted = {**given, "also": [*(also or ()), *(more or ())] or None}
        if not (dry_run or yes):
            wanted = _confirm_forgetting(wanted, ask_him=sys.stdin.isatty() and not as_json)
        result = _forget(dry_run=dry_run, **wanted)
        texts = _texts(result["forgotten"]) if dry_run and not as_json else {}
        show(
            result, lambda told: fit_to_terminal(fact_words.forgotten(told, texts)), as_json=as_json
        )
        if not result["forgotten"]:
            raise typer.Exit(1)


def _list_changes(given: dict[str, Any], *, as_json: bool) -> None:
    with reporting(as_json=as_json):
        result = ask("facts/changes", in_words=not as_json, **given)
        ids = [i for one in result["changes"] for i in (one["new"], *one["old"]) if i]
        texts = {} if as_json else _texts(ids)
        show(result, lambda told: fit_to_terminal(fact_words.changes(told, texts)), as_json=as_json)


def _import_facts(
    _: dict[str, Any],
    *,
    file: Annotated[
        Path, typer.Argument(help="A file as `export` writes it; `-` is standard input.")
    ],
    as_json: bool,
) -> None:
    with reporting(as_json=as_json):
        rows = [row for _, row in successors_first(list(_read(file)))]
        done: dict[str, Any] = {"added": 0, "known": 0, "refused": {}}
        for at in range(0, len(rows), _PAGE):
            page = ask("facts/import", within=ERASING_SECONDS, facts=rows[at : at + _PAGE])
            done["added"] += page["added"]
            done["known"] += page["known"]
            for reason, count in page["refused"].items():
                done["refused"][reason] = done["refused"].get(reason, 0) + count
        show(done, lambda told: fit_to_terminal(fields(told)), as_json=as_json)


app = group_of(FACTS, {"forget": _forgotten, "import": _import_facts})
add_all(app, FACT_CHANGES, {"changes": _list_changes})
# Those that read or draw the graph load its parts, which no other command of facts needs.
add_all(app, GRAPH, {"query": "graph:query", "graph": "graph:graph"})
add_all(
    app,
    EXCHANGE,
    {
        "send": "exchange:send",
        "take": "exchange:take",
        "import-graph": "exchange:import_graph",
        "chain": "exchange:verify",
    },
)


@app.command()
def export(as_json: AsJson = False) -> None:
    """Write all facts to standard output, one JSON object a line."""
    with reporting(as_json=as_json):
        for fact in _all():
            say(as_line(fact))


app.later |= deferred(
    {
        "run": ("zero:run", "Run the graphs of a `.0` file."),
        "compile": (
            "zero:compile_statements",
            "Write statements as `.0` text, with all their hashes; no daemon is needed.",
        ),
        "snapshot": ("exchange:snapshot", "Write the whole graph as it is now, as `.0c`."),
        "graph-changes": ("exchange:graph_changes", "Write what led from one state to another."),
        "apply": (
            "exchange:apply",
            "Make those changes to that state, here and without a daemon.",
        ),
    }
)


def _forget(**wanted: Any) -> dict[str, Any]:
    result: dict[str, Any] = ask("facts/forget", within=ERASING_SECONDS, **wanted)
    return result


def _texts(ids: Sequence[str]) -> dict[str, str]:
    """Return the sentences of facts by id, superseded ones included; deleted and forgotten ones are
    missing.
    """
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
    """Yield the JSON objects of a file's lines. Raises InvalidRequest, which names a bad line."""
    try:
        text = read_stdin() if str(file) == "-" else file.read_text(encoding="utf-8")
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
        yield {**row, "line": number}


def _confirm_forgetting(wanted: dict[str, Any], *, ask_him: bool) -> dict[str, Any]:
    """Show what would be erased and return what the owner confirms, with his choice if several
    facts match. Ends the command if he refuses; raises InvalidRequest if nobody can be asked and
    `all` is set.
    """
    if not ask_him:
        if wanted["all"]:
            agree("", yes=False, ask=False)
        return wanted
    seen = _forget(dry_run=True, **wanted)
    if not seen["forgotten"] and (chosen := _ask_which(seen["candidates"])):
        wanted = {**wanted, "query": chosen}
        seen = _forget(dry_run=True, **wanted)
    if seen["forgotten"]:
        say(fit_to_terminal(fact_words.forgotten(seen, _texts(seen["forgotten"]))))
        agree("Erase this for good?", yes=False, ask=True)
    return wanted


def _ask_which(candidates: Sequence[dict[str, Any]]) -> str:
    """Ask which fact is meant and return its id; "" if the owner chooses none."""
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
