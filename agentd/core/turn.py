"""What goes into a turn and what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NewType

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
DELETED = SessionKey("deleted")  # under this name the costs of deleted sessions are added up


class Kind(StrEnum):
    """Who can read along in a session."""

    MAIN = "main"  # the owner alone: `main`, `chat:*`, heartbeats
    GROUP = "group"  # others read along
    ISOLATED = "isolated"  # a task on its own, without the owner's memory


def kind_of(key: str) -> Kind:
    """The kind that a session key says. Keys without a known prefix are isolated, the safe side."""
    if key == MAIN or key.startswith(("chat:", "heartbeat:")):
        return Kind.MAIN
    return Kind.GROUP if key.startswith("group:") else Kind.ISOLATED


class Origin(StrEnum):
    """Why a turn runs, or a model is asked."""

    USER = "user"
    HEARTBEAT = "heartbeat"
    FLUSH = "flush"
    SUMMARY = "summary"
    EXTRACTION = "extraction"
    FORGETTING = "forgetting"
    JOB = "job"
    EMBEDDING = "embedding"  # no turn: a service makes vectors


class Context(StrEnum):
    """How much of the conversation a silent turn sees."""

    SESSION = "main"
    LIGHT = "light"


class StopReason(StrEnum):
    """Why a turn ended, in the words of the Agent Client Protocol."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls."""

    input_tokens: int = 0  # not read from or written to a cache
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def context_tokens(self) -> int:
        """All the model read: the size of the prompt."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def total_tokens(self) -> int:
        """Everything read and written."""
        return self.context_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    def as_json(self) -> dict[str, int]:
        """The shape that commands print."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "total_tokens": self.total_tokens,
        }


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One thing somebody wants answered.

    `message_id` is the sender's own name for it: repeating it never runs the turn twice.
    `tools` narrows the tools to those names; None means all that the session's kind allows. The name
    OTHERS stands for all that programs of others and the web offer to such a turn.
    """

    session: SessionKey
    text: str
    message_id: str
    origin: Origin = Origin.USER
    context: Context = Context.SESSION
    model: str | None = None
    tools: frozenset[str] | None = None
    client: str = ""  # who sent it, as it named itself: the owner's last used client gets alerts
    images: tuple[Image, ...] = ()
    quoted: Spans = ()  # of `text`: what its sender marked as not his own words
    patience: timedelta = timedelta(0)  # how long it waits for a service that is away

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The message as it is stored."""
        return spoken(self.text, self.images, self.quoted)

    @property
    def source(self) -> TextSource:
        """Who wrote the message: agentd itself for silent turns, the owner in his own sessions. What a
        silent turn quotes in it comes from outside.
        """
        if self.origin is not Origin.USER:
            return TextSource(Writer.AGENT, tainted=bool(self.quoted))
        return BY_OWNER if self.kind is Kind.MAIN else BY_OTHERS

    @property
    def kind(self) -> Kind:
        """The session's kind."""
        return kind_of(self.session)


class TurnState(StrEnum):
    """Where a turn stands in the journal."""

    RECEIVED = "received"  # durable, waits for its place in the queue
    RUNNING = "running"  # its user row is in the transcript
    WAITING = "waiting"  # the same, put aside until the model's service is back
    DONE = "done"  # ended with a stop reason
    FAILED = "failed"  # ended with an error; a notice row says which


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as it is stored and told: no exception text, no code paths."""

    code: str
    message: str
    cure: str = ""

    @classmethod
    def of(cls, error: AgentdError) -> Failure:
        """The error as it is stored and told."""
        return cls(error.reason, error.message, error.cure)


@dataclass(frozen=True, slots=True)
class CallMade:
    """A tool call of a turn, once it has its result; `is_repetition` as in ToolOutput."""

    id: str
    name: str
    input: JsonObject
    is_error: bool
    is_repetition: bool = False

    def as_json(self) -> dict[str, Any]:
        """The shape in stored turns and in answers."""
        return {
            "id": self.id,
            "name": self.name,
            "input": dict(self.input),
            "is_error": self.is_error,
            "is_repetition": self.is_repetition,
        }


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that has ended."""

    session: SessionKey
    message_id: str
    seq: int  # place in the inbox
    text: str = ""  # the last assistant message's words
    stop_reason: StopReason | None = None  # None when it failed
    usage: Usage = Usage()
    tool_calls: tuple[CallMade, ...] = ()  # in order
    failure: Failure | None = None
    cost_usd: float = 0.0  # 0 for models without a price
    context_tokens: int = 0  # of the last call with its answer
    tainted: bool = False  # text from outside had a part in it

    def as_json(self) -> dict[str, Any]:
        """The shape of `agentd send --json`."""
        return {
            "session": self.session,
            "message_id": self.message_id,
            "text": self.text,
            "stop_reason": self.stop_reason,
            "usage": self.usage.as_json(),
            "tool_calls": [call.as_json() for call in self.tool_calls],
            "cost_usd": self.cost_usd,
        }


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a request is durable.

    `turn_id` names it everywhere in the journal. `is_new` is False when the message id was known;
    then `ended` holds the stored outcome if there is one. `redacted` counts the keys in its text that
    were not kept.
    """

    turn_id: int
    session: SessionKey
    message_id: str
    seq: int
    is_new: bool
    ended: Turn | None = None
    redacted: int = 0
    at: datetime | None = None  # when it was received; None for one that had ended


@dataclass(frozen=True, slots=True)
class PendingTurn:
    """A turn that a restart found unfinished."""

    turn_id: int
    request: TurnRequest
    seq: int
    state: TurnState
    attempts: int  # how often it has begun
    redacted: int = 0  # keys of its text that were not kept
    at: datetime | None = None  # when it was received

    @property
    def receipt(self) -> Receipt:
        """What its request was told when it was stored."""
        request = self.request
        return Receipt(
            self.turn_id,
            request.session,
            request.message_id,
            self.seq,
            is_new=False,
            redacted=self.redacted,
            at=self.at,
        )
