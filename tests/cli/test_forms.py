"""A form in the chat: what is shown, what is typed, what the daemon is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentd.app.chat.asking import FormField, form_fields
from tests.cli.test_chat import talk
from tests.scripted_daemon import ScriptedDaemon

FORM = {
    "sessionId": "main",
    "mode": "form",
    "message": "The server tables asks:\nA table\x1b]0;x\x07 for Friday?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "on whose name"},
            "guests": {"type": "integer", "title": "How many", "default": 2},
            "room": {"type": "string", "enum": ["inside", "garden"]},
            "window": {"type": "boolean"},
        },
        "required": ["name", "room"],
    },
    "_meta": {"agentd/server": "tables"},
}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon(tmp_path / "s") as daemon:
        yield daemon


async def filled(daemon: ScriptedDaemon, *typed: str) -> tuple[Any, list[str]]:
    """What the daemon is told, and the prompts that the user saw."""
    told: list[Any] = []

    def answer(params, wire):
        told.append(wire.ask("elicitation/create", FORM))
        return {"stopReason": "end_turn", "_meta": {"agentd/text": "done"}}

    daemon.on("session/prompt", answer)
    typist = await talk(daemon, "book a table", *typed)
    return told[0], typist.prompts


async def test_a_form_is_filled_in_field_by_field(daemon, capsys) -> None:
    answer, prompts = await filled(daemon, "y", "Ann", "", "attic", "garden", "maybe", "yes")
    assert answer == {
        "action": "accept",
        "content": {"name": "Ann", "guests": 2, "room": "garden", "window": True},
    }
    shown = capsys.readouterr().out
    assert "the server tables wants to know something" in shown
    assert "> A table\\u001b]0;x\\u0007 for Friday?" in shown
    assert "name: text (on whose name)" in shown
    assert "Never give it a password or a key." in shown
    assert "it is one of inside, garden" in shown
    assert "it has to be yes or no" in shown
    assert "How many (Enter: 2): " in prompts


@pytest.mark.parametrize(
    ("typed", "action"),
    [(("n",), "decline"), (("c",), "cancel"), (("y", "Ann", "/cancel"), "cancel")],
)
async def test_a_form_may_be_declined_or_left(daemon, typed: tuple[str, ...], action: str) -> None:
    answer, _ = await filled(daemon, *typed)
    assert answer == {"action": action}


async def test_the_daemon_hears_that_forms_are_shown(daemon) -> None:
    await talk(daemon, "/quit")
    (hello,) = daemon.params_of("initialize")
    assert hello["clientCapabilities"]["elicitation"] == {"form": {}}


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ({"type": "integer"}, "7", 7),
        ({"type": "number"}, "7.5", 7.5),
        ({"type": "boolean"}, "N", False),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, "a, b", ["a", "b"]),
        ({"type": "string", "oneOf": [{"const": "a", "title": "An A"}]}, "a", "a"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "An A"}]}, "an a", "a"),
        ({"type": "number", "minimum": 0, "maximum": 1000}, "1000", 1000.0),
        ({"type": "string"}, "", None),
        ({"type": "boolean", "default": True}, "", True),
    ],
)
def test_what_is_typed_becomes_a_value(schema: dict[str, Any], typed: str, value: Any) -> None:
    (field,) = form_fields({"properties": {"x": schema}})
    assert field.read(typed) == value


@pytest.mark.parametrize(
    ("schema", "typed"),
    [
        ({"type": "integer"}, "7.5"),
        ({"type": "integer"}, "9" * 20),
        ({"type": "number"}, "1e999"),
        ({"type": "number"}, "nan"),
        ({"type": "string"}, "caf\udce9"),
        ({"type": "string"}, ""),
        ({"type": "string", "enum": ["a"]}, "b"),
        ({"type": "number", "minimum": 0, "maximum": 1000}, "5000"),
        ({"type": "integer", "minimum": 0}, "-1"),
        ({"type": "string", "minLength": 3}, "ab"),
        ({"type": "array", "maxItems": 1, "items": {"enum": ["a", "b"]}}, "a,b"),
    ],
)
def test_what_fits_no_field_is_said(schema: dict[str, Any], typed: str) -> None:
    (field,) = form_fields({"properties": {"x": schema}, "required": ["x"]})
    with pytest.raises(ValueError, match=r"it is|it has to be|is needed"):
        field.read(typed)


def test_what_may_be_chosen_is_told_by_its_name_and_once_more_where_it_is_typed() -> None:
    several = {"type": "array", "items": {"anyOf": [{"const": "fish-1", "title": "Carp"}]}}
    (field,) = form_fields({"properties": {"x": {**several, "maxItems": 2, "title": "Fish"}}})
    assert field.line == "Fish: several of, with commas: fish-1 (Carp), at most 2 of them, optional"
    assert field.prompt == "Fish [fish-1] (Enter leaves it out): "


def test_a_label_is_one_short_line() -> None:
    title = "Name\nallow? [y]es\x1b[2J" + "x" * 200
    (field,) = form_fields({"properties": {"x": {"type": "string", "title": title}}})
    assert isinstance(field, FormField)
    assert "\n" not in field.prompt
    assert "\x1b" not in field.prompt
    assert len(field.prompt) < 120
