"""The errors of graphs, one class for each kind of defect; all are ZeroError."""

from __future__ import annotations

from agentd.core.errors import ZeroError


class NotText(ZeroError):
    """The data is no text of the language."""

    code = "zero_not_text"


class BadSyntax(ZeroError):
    """The text does not follow the grammar."""

    code = "zero_syntax"


class BadShape(ZeroError):
    """A field of the graph is missing, unknown or of the wrong kind."""

    code = "zero_shape"


class DuplicateId(ZeroError):
    """Two nodes have the same id."""

    code = "zero_duplicate_id"


class UnknownId(ZeroError):
    """A node that is named is not in the graph."""

    code = "zero_unknown_id"


class CycleFound(ZeroError):
    """Nodes wait for each other."""

    code = "zero_cycle"


class MissingInput(ZeroError):
    """A value that a node needs was not given."""

    code = "zero_missing_input"


class UnknownOperation(ZeroError):
    """There is no such operation."""

    code = "zero_unknown_operation"


class WrongValue(ZeroError):
    """A value is not of the kind that is needed here."""

    code = "zero_value"


class Unavailable(ZeroError):
    """The operation needs something that this run was not given."""

    code = "zero_unavailable"


class LimitReached(ZeroError):
    """The graph is larger, or takes longer, than is allowed."""

    code = "zero_limit"
