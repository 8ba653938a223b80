"""`agentd facts run` and `compile`: run programs in the `.0` language; write statements in it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Never

import typer

from agentd.app.cli.ask import ask
from agentd.app.cli.exchange import read_text
from agentd.app.cli.report import AsJson, ConfigFile, reporting, show
from agentd.app.cli.text_files import Output, naming_file, read_bytes, write_text
from agentd.app.config import load
from agentd.core.clock import SystemClock
from agentd.core.errors import InvalidRequest
from agentd.core.paths import daemon_places, expanded
from agentd.core.secrets import read_key
from agentd.interfaces.commands.plain import counted, visible
from agentd.memory.graph.program import ProgramMemory, run_all
from agentd.zero.compiler import compile as compiled
from agentd.zero.statements import read_statements
from agentd.zero.tokens import MAX_TEXT


def run(
    file: Annotated[Path, typer.Argument(help="A text of graphs; `-` is standard input.")],
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="NAME=VALUE", help="An input: JSON such as 5 or true, else a text."
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="NAME", help="Let the daemon keep what is saved, for the next run."
        ),
    ] = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Run the graphs of a `.0` file. Without --state nothing is kept, and no daemon is needed."""
    with reporting(as_json=as_json):
        inputs = _inputs(given or [])
        data = read_bytes(file, MAX_TEXT, "split the file")
        kept = ask("facts/program-state", name=state) if state else {"state": ""}
        memory = ProgramMemory.read(kept["state"])
        with naming_file(file):
            graphs = run_all(data, inputs, SystemClock("UTC"), memory, _key(config))
        if state and (after := memory.text()) != kept["state"]:
            ask("facts/keep-program-state", name=state, state=after, before=kept["hash"])
        show({"graphs": graphs}, lambda told: _as_text(told["graphs"]), as_json=as_json)


def compile_statements(
    file: Annotated[
        Path,
        typer.Argument(help="Lines `subject | relation | object`, or JSON; `-` is standard input."),
    ],
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Write statements as `.0` text, with all their hashes; no daemon is needed."""
    with reporting(as_json=as_json):
        text = read_text(file)
        with naming_file(file):
            made = compiled(read_statements(text, SystemClock("UTC").now()))
        told: dict[str, Any] = {
            "episodes": len(made.record.relations),
            "text": made.graph_text,
        }
        if output is None:
            show(told, lambda whole: str(whole["text"]).rstrip("\n"), as_json=as_json)
            return
        size = write_text(output, told.pop("text"))
        show({"file": str(output), "bytes": size, **told}, _written_text, as_json=as_json)


def _key(config: Path | None) -> bytes:
    """Return the key that Sign and Verify use, from the file `[graph] key_file`; b"" if none is
    set. Raises ConfigError.
    """
    settings = load(daemon_places(os.environ, config).config_file, os.environ).graph
    if not settings.key_file:
        return b""
    return read_key(expanded(settings.key_file), "[graph] key_file").reveal().encode()


def _written_text(told: dict[str, Any]) -> str:
    return f"written to {told['file']}: {counted(told['episodes'], 'episode')}"


def _inputs(given: Sequence[str]) -> dict[str, object]:
    """Parse the inputs NAME=VALUE into values by name. Raises InvalidRequest."""
    inputs: dict[str, object] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not (name and equals) or name in inputs:
            what = "was given twice" if name in inputs else "has no name or no `=`"
            raise InvalidRequest(f"--input {one[:40]!r} {what}", cure="give NAME=VALUE, each once")
        inputs[name] = _value(text)
    return inputs


def _value(text: str) -> object:
    """Return the text parsed as JSON; if it is not valid JSON, the text itself."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(word: str) -> Never:
    raise ValueError(word)  # NaN and Infinity, which are not JSON, are taken as text


def _as_text(graphs: Sequence[dict[str, Any]]) -> str:
    return "\n".join(line for graph in graphs for line in _lines(graph)) or "the text has no graph"


def _lines(graph: dict[str, Any]) -> Iterator[str]:
    yield f"graph {visible(graph['name'])}".rstrip()
    for name, value in graph["outputs"].items():
        yield visible(f"  {name}: {json.dumps(value, ensure_ascii=False)}")
    yield f"confidence {graph['confidence']:g}, hash {graph['hash']}"
