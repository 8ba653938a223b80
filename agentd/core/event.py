"""The events of a running turn, for those who watch it: a closed set of frozen classes."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from agentd.core.message import Image, JsonObject
from agentd.core.turn import SessionKey, Turn


class TurnStarted(Struct, frozen=True):
    """The turn has left the queue and begun; `text` and `images` are the user's message."""

    session: SessionKey
    message_id: str
    text: str
    images: tuple[Image, ...] = ()


class TextChunk(Struct, frozen=True):
    """The next words of the answer."""

    session: SessionKey
    text: str


class ThoughtChunk(Struct, frozen=True):
    """The next words of the model's thinking."""

    session: SessionKey
    text: str


class ToolCallStarted(Struct, frozen=True):
    """A tool is about to run."""

    session: SessionKey
    call_id: str
    name: str
    title: str
    kind: str  # of the Agent Client Protocol: read, edit, search, other …
    input: JsonObject


class ToolCallEnded(Struct, frozen=True):
    """A tool has answered."""

    session: SessionKey
    call_id: str
    name: str
    text: str
    is_error: bool


class ToolCallAdvanced(Struct, frozen=True):
    """A tool that takes long reports its progress."""

    session: SessionKey
    call_id: str
    text: str


class AnswerRetracted(Struct, frozen=True):
    """The words shown since the last tool call are void: a fault cut the answer, and they are not
    stored.
    """

    session: SessionKey
    reason: str


class AnswerDelayed(Struct, frozen=True):
    """The call to the model failed; the next try comes in `seconds`. `text` gives the reason in a
    sentence.
    """

    session: SessionKey
    reason: str
    text: str
    seconds: float


class AnswerWaits(Struct, frozen=True):
    """The message waits until the model's service is back, at the latest `until`; the next try
    comes in `seconds`. `text` says so in sentences. `is_new` is True the first time this is
    reported for the message.
    """

    session: SessionKey
    reason: str
    text: str
    seconds: float
    until: datetime
    is_new: bool


class NoticeGiven(Struct, frozen=True):
    """Something the user should know: a compaction, an alert, a recovery."""

    session: SessionKey
    text: str
    tag: str


class FactsChanged(Struct, frozen=True):
    """The facts about the user have changed because of what was said in this session. `text`
    describes it in one line; `changes` are objects `{op, id, text, old}`, where `old` are the
    sentences that no longer hold.
    """

    session: SessionKey
    text: str
    changes: tuple[JsonObject, ...]


class TurnEnded(Struct, frozen=True):
    """The turn has ended, with whatever outcome."""

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
    | NoticeGiven
    | FactsChanged
    | TurnEnded
)
