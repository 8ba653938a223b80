"""What agents tell each other of their graphs, where it takes a file: `agentd facts send`, `take` and the like."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, ask, fitted
from agentd.cli.declared import Line
from agentd.cli.report import reporting, show
from agentd.cli.texts import Output, check_writable, placed, read_text, write_text
from agentd.commands.exchange import EXCHANGE
from agentd.commands.plain import counted, visible
from agentd.errors import GraphError, InvalidRequest


def _send(given: dict[str, Any], *, output: Output = None, as_json: bool) -> None:
    with reporting(as_json=as_json):
        if output is not None:
            check_writable(output)
        told = ask("facts/send", within=MODEL_SECONDS, **given)
        if output is None:
            show(told, lambda whole: str(whole["text"]).rstrip("\n"), as_json=as_json)
            return
        size = write_text(output, told.pop("text"))
        show({"file": str(output), "bytes": size, **told}, _sent, as_json=as_json)


def _take(
    given: dict[str, Any],
    *,
    file: Annotated[Path, typer.Argument(help="A message; `-` is standard input.")],
    as_json: bool,
) -> None:
    with reporting(as_json=as_json):
        _check(given["trust"])
        told = _told(file, {**given, "text": read_text(file)})
        show({"from": given["from"], **told}, lambda done: fitted(_taken(done)), as_json=as_json)


def _import(
    given: dict[str, Any],
    *,
    file: Annotated[Path, typer.Argument(help="`.0` or `.0c` text; `-` is standard input.")],
    as_json: bool,
) -> None:
    with reporting(as_json=as_json):
        _check(given["trust"])
        text = read_text(file)
        told = ask("facts/import-graph", within=MODEL_SECONDS, **given, text=text)
        who = given["from"] or str(file)
        show({"from": who, **told}, lambda done: fitted(_taken(done)), as_json=as_json)


def _verify(given: dict[str, Any], *, as_json: bool) -> None:
    command = EXCHANGE["chain"]
    with reporting(as_json=as_json):
        found = ask(command.path, within=command.seconds, **given)
        show(found, command.show, as_json=as_json)
        if found["bad"] is not None or found["changed"]:
            raise typer.Exit(1)


LINES: dict[str, Line] = {"send": _send, "take": _take, "import-graph": _import, "chain": _verify}


def _check(trust: float) -> None:
    """Raises InvalidRequest."""
    if not 0 < trust <= 1:  # nor NaN
        raise InvalidRequest(
            f"the trust {trust} is not above 0 and at most 1", cure="set --trust between"
        )


def _told(file: Path, params: dict[str, Any]) -> Any:
    """What the daemon says to a message. Raises what `ask` does, of a message that is refused with its
    file and, where its text is at fault, the place.
    """
    from agentd.client.errors import RemoteError
    from agentd.graph.formats.changes import read_delta

    try:
        return ask("facts/take", within=MODEL_SECONDS, **params)
    except RemoteError as error:
        if error.reason != GraphError.code:
            raise
        with placed(file):
            read_delta(params["text"])
            raise GraphError(error.message, cure=error.cure) from None


def _sent(told: dict[str, Any]) -> str:
    said = f"{counted(told['facts'], 'fact')}, {told['taken_back']} taken back"
    return f"written to {told['file']}: {said}"


def _taken(told: dict[str, Any]) -> str:
    counts = f"{told['new']} new, {told['known']} known, {told['taken_back']} taken back"
    if told["kept_out"]:
        counts += f", {told['kept_out']} kept out (taken back, or forgotten here, before)"
    return f"from {visible(told['from'])}: {counts}"
