"""A tool call from request to result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from agentd.core.links import KnownText
from agentd.core.message import JsonObject
from agentd.core.turn import Kind, Origin, SessionKey

Permission = Literal["ask", "allow", "deny"]
"""What the configuration says of calls of a tool: each is asked about, none, or there is no such tool."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call, with all that a tool may know about the turn it runs in.

    `tainted` says that text from outside is in this turn's prompt; `careful` that the user wants to be
    asked before every file change; `approved` that he has said yes to what this call is about to do.
    `known` has the texts whose addresses `web_fetch` may open in a tainted turn; for others it is empty.
    """

    id: str
    name: str
    input: JsonObject
    session: SessionKey
    kind: Kind
    origin: Origin
    tainted: bool = False
    careful: bool = False
    approved: bool = False
    known: tuple[KnownText, ...] = ()


class FileAction(StrEnum):
    """How a file is changed."""

    WRITE = "write"  # the whole content is replaced
    APPEND = "append"  # bytes are added at the end
    DELETE = "delete"  # it goes away


@dataclass(frozen=True, slots=True)
class FileIntent:
    """A change to one workspace file, exact enough to tell after a crash whether it happened.

    `before` and `after` are SHA-256 hex digests of the whole file, "" for an absent one. An append
    also carries where it starts and how long it is; `data` are the bytes to write (the whole new
    file, or the appended part).
    """

    path: str  # relative to the workspace
    action: FileAction
    before: str
    after: str
    data: bytes
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Intent:
    """What a call is about to do, made durable before it does it."""

    call: ToolCall
    file: FileIntent | None = None


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool answers.

    `tainted` marks text that did not come from the owner or the owner's own notes; from then on the
    turn is tainted. `is_repetition` says that nothing was done, since the same had been done before.
    """

    text: str
    is_error: bool = False
    tainted: bool = False
    is_repetition: bool = False


@dataclass(frozen=True, slots=True)
class Approval:
    """A question to the user before an effect, bound to the exact bytes by `digest`.

    `path` with `old_text` and `new_text` make a diff for the client. `scope` is what a lasting
    yes covers: nothing more than this ("once"), or all later questions of the same scope in this
    session; a lasting yes is offered for the latter only. `warnings` are shown with the question.
    """

    title: str
    digest: str
    path: str = ""
    old_text: str | None = None
    new_text: str | None = None
    scope: str = "once"
    warnings: tuple[str, ...] = ()


class Decision(StrEnum):
    """What the user answers to an Approval."""

    DENY = "deny"
    UNASKED = "unasked"  # a no, since nobody was there to be asked
    ONCE = "once"  # this very change
    ALWAYS = "always"  # and what later questions of the same scope ask in this session


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without a result, as a restart finds it. `intent` is None when nothing had begun."""

    turn_id: int
    call_id: str
    intent: Intent | None
