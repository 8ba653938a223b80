"""`agentd facts run`: a program of the `.0` language, run here and without a daemon."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Never

import typer

from agentd.cli.plain import visible
from agentd.cli.report import AsJson, reporting, show
from agentd.errors import GraphError, InvalidRequest


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

    with reporting(as_json=as_json):
        inputs = _inputs(given or [])
        data = _read(file)
        try:
            graphs = run_all(data, inputs, SystemClock("UTC"))
        except GraphError as error:
            _place(file, error)
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


def _read(file: Path) -> bytes:
    """The bytes of the file, no more than a text may have. Raises InvalidRequest."""
    from agentd.graph.zero.tokens import MAX_TEXT

    try:
        if str(file) == "-":
            data = sys.stdin.buffer.read(MAX_TEXT + 1)
        else:
            with file.open("rb") as stream:
                data = stream.read(MAX_TEXT + 1)
    except OSError as error:
        raise InvalidRequest(f"{file}: {error.strerror}", cure="name a readable file") from None
    if len(data) > MAX_TEXT:
        raise InvalidRequest(f"{file}: has more than {MAX_TEXT} bytes", cure="split the file")
    return data


def _place(file: Path, error: GraphError) -> Never:
    """The error with its place as FILE:line:column."""
    text = error.message.partition(": ")[2] if error.line else error.message
    place = f"{file}:{error.line}:{error.column}" if error.line else str(file)
    raise type(error)(f"{place}: {text}", cure=error.cure) from error


def _told(graphs: Sequence[dict[str, Any]]) -> str:
    return "\n".join(line for graph in graphs for line in _lines(graph)) or "the text has no graph"


def _lines(graph: dict[str, Any]) -> Iterator[str]:
    yield f"graph {visible(graph['name'])}".rstrip()
    for name, value in graph["outputs"].items():
        yield visible(f"  {name}: {json.dumps(value, ensure_ascii=False)}")
    yield f"confidence {graph['confidence']:g}, hash {graph['hash']}"
