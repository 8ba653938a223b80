"""What a provider is given and what it gives back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import IntEnum, StrEnum, auto

from agentd.core.message import JsonObject, Message
from agentd.core.turn import Origin, Usage


class Effect(StrEnum):
    """What may have happened when a tool was cut by a crash."""

    READ_ONLY = "read_only"  # nothing: run it again
    IDEMPOTENT = "idempotent"  # the same thing once or twice: run it again
    FILE = "file"  # our own file: the recorded hashes tell
    EXTERNAL = "external"  # unknown: never run again


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model and the engine know it."""

    name: str
    description: str
    input_schema: JsonObject  # JSON Schema, `additionalProperties: false`
    effect: Effect
    kind: str = "other"  # of the Agent Client Protocol: read, edit, search, think, other
    short_schema: JsonObject | None = None  # told in light prompts; the whole one is checked
    asks: bool = False  # each call needs the yes of the owner, where he is there
    is_guarded: bool = False  # in a tainted turn it marks what it makes, or asks for it by itself
    is_owners: bool = False  # groups and isolated sessions do not have it


class Rank(IntEnum):
    """The order of the system prompt, behind agentd's own instructions: move a line, and that part moves.

    What changes least comes first, so that a provider's cache holds for as much as possible.
    """

    FILES = auto()  # of the workspace; among themselves in the order of `[workspace] order`
    DAILY_NOTES = auto()
    MISSING_FILES = auto()  # the names of files that are expected and not there
    FACTS = auto()  # what is known of the user
    OTHER = auto()  # blocks that ask for no place of their own
    TOOL_SERVERS = auto()  # what servers of tools say of themselves


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """Text for a prompt. Stable blocks go into the system prompt in order of `rank`; volatile ones
    stand before the user's words in the last message and are never stored.
    """

    text: str
    stable: bool = True
    rank: Rank = Rank.OTHER


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a model.

    `system` are sections in order, the most stable first. `cached_messages` is how many of the
    first `messages` stay the same in the next turn: a provider that caches sets its breakpoint there.
    Where the model `may_call` none of the `tools` any more, they are told because it has called some.
    """

    system: tuple[str, ...]
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    may_call: bool = True
    cached_messages: int = 0
    model: str | None = None
    effort: str = ""  # how much to think; "" leaves it to the configuration
    max_tokens: int | None = None
    origin: Origin = Origin.USER


class ModelStop(StrEnum):
    """Why the model stopped."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    PAUSE = "pause_turn"  # the service wants the message back as it is, to go on


@dataclass(frozen=True, slots=True)
class Begun:
    """The service has begun to answer: it has counted the prompt, whatever comes of the call. What keeps
    account of calls takes it; nobody else need.
    """


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More words."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """More thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """What came so far is void: the call is made again (by a retry or a fallback)."""

    reason: str


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The call has failed and is made again in `seconds`. `text` says why in a sentence for people."""

    reason: str
    text: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Answered:
    """The whole answer; always the last event of a stream, and the only one that may be stored.

    `provider` is who may be sent the message's opaque blocks again. `reservation` is what the ledger
    has set aside for the call, to be given to `Ledger.charge`.
    """

    message: Message
    stop: ModelStop
    usage: Usage
    model: str
    provider: str
    reservation: int | None = None


ProviderEvent = Begun | TextDelta | ThoughtDelta | Restarted | RetryScheduled | Answered


@asynccontextmanager
async def closing(
    events: AsyncIterator[ProviderEvent],
) -> AsyncIterator[AsyncIterator[ProviderEvent]]:
    """The events; however the block is left, the call behind them is ended."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()
