"""`agentd facts query` and `agentd facts graph`: questions to the concept graph, and pictures of
it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from agentd.app.cli.ask import ask
from agentd.app.cli.report import note, reporting, show
from agentd.app.cli.text_files import Output, write_text
from agentd.core.errors import InvalidRequest
from agentd.interfaces.commands.plain import visible
from agentd.memory.graph.drawing import align, as_dot, as_html
from agentd.memory.graph.wire import answer_of, picture_of
from agentd.zero import parse, write_compatible


class Format(StrEnum):
    """The format of a picture."""

    TABLE = "table"
    DOT = "dot"
    HTML = "html"
    COMPACT = "0c"
    ZERO = "zero"
    L0 = "l0"
    L1 = "l1"
    L2 = "l2"
    PROMPT = "prompt"


DRAWN = frozenset({Format.TABLE, Format.DOT, Format.HTML})  # the daemon writes the others


def query(given: dict[str, Any], *, as_json: bool) -> None:
    """Ask the graph and print its answer."""
    with reporting(as_json=as_json):
        show(ask("facts/query", **given), _answer_text, as_json=as_json)


def graph(
    given: dict[str, Any],
    *,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help=(
                "Shown: table, dot (Graphviz), html. All that is said of it: 0c (the same as l2), "
                "zero. Less: l1, l0, prompt."
            ),
        ),
    ] = Format.TABLE,
    output: Output = None,
    compat: Annotated[
        bool,
        typer.Option(
            "--compat", help="With --format zero: for older readers, without colons in words."
        ),
    ] = False,
    as_json: bool,
) -> None:
    """Print a picture of the graph, or write it to a file."""
    with reporting(as_json=as_json):
        if compat and form is not Format.ZERO:
            raise InvalidRequest("--compat is for --format zero alone", cure="leave it out")
        wanted = None if form in DRAWN else form.value
        result = ask("facts/graph", **given, form=wanted)
        if compat:
            result["text"] = _compatible(result["text"])
        if wanted and not as_json and (left := _omissions(result)):
            note(left)
        if output is None:
            show(result, lambda told: _draw(told, form), as_json=as_json)
            return
        size = write_text(output, _draw(result, form).rstrip("\n") + "\n")
        told = {"file": str(output), "bytes": size}
        show(told, lambda done: f"written to {done['file']}", as_json=as_json)


def _answer_text(result: dict[str, Any]) -> str:
    answer = answer_of(result)
    if not answer.rows:
        return visible(answer.reason)
    lines = [align(answer.as_table()), *(visible(str(one)) for one in answer.unknown)]
    for name, said in result["tellers"].items():
        lines.append(visible(f"{name} says: {'; '.join(said)}"))
    return "\n".join(lines)


def _omissions(result: dict[str, Any]) -> str:
    """Return what the picture does not show: that nothing is known, or which part is left out."""
    picture = picture_of(result)
    return visible(picture.left_out if picture.nodes else picture.title)


def _compatible(text: str) -> str:
    """Return the graph of a `.0` text in the form for older readers."""
    return write_compatible(parse(text))


def _draw(result: dict[str, Any], form: Format) -> str:
    if form not in DRAWN:
        return str(result["text"]).rstrip("\n")
    picture = picture_of(result)
    match form:
        case Format.DOT:
            return as_dot(picture)
        case Format.HTML:
            return as_html(picture)
    if not picture.nodes:
        return visible(picture.title)
    return "\n".join(filter(None, (align(picture.as_table()), picture.left_out)))
