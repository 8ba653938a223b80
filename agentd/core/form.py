"""What a program of others asks of the owner in the middle of a call: a few values, in a form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentd.core.message import JsonObject


@dataclass(frozen=True, slots=True)
class InputForm:
    """The question. `asker` is the name of the server as it is configured, `message` its words, which are
    text from outside, `schema` a JSON Schema of an object without nesting.
    """

    asker: str
    message: str
    schema: JsonObject


class FormAction(StrEnum):
    """What became of it."""

    ACCEPT = "accept"
    DECLINE = "decline"  # the owner does not want to say
    CANCEL = "cancel"  # he has left it
    UNASKED = "unasked"  # nobody was there who could have been asked


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """What the owner says; `content` holds the values where he has accepted."""

    action: FormAction
    content: Mapping[str, Any] = field(default_factory=dict)


UNASKED = FormAnswer(FormAction.UNASKED)
