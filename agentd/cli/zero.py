"""`agentd facts run`: a program of the `.0` language, run here and without a daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Never

import typer

from agentd.cli.plain import visible
from agentd.cli.report import AsJson, reporting, show
from agentd.cli.texts import placed, read_bytes
from agentd.errors import InvalidRequest


def run(
    file: Annotated[Path, typer.Argument(help="A text of graphs; `-` is standard input.")],
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="NAME=VALUE", help="An input: JSON such as 5 or true, else a text."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the graphs of a `.0` file; nothing is kept, and no daemon is needed."""
    from agentd.clock import SystemClock
    from agentd.graph.program import run_all
    from agentd.graph.zero.tokens import MAX_TEXT

    with reporting(as_json=as_json):
        inputs = _inputs(given or [])
        data = read_bytes(file, MAX_TEXT, "split the file")
        with placed(file):
            graphs = run_all(data, inputs, SystemClock("UTC"))
        show({"graphs": graphs}, lambda told: _told(told["graphs"]), as_json=as_json)


def _inputs(given: Sequence[str]) -> dict[str, object]:
    """The values by name. Raises InvalidRequest."""
    inputs: dict[str, object] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not (name and equals) or name in inputs:
            what = "was given twice" if name in inputs else "has no name or no `=`"
            raise InvalidRequest(f"--input {one[:40]!r} {what}", cure="give NAME=VALUE, each once")
        inputs[name] = _value(text)
    return inputs


def _value(text: str) -> object:
    """What the text says as JSON, where it does; else itself."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(word: str) -> Never:
    raise ValueError(word)  # NaN and Infinity are words


def _told(graphs: Sequence[dict[str, Any]]) -> str:
    return "\n".join(line for graph in graphs for line in _lines(graph)) or "the text has no graph"


def _lines(graph: dict[str, Any]) -> Iterator[str]:
    yield f"graph {visible(graph['name'])}".rstrip()
    for name, value in graph["outputs"].items():
        yield visible(f"  {name}: {json.dumps(value, ensure_ascii=False)}")
    yield f"confidence {graph['confidence']:g}, hash {graph['hash']}"
