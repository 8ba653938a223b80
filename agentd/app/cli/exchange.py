"""What agents tell each other of their graphs, and whole states of one, where it takes a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.app.cli.ask import MODEL_SECONDS, ask, fit_to_terminal
from agentd.app.cli.report import AsJson, reporting, show
from agentd.app.cli.text_files import Output, check_writable, naming_file, read_bytes, write_text
from agentd.core.errors import Busy, GraphError, InvalidRequest
from agentd.core.graph import Record
from agentd.interfaces.client.remote_error import RemoteError
from agentd.interfaces.commands.exchange import EXCHANGE
from agentd.interfaces.commands.plain import counted, visible
from agentd.zero.delta import apply as applied
from agentd.zero.delta import as_json as told_of
from agentd.zero.delta import checkpoint, diff, read_delta
from agentd.zero.formats.reading import read
from agentd.zero.formats.seal import MOST_CHARS, decode_text
from agentd.zero.formats.writing import write

_TRIES = 5  # to read a graph that is being changed
_Old = Annotated[Path, typer.Argument(metavar="OLD.0c", help="A state that `snapshot` wrote.")]


def snapshot(output: Output = None, as_json: AsJson = False) -> None:
    """Write the whole graph as it is now, as `.0c`."""
    with reporting(as_json=as_json):
        state = _now()
        _show(state, output, as_json=as_json)


def graph_changes(
    old: _Old,
    new: Annotated[
        Path | None, typer.Argument(metavar="NEW.0c", help="Another; without, the one of now.")
    ] = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Write what led from one state to another."""
    with reporting(as_json=as_json):
        before = _read(old)
        after = read(_now()["text"]) if new is None else _read(new)
        _show(told_of(diff(before, after)), output, as_json=as_json)


def apply(
    old: _Old,
    delta: Annotated[
        Path,
        typer.Argument(metavar="DELTA", help="What `graph-changes` wrote; `-` is standard input."),
    ],
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Make those changes to that state, here and without a daemon."""
    with reporting(as_json=as_json):
        before = _read(old)
        text = read_text(delta)
        with naming_file(delta):
            after = applied(before, read_delta(text))
        held = checkpoint(after)
        told = {
            "state": held.hash.hex,
            "concepts": held.concepts,
            "contexts": held.contexts,
            "episodes": held.relations,
            "text": write(after),
        }
        _show(told, output, as_json=as_json)


def read_text(file: Path) -> str:
    """Return the text of a file; `-` is standard input. Raises InvalidRequest for a file that
    cannot be read or is too large, GraphError for one that is not UTF-8.
    """
    data = read_bytes(file, MOST_CHARS, "no graph of one person is so large")
    with naming_file(file):
        return decode_text(data)


def _read(file: Path) -> Record:
    """Return the state in a file. Raises InvalidRequest, GraphError."""
    text = read_text(file)
    with naming_file(file):
        return read(text)


def _now() -> dict[str, Any]:
    """Return the daemon's graph as a whole, read again if it changed meanwhile. Raises what `ask`
    raises.
    """
    for _ in range(_TRIES):
        try:
            return _whole()
        except RemoteError as error:
            if error.reason != Busy.code:
                raise
    return _whole()


def _whole() -> dict[str, Any]:
    state: dict[str, Any] = ask("facts/snapshot", within=MODEL_SECONDS)
    parts, after = [state["text"]], state.pop("next")
    while after is not None:
        more = ask("facts/snapshot", within=MODEL_SECONDS, after=after, state=state["state"])
        parts.append(more["text"])
        after = more["next"]
    return {**state, "text": "".join(parts)}


def _show(told: dict[str, Any], output: Path | None, *, as_json: bool) -> None:
    """Print the text, or write it to the file and print a summary."""
    if output is None:
        show(told, lambda whole: str(whole["text"]).rstrip("\n"), as_json=as_json)
        return
    size = write_text(output, told.pop("text"))
    told = {"file": str(output), "bytes": size, **told}
    show(told, _snapshot_text, as_json=as_json)


def _snapshot_text(told: dict[str, Any]) -> str:
    gone = f", {told['gone']} gone" if "gone" in told else ""
    kept = counted(told["episodes"], "episode")
    return f"written to {told['file']}: {kept}{gone}, state {told['state'][:12]}"


def send(given: dict[str, Any], *, output: Output = None, as_json: bool) -> None:
    """Write what another agent is to be told, or print it."""
    with reporting(as_json=as_json):
        if output is not None:
            check_writable(output)
        told = ask("facts/send", within=MODEL_SECONDS, **given)
        if output is None:
            show(told, lambda whole: str(whole["text"]).rstrip("\n"), as_json=as_json)
            return
        size = write_text(output, told.pop("text"))
        show({"file": str(output), "bytes": size, **told}, _sent_text, as_json=as_json)


def take(
    given: dict[str, Any],
    *,
    file: Annotated[Path, typer.Argument(help="A message; `-` is standard input.")],
    as_json: bool,
) -> None:
    """Hand a message of another agent to the daemon."""
    with reporting(as_json=as_json):
        _check(given["trust"])
        told = _ask_about_file(file, {**given, "text": read_text(file)})
        show(
            {"from": given["from"], **told},
            lambda done: fit_to_terminal(_taken_text(done)),
            as_json=as_json,
        )


def import_graph(
    given: dict[str, Any],
    *,
    file: Annotated[Path, typer.Argument(help="`.0` or `.0c` text; `-` is standard input.")],
    as_json: bool,
) -> None:
    """Hand a graph in a file to the daemon."""
    with reporting(as_json=as_json):
        _check(given["trust"])
        text = read_text(file)
        told = ask("facts/import-graph", within=MODEL_SECONDS, **given, text=text)
        who = given["from"] or str(file)
        show(
            {"from": who, **told}, lambda done: fit_to_terminal(_taken_text(done)), as_json=as_json
        )


def verify(given: dict[str, Any], *, as_json: bool) -> None:
    """Print whether the chain is whole; exit code 1 if it is not."""
    command = EXCHANGE["chain"]
    with reporting(as_json=as_json):
        found = ask(command.path, within=command.seconds, **given)
        show(found, command.show, as_json=as_json)
        if found["bad"] is not None or found["changed"]:
            raise typer.Exit(1)


def _check(trust: float) -> None:
    """Raise InvalidRequest unless the trust is above 0 and at most 1."""
    if not 0 < trust <= 1:  # nor NaN
        raise InvalidRequest(
            f"the trust {trust} is not above 0 and at most 1", cure="set --trust between"
        )


def _ask_about_file(file: Path, params: dict[str, Any]) -> Any:
    """Send a message to the daemon and return its answer. Raises what `ask` raises; a refusal of
    the text names the file and the place.
    """
    try:
        return ask("facts/take", within=MODEL_SECONDS, **params)
    except RemoteError as error:
        if error.reason != GraphError.code:
            raise
        with naming_file(file):
            read_delta(params["text"])
            raise GraphError(error.message, cure=error.cure) from None


def _sent_text(told: dict[str, Any]) -> str:
    said = f"{counted(told['facts'], 'fact')}, {told['taken_back']} taken back"
    return f"written to {told['file']}: {said}"


def _taken_text(told: dict[str, Any]) -> str:
    counts = f"{told['new']} new, {told['known']} known, {told['taken_back']} taken back"
    if told["kept_out"]:
        counts += f", {told['kept_out']} kept out (taken back, or forgotten here, before)"
    return f"from {visible(told['from'])}: {counts}"
