"""`agentd sessions`: the commands that need more than one call of the daemon: they page, read
files or ask for a yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import typer

from agentd.app.cli.ask import ask, fit_to_terminal
from agentd.app.cli.declared import group_of
from agentd.app.cli.report import as_line, reporting, say, show
from agentd.core.message import Block, Image, Text, ToolResult, ToolUse, decode_block
from agentd.interfaces.commands.plain import counted, visible
from agentd.interfaces.commands.sessions import SESSIONS

_SPEAKERS = {"user": "you", "assistant": "agent", "summary": "summary", "notice": "notice"}

Line = dict[str, Any]


def conversation(lines: Sequence[Line]) -> str:
    """Return a transcript as text for people: a paragraph a row, with speaker and time, and one
    line for each tool call. `lines` are those of an export, with times in words.
    """
    spoken = [(line, [decode_block(block) for block in line["content"]]) for line in lines]
    failed = {
        block.tool_use_id
        for _, blocks in spoken
        for block in blocks
        if isinstance(block, ToolResult) and block.is_error
    }
    told = (_paragraph(line, list(_block_lines(blocks, failed))) for line, blocks in spoken)
    return "\n\n".join(text for text in told if text)


def _paragraph(line: Line, said: Sequence[str]) -> str:
    """Return the paragraph of a row; "" without text, as for a row with only tool results."""
    if not said:
        return ""
    body = "\n".join(f"  {text}".rstrip() for part in said for text in part.split("\n"))
    return f"{_SPEAKERS.get(line['role'], line['role'])}, {line['at']}\n{body}"


def _block_lines(blocks: Iterable[Block], failed: set[str]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text(text) if text.strip():
                yield visible(text.strip())
            case Image():
                yield block.label
            case ToolUse(id_):
                yield visible(f"· {block.title}{' (failed)' if id_ in failed else ''}")


def _show(
    given: dict[str, Any],
    *,
    last: Annotated[int, typer.Option(min=0, help="How many of its newest rows.")] = 20,
    as_json: bool,
) -> None:

    with reporting(as_json=as_json):
        session = ask("sessions/show", in_words=not as_json, **given)
        show(session, lambda told: fit_to_terminal(SESSIONS["show"].show(told)), as_json=as_json)
        if last and not as_json and session["rows"]:
            first = max(1, session["rows"] - last + 1)
            if first > 1:
                say(f"\n{_left_out(first - 1, session['rows'])}")
            messages = _messages(given["key"], first, in_words=True)
            say(f"\n{fit_to_terminal(conversation(list(messages)))}")


def _left_out(number: int, rows: int) -> str:
    """Return that the first rows, tool results counted, are not shown, and what shows them."""
    told = f"{counted(number, 'earlier row')} left out"
    return f"… {told}; `--last {rows}` shows all"


def _export(given: dict[str, Any], *, as_json: bool) -> None:
    with reporting(as_json=as_json):
        for message in _messages(given["key"]):
            say(as_line(message))


app = group_of(
    SESSIONS,
    {
        "show": _show,
        "export": _export,
        "import": "transcripts:import_files",
        "delete": "session_deletion:delete",
    },
)


def _messages(
    key: str, first: int | None = 1, *, in_words: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the exported rows of a session from row `first` on, page by page. An answer's `next` is
    the first row of the next page.
    """
    while first is not None:
        page = ask("sessions/export", key=key, first=first, in_words=in_words)
        yield from page["lines"]
        first = page.get("next")
