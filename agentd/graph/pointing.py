"""Where in a question a mistake stands, shown below it. Pure."""

from __future__ import annotations

from agentd.errors import QueryError
from agentd.graph.drawing import columns

_AROUND = 36  # characters shown on each side of the place


def pointed(question: str, error: QueryError) -> QueryError:
    """The same error with the line of the question in its message, and `^` below the place. One that
    has none is about what is missing, and that would stand behind the last word.
    """
    if not error.line:
        words = question.rstrip().split("\n")
        end = len(words), len(words[-1]) + 1
        error = QueryError(error.message, cure=error.cure, line=end[0], column=end[1])
    lines = question.split("\n")
    if not 0 < error.line <= len(lines) or error.column < 1:
        return error
    line = "".join(c if c.isprintable() else " " for c in lines[error.line - 1])
    at = min(error.column - 1, len(line))
    start, stop = max(0, at - _AROUND), min(len(line), at + _AROUND)
    before = f"{'…' if start else ''}{line[start:at]}"
    after = f"{line[at:stop]}{'…' if stop < len(line) else ''}"
    shown = f"  {before}{after}\n  {' ' * columns(before)}^"
    return QueryError(f"{error.message}\n{shown}", cure=error.cure)
