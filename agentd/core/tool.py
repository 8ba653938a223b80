"""The values of a tool call, from request to result."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from agentd.core.links import KnownText
from agentd.core.message import JsonObject
from agentd.core.turn import Origin, SessionKey, SessionKind

Permission = Literal["ask", "allow", "deny"]
"""What the configuration says of calls of a tool: each is asked about, none, or there is no such
tool.
"""


class ToolCall(Struct, frozen=True):
    """One call, with all that the tool may know about the turn it runs in.

    `tainted`: text from outside is in the turn's prompt. `careful`: the user wants to be asked
    before every file change. `approved`: the user has approved what this call is about to do.
    `known` holds the texts whose addresses `web_fetch` may open in a tainted turn; empty for other
    tools.
    """

    id: str
    name: str
    input: JsonObject
    session: SessionKey
    kind: SessionKind
    origin: Origin
    tainted: bool = False
    careful: bool = False
    approved: bool = False
    known: tuple[KnownText, ...] = ()


class FileAction(StrEnum):
    """How a file is changed."""

    WRITE = "write"  # the whole content is replaced
    APPEND = "append"  # bytes are added at the end
    DELETE = "delete"  # the file is deleted


class FileIntent(Struct, frozen=True):
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


class Intent(Struct, frozen=True):
    """What a call is about to do; stored durably before the call does it."""

    call: ToolCall
    file: FileIntent | None = None


class ToolOutput(Struct, frozen=True):
    """The result of a tool call.

    `tainted` marks text that is neither the owner's nor from the owner's own notes; it taints the
    turn from then on. `is_repetition`: nothing was done, because the same had been done before.
    """

    text: str
    is_error: bool = False
    tainted: bool = False
    is_repetition: bool = False


class Approval(Struct, frozen=True):
    """A question to the user before an effect, bound to the exact bytes by `digest`.

    `path` with `old_text` and `new_text` make a diff for the client. `scope` is what a lasting
    approval covers: "once" is only this effect, and no lasting approval is offered; any other scope
    covers all later questions of that scope in this session. `warnings` are shown with the
    question.
    """

    title: str
    digest: str
    path: str = ""
    old_text: str | None = None
    new_text: str | None = None
    scope: str = "once"
    warnings: tuple[str, ...] = ()


class Decision(StrEnum):
    """The user's answer to an Approval."""

    DENY = "deny"
    UNASKED = "unasked"  # counts as a no: nobody could be asked
    ONCE = "once"  # this very change
    ALWAYS = "always"  # this change and later ones of the same scope in this session


class OpenCall(Struct, frozen=True):
    """A tool call without a result, found after a restart. `intent` is None when it had not
    begun.
    """

    turn_id: int
    call_id: str
    intent: Intent | None
