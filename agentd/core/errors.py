"""The tree of errors that agentd raises on purpose.

    AgentdError
    ├── ConfigError            the configuration cannot be used
    ├── AlreadyRunning         another daemon owns this state directory
    ├── DaemonUnreachable      no daemon answers on the socket
    ├── InvalidRequest         the caller asked for something that has no meaning
    ├── NotFound               no such session, file, alert ...
    ├── Busy                   the thing is in use; try again
    │   └── QueueFull          too many prompts wait for this session
    ├── ShuttingDown           the daemon is stopping and takes no new work
    ├── StorageError           the database refused
    │   ├── StorageFull        the disk is full; nothing was acknowledged
    │   ├── StateMissing       the state database is gone from where an agentd has worked
    │   └── StorageCorrupt     a database file cannot be read
    ├── WorkspaceError         a file of the workspace cannot be used
    │   ├── PathRefused        outside the workspace, not a regular file, or not allowed here
    │   ├── FileMissing        absent, or hidden from this kind of session (one answer for both)
    │   ├── FileUnreadable     no permission, not UTF-8, too large
    │   └── EditConflict       the file changed since it was read
    ├── BudgetReached          a limit of [budget] would be passed
    ├── EmbedderFault          texts could not be turned into vectors; search goes on with keywords
    ├── FactsOff               facts are asked for where the configuration switches them off
    ├── GraphOff               the concept graph is asked where the configuration switches it off
    ├── GraphError             a label or a text of the concept graph cannot be used
    │   ├── QueryError         a question to the graph is not in its language
    │   └── ZeroError          a `.0` text cannot be read, or its graph cannot be run
    ├── ToolFailed             a tool's own refusal, told to the model
    └── ProviderError          the model's service failed
        └── ContextOverflow    the prompt does not fit the model's window

Each class has a stable `code` (for machines), a message (for people) and a `cure` (what to do
next).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from agentd.core.turn import Usage


class AgentdError(Exception):
    """agentd failed on purpose and says why."""

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "", *, cure: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])
        self.cure = cure

    @property
    def message(self) -> str:
        """What happened, to which thing."""
        return str(self.args[0])

    @property
    def reason(self) -> str:
        """The stable word for machines; the class's `code` unless the instance is more exact."""
        return self.code


class ConfigError(AgentdError):
    """The configuration cannot be used."""

    code = "config"
    exit_code = 78


class AlreadyRunning(AgentdError):
    """Another agentd owns this state directory."""

    code = "already_running"
    exit_code = 75


class DaemonUnreachable(AgentdError):
    """No daemon answers on the socket."""

    code = "unreachable"
    exit_code = 69


class InvalidRequest(AgentdError):
    """The request has no meaning."""

    code = "invalid"
    exit_code = 2


class NotFound(AgentdError):
    """There is no such thing."""

    code = "not_found"


class Busy(AgentdError):
    """The thing is in use."""

    code = "busy"
    exit_code = 75


class QueueFull(Busy):
    """Too many prompts wait for this session."""

    code = "queue_full"


class ShuttingDown(Busy):
    """The daemon is stopping and takes no new work."""

    code = "shutting_down"


class StorageError(AgentdError):
    """The database refused."""

    code = "storage"


class StorageFull(StorageError):
    """The disk is full."""

    code = "storage_full"


class StateMissing(StorageError):
    """The state database is gone from where an agentd has worked."""

    code = "state_missing"
    exit_code = 78


class StorageCorrupt(StorageError):
    """A database file cannot be read."""

    code = "storage_corrupt"


class WorkspaceError(AgentdError):
    """A file of the workspace cannot be used."""

    code = "workspace"


class PathRefused(WorkspaceError):
    """The path is not one that may be used here."""

    code = "path_refused"


class FileMissing(WorkspaceError):
    """There is no such file."""

    code = "file_missing"


class ScopeMissing(FileMissing):
    """A folder or file of `read_scopes` or `extra_paths` is not there."""


class FileUnreadable(WorkspaceError):
    """The file cannot be read."""

    code = "file_unreadable"


class EditConflict(WorkspaceError):
    """The file changed since it was read."""

    code = "edit_conflict"


class BudgetReached(AgentdError):
    """A spending limit would be passed."""

    code = "budget"


class EmbedderFault(AgentdError):
    """Texts could not be turned into vectors."""

    code = "embedder"


class FactsOff(AgentdError):
    """Facts are asked for where the configuration switches them off."""

    code = "facts_off"


class GraphOff(AgentdError):
    """The concept graph is asked where the configuration switches it off."""

    code = "graph_off"


class GraphError(AgentdError):
    """A label or a text of the concept graph cannot be used.

    `line` and `column` count from 1 and stand before the message; 0 where there is no such place.
    """

    code = "graph"

    def __init__(
        self, message: str = "", *, cure: str = "", line: int = 0, column: int = 0
    ) -> None:
        place = f"line {line}" if line else ""
        if line and column:
            place += f", column {column}"
        super().__init__(f"{place}: {message}" if place and message else message, cure=cure)
        self.line = line
        self.column = column


class QueryError(GraphError):
    """A question to the graph is not in its language."""

    code = "graph_query"


class ZeroError(GraphError):
    """A `.0` text cannot be read, or its graph cannot be run."""

    code = "zero"


class ToolFailed(AgentdError):
    """The tool refused."""

    code = "tool_failed"


class ProviderError(AgentdError):
    """The model's service failed.

    `kind` is the exact outcome, a word of the table in docs/providers.md (for example `auth`,
    `rate_limited`, `overloaded`, `timeout`, `stream_cut`). `retryable` says whether the same
    request may succeed later, `retry_after` how many seconds the service asked to wait. `away` says
    that the service, or the way to it, is out of order or overloaded: a message can wait for its
    return. `usage` is what the failed call has used all the same; None if the service had not begun
    to answer.
    """

    code = "provider"

    def __init__(
        self,
        message: str = "",
        *,
        cure: str = "",
        kind: str = "unknown",
        retryable: bool = False,
        retry_after: float | None = None,
        away: bool = False,
    ) -> None:
        super().__init__(message, cure=cure)
        self.kind = kind
        self.away = away
        self.retryable = retryable
        self.retry_after = retry_after
        self.usage: Usage | None = None

    @property
    def is_unsent(self) -> bool:
        """Whether the call was never made: the breaker is open, or a budget is used up."""
        return self.kind in ("breaker_open", "budget")

    @property
    def reason(self) -> str:
        """`provider_` and the kind."""
        return f"provider_{self.kind}"


class ContextOverflow(ProviderError):
    """The prompt does not fit the model's window."""

    def __init__(self, message: str = "", *, cure: str = "") -> None:
        super().__init__(message, cure=cure, kind="overflow")
