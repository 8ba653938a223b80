"""What a running turn tells those who watch it: a closed set of frozen events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agentd.core.message import Image, JsonObject
from agentd.core.turn import SessionKey, Turn


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The turn's place in the queue has come; `text` and `images` are the user's message."""

    session: SessionKey
    message_id: str
    text: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Words of the answer, as they come."""

    session: SessionKey
    text: str


@dataclass(frozen=True, slots=True)
class ThoughtChunk:
    """Words the model thinks."""

    session: SessionKey
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """A tool is about to run."""

    session: SessionKey
    call_id: str
    name: str
    title: str
    kind: str  # of the Agent Client Protocol: read, edit, search, other …
    input: JsonObject


@dataclass(frozen=True, slots=True)
class ToolCallEnded:
    """A tool has answered."""

    session: SessionKey
    call_id: str
    name: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class ToolCallAdvanced:
    """A tool that takes long says how far it is."""

    session: SessionKey
    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerRetracted:
    """The words shown since the last tool call were cut by a fault and are not stored."""

    session: SessionKey
    reason: str


@dataclass(frozen=True, slots=True)
class AnswerDelayed:
    """The model could not be asked; the next try comes in `seconds`. `text` says why in a sentence."""

    session: SessionKey
    reason: str
    text: str
    seconds: float


@dataclass(frozen=True, slots=True)
class AnswerWaits:
    """The message waits until the model's service is back, at most `until`; the next try comes in
    `seconds`. `text` says so in sentences; `is_new` where it has not been said of this message.
    """

    session: SessionKey
    reason: str
    text: str
    seconds: float
    until: datetime
    is_new: bool


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something the user should know: a compaction, an alert, a recovery."""

    session: SessionKey
    text: str
    tag: str


@dataclass(frozen=True, slots=True)
class FactsChanged:
    """What is known about the user has changed by what was said here. `text` says it in one line;
    `changes` are objects `{op, id, text, old}`, `old` the sentences that hold no longer.
    """

    session: SessionKey
    text: str
    changes: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over, one way or the other."""

    session: SessionKey
    turn: Turn


TurnEvent = (
    TurnStarted
    | TextChunk
    | ThoughtChunk
    | ToolCallStarted
    | ToolCallAdvanced
    | ToolCallEnded
    | AnswerRetracted
    | AnswerDelayed
    | AnswerWaits
    | Noticed
    | FactsChanged
    | TurnEnded
)
