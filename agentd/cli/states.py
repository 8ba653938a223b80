"""`agentd facts snapshot`, `graph-changes` and `apply`: whole states of the graph, and what leads between them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, ask
from agentd.cli.report import AsJson, reporting, show
from agentd.cli.texts import Output, placed, read_text, write_text
from agentd.commands.plain import counted
from agentd.errors import Busy

if TYPE_CHECKING:
    from agentd.domain.concept import Record

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
    from agentd.graph.delta import diff
    from agentd.graph.formats.changes import as_json as told_of
    from agentd.graph.formats.reading import read

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
    from agentd.graph.delta import apply as applied
    from agentd.graph.delta import checkpoint
    from agentd.graph.formats.changes import read_delta
    from agentd.graph.formats.writing import write

    with reporting(as_json=as_json):
        before = _read(old)
        text = read_text(delta)
        with placed(delta):
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


def _read(file: Path) -> Record:
    """The state that the file says. Raises InvalidRequest, GraphError."""
    from agentd.graph.formats.reading import read

    text = read_text(file)
    with placed(file):
        return read(text)


def _now() -> dict[str, Any]:
    """The graph of the daemon, read again where it changed meanwhile. Raises what `ask` does."""
    from agentd.client.errors import RemoteError

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
    """Print the text, or write it to the file and say so."""
    if output is None:
        show(told, lambda whole: str(whole["text"]).rstrip("\n"), as_json=as_json)
        return
    size = write_text(output, told.pop("text"))
    told = {"file": str(output), "bytes": size, **told}
    show(told, _written, as_json=as_json)


def _written(told: dict[str, Any]) -> str:
    gone = f", {told['gone']} gone" if "gone" in told else ""
    kept = counted(told["episodes"], "episode")
    return f"written to {told['file']}: {kept}{gone}, state {told['state'][:12]}"
