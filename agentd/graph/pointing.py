"""Where in a question a mistake stands, shown below it. Pure."""

from __future__ import annotations

from agentd.errors import QueryError
from agentd.graph.picture_text import columns

_AROUND = 36  # characters shown on each side of the place


def pointed(question: str, error: QueryError) -> QueryError:
    """The same error with the line of the question in its message, and `^` below the place."""
    lines = question.split("\n")
    if not 0 < error.line <= len(lines) or error.column < 1:
        return error
    line = "".join(c if c.isprintable() else " " for c in lines[error.line - 1])
    at = min(error.column - 1, len(line))
    start, end = max(0, at - _AROUND), min(len(line), at + _AROUND)
    before = f"{'…' if start else ''}{line[start:at]}"
    after = f"{line[at:end]}{'…' if end < len(line) else ''}"
    shown = f"  {before}{after}\n  {' ' * columns(before)}^"
    return QueryError(f"{error.message}\n{shown}", cure=error.cure)
