"""The input and output of a provider: prompts, tool specs, and the events of an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum, StrEnum, auto

from msgspec import Struct

from agentd.core.message import JsonObject, Message
from agentd.core.turn import Origin, Usage


class Effect(StrEnum):
    """What may have happened when a crash interrupted a tool."""

    READ_ONLY = "read_only"  # nothing; run it again
    IDEMPOTENT = "idempotent"  # running it twice does no harm; run it again
    FILE = "file"  # a file of ours; the recorded hashes tell
    EXTERNAL = "external"  # unknown; never run it again


class ToolSpec(Struct, frozen=True):
    """The description of a tool for the model and the engine."""

    name: str
    description: str
    input_schema: JsonObject  # JSON Schema, `additionalProperties: false`
    effect: Effect
    kind: str = "other"  # what clients show beside a call, a word of ACP: read, edit, …
    short_schema: JsonObject | None = None  # sent in light prompts; calls are still checked in full
    asks: bool = False  # each call needs the owner's approval, where he can be asked
    is_guarded: bool = False  # handles taint itself: marks what it writes, or asks for approval
    is_owners: bool = False  # groups and isolated sessions do not have it


class Rank(IntEnum):
    """The order of parts in the system prompt, after agentd's own instructions
    (`core/prompts/system.md`, in beats `light.md`). It is decided here alone: move a line to move a
    part. `engine/context.py` sorts, whatever the order in which parts arrive, and puts the messages
    behind them. The most stable parts come first, so that a provider's cache covers as much as
    possible.
    """

    FILES = auto()  # workspace/injection.py; among themselves in the order of `[workspace] order`
    DAILY_NOTES = auto()  # workspace/injection.py
    MISSING_FILES = auto()  # the names of files that are expected and not there: the same module
    FACTS = auto()  # what is known of the user: memory/facts/facts_in_prompt.py
    OTHER = auto()  # blocks without a rank of their own
    TOOL_SERVERS = auto()  # what tool servers say about themselves: interfaces/mcp/mcp_source.py


class ContextBlock(Struct, frozen=True):
    """Text for a prompt. Stable blocks go into the system prompt in order of `rank`; volatile ones
    go before the user's words in the last message and are never stored.
    """

    text: str
    stable: bool = True
    rank: Rank = Rank.OTHER


class Prompt(Struct, frozen=True):
    """One request to a model.

    `system` are sections in order, the most stable first. `cached_messages` is the number of
    leading `messages` that stay the same in the next turn: a provider that caches sets its
    breakpoint there. With `may_call` False the model must not call tools any more; `tools` are
    still sent because the messages contain calls of them.
    """

    system: tuple[str, ...]
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    may_call: bool = True
    cached_messages: int = 0
    model: str | None = None
    effort: str = ""  # reasoning effort; "" leaves it to the configuration
    max_tokens: int | None = None
    origin: Origin = Origin.USER


class ModelStop(StrEnum):
    """Why the model stopped."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    PAUSE = "pause_turn"  # the service wants the message sent back unchanged, to continue


class AnswerBegun(Struct, frozen=True):
    """The service has begun to answer, so it has counted the prompt whatever comes of the call.
    Only code that keeps account of calls needs this event.
    """


class TextDelta(Struct, frozen=True):
    """More words."""

    text: str


class ThoughtDelta(Struct, frozen=True):
    """More thinking."""

    text: str


class StreamRestarted(Struct, frozen=True):
    """All events so far are void: the call is repeated (by a retry or a fallback)."""

    reason: str


class RetryScheduled(Struct, frozen=True):
    """The call failed and is repeated in `seconds`. `text` gives the reason in a sentence for
    people.
    """

    reason: str
    text: str
    seconds: float


class AnswerCompleted(Struct, frozen=True):
    """The whole answer; always the last event of a stream, and the only one that may be stored.

    `provider` names the provider that understands the message's opaque blocks. `reservation` is the
    ledger's reservation for the call, to be passed to `Ledger.charge`.
    """

    message: Message
    stop: ModelStop
    usage: Usage
    model: str
    provider: str
    reservation: int | None = None


ProviderEvent = (
    AnswerBegun | TextDelta | ThoughtDelta | StreamRestarted | RetryScheduled | AnswerCompleted
)


@asynccontextmanager
async def closing(
    events: AsyncIterator[ProviderEvent],
) -> AsyncIterator[AsyncIterator[ProviderEvent]]:
    """Return a context manager over the events that ends the call behind them however the block is
    left.
    """
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()
