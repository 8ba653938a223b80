"""Turns: the request, the session it belongs to, its state, and its result."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NewType

from msgspec import Struct

from agentd.core.errors import AgentdError
from agentd.core.message import (
    BY_OTHERS,
    BY_OWNER,
    Block,
    Image,
    JsonObject,
    TextSource,
    Writer,
    spoken,
)
from agentd.core.spans import Spans

SessionKey = NewType("SessionKey", str)
MAIN = SessionKey("main")
OTHERS = "*"
DELETED = SessionKey("deleted")  # the costs of deleted sessions are added up under this name


class SessionKind(StrEnum):
    """Who can read a session."""

    OWNER = "main"  # the owner alone: `main`, `chat:*`, heartbeats; stored as `main`
    GROUP = "group"  # other people can read it
    ISOLATED = "isolated"  # a task on its own, without the owner's memory


def kind_of(key: str) -> SessionKind:
    """Return the kind of a session key. A key without a known prefix is ISOLATED, the safe
    choice.
    """
    if key == MAIN or key.startswith(("chat:", "heartbeat:")):
        return SessionKind.OWNER
    return SessionKind.GROUP if key.startswith("group:") else SessionKind.ISOLATED


class Origin(StrEnum):
    """Why a turn runs or a model is called."""

    USER = "user"
    HEARTBEAT = "heartbeat"
    FLUSH = "flush"
    SUMMARY = "summary"
    EXTRACTION = "extraction"
    FORGETTING = "forgetting"
    JOB = "job"
    EMBEDDING = "embedding"  # no turn: a service computes vectors

    @property
    def is_silent(self) -> bool:
        """Whether the user does not see what runs: nobody can be shown or asked anything."""
        return self is not Origin.USER


class PromptScope(StrEnum):
    """How much of the conversation a silent turn's prompt includes."""

    SESSION = "main"
    LIGHT = "light"


class StopReason(StrEnum):
    """Why a turn ended, in the terms of the Agent Client Protocol."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"


class Usage(Struct, frozen=True):
    """Tokens of one or more model calls."""

    input_tokens: int = 0  # neither read from nor written to a cache
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """The size of the prompt: all tokens that the model read."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def total_tokens(self) -> int:
        """All tokens read and written."""
        return self.prompt_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Add two usages."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    def as_json(self) -> dict[str, int]:
        """Return the token counts as commands print them."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "total_tokens": self.total_tokens,
        }


class TurnRequest(Struct, frozen=True):
    """A request for one turn.

    `message_id` is chosen by the sender: a repeated id never runs the turn twice. `tools` limits
    the tools to those names; None means all that the session's kind allows. The name OTHERS stands
    for all tools that other programs and the web offer to such a turn.
    """

    session: SessionKey
    text: str
    message_id: str
    origin: Origin = Origin.USER
    context: PromptScope = PromptScope.SESSION
    model: str | None = None
    tools: frozenset[str] | None = None
    client: str = ""  # the sending client's own name; alerts go to the client used last
    images: tuple[Image, ...] = ()
    quoted: Spans = ()  # spans of `text` that its sender marked as not his own words
    patience: timedelta = timedelta(0)  # how long to wait for a service that is away

    @property
    def is_silent(self) -> bool:
        """Whether the turn is one that nobody sees."""
        return self.origin.is_silent

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The message as it is stored."""
        return spoken(self.text, self.images, self.quoted)

    @property
    def source(self) -> TextSource:
        """Who wrote the message: agentd itself for silent turns, the owner in his own sessions,
        others elsewhere. A silent turn's message is tainted if it quotes something.
        """
        if self.is_silent:
            return TextSource(Writer.AGENT, tainted=bool(self.quoted))
        return BY_OWNER if self.kind is SessionKind.OWNER else BY_OTHERS

    @property
    def kind(self) -> SessionKind:
        """The session's kind."""
        return kind_of(self.session)


class TurnState(StrEnum):
    """The state of a turn in the inbox."""

    RECEIVED = "received"  # durable, waiting in the queue
    RUNNING = "running"  # its user row is in the transcript
    WAITING = "waiting"  # as RUNNING, but put aside until the model's service is back
    DONE = "done"  # ended with a stop reason
    FAILED = "failed"  # ended with an error; a notice row says which


class Failure(Struct, frozen=True):
    """An error in the form in which it is stored and shown: no exception text, no code paths."""

    code: str
    message: str
    cure: str = ""

    @classmethod
    def of(cls, error: AgentdError) -> Failure:
        """Convert an error."""
        return cls(error.reason, error.message, error.cure)


class FinishedCall(Struct, frozen=True):
    """A finished tool call of a turn; `is_repetition` as in ToolOutput."""

    id: str
    name: str
    input: JsonObject
    is_error: bool
    is_repetition: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the shape in stored turns and in answers."""
        return {
            "id": self.id,
            "name": self.name,
            "input": dict(self.input),
            "is_error": self.is_error,
            "is_repetition": self.is_repetition,
        }


class Turn(Struct, frozen=True):
    """A turn that has ended."""

    session: SessionKey
    message_id: str
    text: str = ""  # the last assistant message's words
    stop_reason: StopReason | None = None  # None when it failed
    usage: Usage = Usage()
    tool_calls: tuple[FinishedCall, ...] = ()  # in order
    failure: Failure | None = None
    cost_usd: float = 0.0  # 0 for models without a price
    context_tokens: int = 0  # of the last call with its answer
    tainted: bool = False  # text from outside had a part in it

    def as_json(self) -> dict[str, Any]:
        """Return the shape of `agentd send --json`."""
        return {
            "session": self.session,
            "message_id": self.message_id,
            "text": self.text,
            "stop_reason": self.stop_reason,
            "usage": self.usage.as_json(),
            "tool_calls": [call.as_json() for call in self.tool_calls],
            "cost_usd": self.cost_usd,
        }


class Receipt(Struct, frozen=True):
    """Proof that a request is stored durably.

    `turn_id` identifies the turn in inbox and journal; later turns have higher ones. `ended` holds
    the stored result if the message id was known and its turn has ended. `redacted` counts the keys
    in the text that were masked.
    """

    turn_id: int
    session: SessionKey
    message_id: str
    ended: Turn | None = None
    redacted: int = 0
    at: datetime | None = None  # when it was received; None for one that had ended


class PendingTurn(Struct, frozen=True):
    """An unfinished turn, found after a restart."""

    turn_id: int
    request: TurnRequest
    state: TurnState
    attempts: int  # how often it has begun
    redacted: int = 0  # number of keys in its text that were masked
    at: datetime | None = None  # when it was received

    @property
    def receipt(self) -> Receipt:
        """The receipt that the request got when it was stored."""
        request = self.request
        return Receipt(
            self.turn_id,
            request.session,
            request.message_id,
            redacted=self.redacted,
            at=self.at,
        )
