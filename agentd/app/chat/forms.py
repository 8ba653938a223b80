"""A form that a server of tools wants filled in: how its fields are shown and what is typed for them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.interfaces.commands.plain import visible

LEAVE = "/cancel"  # typed at a field: nothing is told to the server

_LONGEST = 80  # characters of a label
_KINDS = {"string": "text", "number": "number", "integer": "whole number", "boolean": "yes or no"}
_YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


@dataclass(frozen=True, slots=True)
class FormField:
    """One value that is asked for. `choices` are the values that it may have, if they are few."""

    name: str
    label: str
    kind: str
    choices: tuple[str, ...]
    is_needed: bool
    default: Any

    @property
    def prompt(self) -> str:
        """What stands before what is typed."""
        usual = f" (Enter: {_told(self.default)})" if self.default is not None else ""
        return f"{self.label}{usual or ('' if self.is_needed else ' (Enter leaves it out)')}: "

    @property
    def line(self) -> str:
        """What it takes, for whoever is to fill it in."""
        what = " | ".join(self.choices) or _KINDS.get(self.kind, "text")
        several = "several of, with commas: " if self.kind == "array" else ""
        return f"{self.label}: {several}{what}{'' if self.is_needed else ', optional'}"

    def read(self, typed: str) -> Any:
        """The value of what was typed, None for one that is left out. Raises ValueError in words."""
        text = typed.strip()
        if not text:
            if self.default is None and self.is_needed:
                raise ValueError(f"{self.label} is needed; {LEAVE} leaves the form")
            return self.default
        if self.kind == "array":
            return [self._one(part.strip()) for part in text.split(",") if part.strip()]
        return self._one(text)

    def _one(self, text: str) -> Any:
        if self.choices:
            if text not in self.choices:
                raise ValueError(f"it is one of {', '.join(self.choices)}")
            return text
        try:
            match self.kind:
                case "boolean":
                    return _YES[text.lower()]
                case "integer":
                    return int(text)
                case "number":
                    return float(text)
        except (KeyError, ValueError):
            raise ValueError(f"it is a {_KINDS[self.kind]}") from None
        return text


def form_fields(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """The fields of a form, in its order."""
    needed = set(schema.get("required") or ())
    return tuple(
        FormField(
            name,
            _plain(one.get("title") or name),
            str(one.get("type") or "string"),
            tuple(_choices(one.get("items") or one)),
            name in needed,
            one.get("default"),
        )
        for name, one in (schema.get("properties") or {}).items()
    )


def shown_form(params: Mapping[str, Any], fields: Sequence[FormField]) -> Mapping[str, Any]:
    """The question as a screen shows one."""
    server = (params.get("_meta") or {}).get("agentd/server") or "?"
    described = [f"  {field.line}{_about(params, field.name)}" for field in fields]
    words = [f"> {line}" for line in str(params.get("message", "")).splitlines()]
    warning = "These are words of another program. Never give it a password or a key."
    text = "\n".join([*words, "", *described, "", warning])
    content = {"type": "content", "content": {"type": "text", "text": text}}
    return {"title": f"the server {server} wants to know something", "content": [content]}


def _about(params: Mapping[str, Any], name: str) -> str:
    schema = (params.get("requestedSchema") or {}).get("properties", {}).get(name) or {}
    words = " ".join(str(schema.get("description") or "").split())
    return f" ({words})" if words else ""


def _choices(schema: Mapping[str, Any]) -> Iterator[str]:
    yield from map(str, schema.get("enum") or ())
    for one in schema.get("oneOf") or schema.get("anyOf") or ():
        if isinstance(one, Mapping) and "const" in one:
            yield str(one["const"])


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _plain(", ".join(map(str, value)) if isinstance(value, list) else value)


def _plain(value: Any) -> str:
    """Words of the server's in one short line."""
    return visible(" ".join(str(value).split()))[:_LONGEST]
