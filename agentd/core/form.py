"""Forms: a few values that a tool server asks the owner for in the middle of a call."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from agentd.core.message import JsonObject


class InputForm(Struct, frozen=True):
    """A form to be filled in. `asker` is the configured name of the server, `message` its words
    (text from outside), `schema` the JSON Schema of a flat object.
    """

    asker: str
    message: str
    schema: JsonObject


class FormAction(StrEnum):
    """What the owner did with a form."""

    ACCEPT = "accept"
    DECLINE = "decline"  # the owner does not want to say
    CANCEL = "cancel"  # he closed the form
    UNASKED = "unasked"  # nobody could be asked


class FormAnswer(Struct, frozen=True):
    """The owner's answer; `content` holds the values if he accepted."""

    action: FormAction
    content: Mapping[str, Any] = field(default_factory=dict)


UNASKED = FormAnswer(FormAction.UNASKED)
