"""What agents tell each other of their graphs: `agentd facts share`, `send`, `take` and the like."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, answer, ask, fitted
from agentd.cli.report import AsJson, reporting, show
from agentd.cli.texts import Output, check_writable, placed, read_text, write_text
from agentd.commands.plain import counted, visible
from agentd.errors import GraphError, InvalidRequest

_Space = Annotated[str | None, typer.Option("--space", help="One of `[graph] spaces`.")]


def share(
    name: Annotated[
        str | None,
        typer.Argument(help="Whom or what they are about; without, list what is shared."),
    ] = None,
    space: _Space = None,
    as_json: AsJson = False,
) -> None:
    """Share the facts about a name that hold now, in a space; nobody is told before `send`."""
    answer("facts/share", _listed, as_json=as_json, name=name, space=space)


def unshare(
    name: Annotated[str, typer.Argument(help="Whom or what they are about.")],
    space: _Space = None,
    as_json: AsJson = False,
) -> None:
    """Share the facts about a name no longer; the next message takes them back."""
    answer("facts/unshare", _ended, as_json=as_json, name=name, space=space)


def send(
    space: Annotated[str, typer.Argument(help="One of `[graph] spaces`.")],
    output: Output = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Also what earlier messages have said.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a message for those who share a space: what is new since the last one."""
    with reporting(as_json=as_json):
        if output is not None:
            check_writable(output)
        told = ask("facts/send", within=MODEL_SECONDS, space=space, all=all_)
        if output is None:
            show(told, lambda whole: str(whole["text"]).rstrip("\n"), as_json=as_json)
            return
        size = write_text(output, told.pop("text"))
        show({"file": str(output), "bytes": size, **told}, _sent, as_json=as_json)


def take(
    file: Annotated[Path, typer.Argument(help="A message; `-` is standard input.")],
    sender: Annotated[str, typer.Option("--from", help="What its sender is called here.")],
    trust: Annotated[float, typer.Option(help="How far it is trusted: above 0, at most 1.")] = 0.5,
    as_json: AsJson = False,
) -> None:
    """Take in what another agent tells: all of it that is new, or nothing."""
    with reporting(as_json=as_json):
        params = {"from": sender, "trust": _checked(trust), "text": read_text(file)}
        told = _told(file, params)
        show({"from": sender, **told}, lambda done: fitted(_taken(done)), as_json=as_json)


def import_graph(
    file: Annotated[Path, typer.Argument(help="`.0` or `.0c` text; `-` is standard input.")],
    sender: Annotated[
        str, typer.Option("--from", help="Whose word it is; without, that of a file.")
    ] = "",
    trust: Annotated[float, typer.Option(help="How far it is trusted: above 0, at most 1.")] = 0.5,
    as_json: AsJson = False,
) -> None:
    """Take in what a text of the graph says, for yourself alone."""
    with reporting(as_json=as_json):
        params: dict[str, Any] = {"from": sender, "trust": _checked(trust)}
        params["text"] = read_text(file)
        told = ask("facts/import-graph", within=MODEL_SECONDS, **params)
        who = sender or str(file)
        show({"from": who, **told}, lambda done: fitted(_taken(done)), as_json=as_json)


def export_graph(as_json: AsJson = False) -> None:
    """Write the whole graph to memory/graph as `.0` text, one file for each day."""
    with reporting(as_json=as_json):
        told = ask("facts/export-graph", within=MODEL_SECONDS)
        show(told, _exported, as_json=as_json)


def chain(as_json: AsJson = False) -> None:
    """Verify the log of what happened to the graph, and that what others said is what was logged."""
    with reporting(as_json=as_json):
        found = ask("facts/chain", within=MODEL_SECONDS)
        show(found, _verified, as_json=as_json)
        if found["bad"] is not None or found["changed"]:
            raise typer.Exit(1)


def _checked(trust: float) -> float:
    """Raises InvalidRequest."""
    if not 0 < trust <= 1:  # nor NaN
        raise InvalidRequest(
            f"the trust {trust} is not above 0 and at most 1", cure="set --trust between"
        )
    return trust


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


def _listed(told: dict[str, Any]) -> str:
    lines = [
        f"{one['space']}  {one['id']}  {visible(one['text'])}{'' if one['sent'] else '  (not sent)'}"
        for one in told["facts"]
    ]
    return "\n".join(lines) or "nothing is shared"


def _ended(told: dict[str, Any]) -> str:
    return "\n".join(
        f"{one['space']}  {one['id']}  no longer: {visible(one['text'])}" for one in told["facts"]
    )


def _sent(told: dict[str, Any]) -> str:
    said = f"{counted(told['facts'], 'fact')}, {told['taken_back']} taken back"
    return f"written to {told['file']}: {said}"


def _taken(told: dict[str, Any]) -> str:
    counts = f"{told['new']} new, {told['known']} known, {told['taken_back']} taken back"
    if told["kept_out"]:
        counts += f", {told['kept_out']} kept out (taken back, or forgotten here, before)"
    return f"from {visible(told['from'])}: {counts}"


def _exported(told: dict[str, Any]) -> str:
    files = counted(told["files"], "file")
    return f"{counted(told['episodes'], 'episode')} in {files} of {told['folder']}"


def _verified(found: dict[str, Any]) -> str:
    if not found["kept"]:
        return "no chain is kept; `chain = true` in the [graph] table of config.toml begins one"
    if found["bad"] is not None:
        what = f"entry {found['bad']}" if found["bad"] else "the head record"
        return f"the chain is broken: {what}: {found['why']}"
    lines = [f"{counted(found['entries'], 'entry', 'entries')}, each as it was written"]
    lines += [f"changed since it was entered: what {visible(who)} says" for who in found["changed"]]
    return "\n".join(lines)
