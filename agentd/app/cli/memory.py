"""`agentd memory`: the commands that need more than one call of the daemon: they page, read
standard input, ask for a yes or show progress.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from agentd.app.cli import progress
from agentd.app.cli.ask import agree, answer, ask, fit_to_terminal
from agentd.app.cli.declared import add_all, group_of
from agentd.app.cli.hits import HitLook, degraded_text, hits_text
from agentd.app.cli.report import note, reporting, say, show
from agentd.app.cli.text_files import read_stdin
from agentd.core.errors import InvalidRequest
from agentd.interfaces.commands.history import HISTORY
from agentd.interfaces.commands.memory import MEMORY, text_of
from agentd.interfaces.commands.proposals import PROPOSALS

_SOURCES = ("notes", "sessions")
_MOST_ALSO = 5


def _read(given: dict[str, Any], *, as_json: bool) -> None:
    with reporting(as_json=as_json):
        whole = _whole(given["path"], given["from"], given["lines"])
        show(whole, text_of, as_json=as_json)
        if given["from"] and whole.get("lines") == 0 and not as_json:
            note(f"{given['path']} has no line {given['from']}")


def _write(given: dict[str, Any], *, as_json: bool) -> None:
    with reporting(as_json=as_json):
        if given["content"] == "-":
            given["content"] = read_stdin()
    answer("memory/write", _written_text, as_json=as_json, **given)


def _search(
    given: dict[str, Any],
    *,
    sources: Annotated[
        str | None, typer.Option(help="notes, sessions or both, with a comma between them.")
    ] = None,
    no_recency: Annotated[bool, typer.Option("--no-recency", help="Let no hit age.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print every partial score, too.")
    ] = False,
    as_json: bool,
) -> None:
    with reporting(as_json=as_json):
        wanted, *others = _wordings(given.pop("query"), given.pop("queries") or ())
        given["sources"] = _each_of("sources", sources.split(","), _SOURCES) if sources else None
        given["recency"] = False if no_recency else None
        result = ask("memory/search", query=wanted, queries=others, **given)
        if not as_json and (lacking := degraded_text(result)):
            note(lacking)
        phrased = "\n".join((wanted, *others))
        show(
            result,
            lambda r: hits_text(r, phrased, HitLook.here(), explain=explain),
            as_json=as_json,
        )


def _index(given: dict[str, Any], *, as_json: bool) -> None:

    command = MEMORY["index"]
    options = {name: True for name, is_wanted in given.items() if is_wanted}
    with reporting(as_json=as_json):
        with progress.show_progress():
            result = ask(command.path, within=command.seconds, **options)
        show(result, lambda told: fit_to_terminal(command.show(told)), as_json=as_json)


def _forget(
    given: dict[str, Any],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: bool,
) -> None:
    command = MEMORY["forget"]
    with reporting(as_json=as_json):
        if not (yes or given["dry_run"]):
            if not as_json:
                seen = ask(command.path, within=command.seconds, **{**given, "dry_run": True})
                say(fit_to_terminal(command.show(seen)))
            agree("Erase this for good?", yes=False, ask=not as_json)
        result = ask(command.path, within=command.seconds, **given)
        show(result, lambda told: fit_to_terminal(command.show(told)), as_json=as_json)


def _list_proposals(given: dict[str, Any], *, as_json: bool) -> None:
    with reporting(as_json=as_json):
        result = ask("memory/proposals", **given)
        show(result, PROPOSALS["proposals"].show, as_json=as_json)
        if result["done"] in {"changed", "too_long"}:
            raise typer.Exit(1)


app = group_of(
    MEMORY,
    {"read": _read, "write": _write, "search": _search, "index": _index, "forget": _forget},
)
add_all(app, HISTORY)
add_all(app, PROPOSALS, {"proposals": _list_proposals})


def _whole(path: str, first: int | None, lines: int | None) -> dict[str, Any]:
    """Read up to `lines` lines of a file from line `first` on, page by page, and return them as one
    answer of `memory/read`.
    """
    options: dict[str, Any] = {"path": path, "from": first, "lines": lines}
    whole: dict[str, Any] = ask("memory/read", **options)
    while (go_on := whole.get("next")) is not None:
        left = None if lines is None else lines - whole["lines"]
        page = ask("memory/read", **{**options, "from": go_on, "lines": left})
        whole["text"] += page["text"]
        whole["lines"] += page["lines"]
        whole["next"] = page.get("next")
    return whole


def _written_text(result: dict[str, Any]) -> str:
    for found in result.get("warnings") or []:
        place = f"{result['path']}:{found['line']}:{found['column']}"
        note(f"warning: {place} {found['reason']} ({found['severity']}); prompts carry it")
    return text_of(result)


def _wordings(query: str, also: Sequence[str]) -> list[str]:
    """Return the query, read from standard input for `-`, and its other wordings. Bytes that are
    not UTF-8 are replaced. Raises InvalidRequest for too many wordings.
    """
    if len(also) > _MOST_ALSO:
        raise InvalidRequest(
            f"--also: stands {len(also)} times",
            cure=f"give it up to {_MOST_ALSO} times, the best wordings",
        )
    text = sys.stdin.buffer.read().decode(errors="replace") if query == "-" else query
    return [one.encode(errors="replace").decode() for one in (text, *also)]


def _each_of(name: str, given: list[str], known: tuple[str, ...]) -> list[str]:
    """Return the given words, stripped. Raises InvalidRequest for a word that is not `known`."""
    words = [word.strip() for word in given]
    for word in words:
        if word not in known:
            raise InvalidRequest(
                f"--{name}: there is no {word!r}", cure=f"choose from {', '.join(known)}"
            )
    return words
