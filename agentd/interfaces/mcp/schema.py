"""JSON Schemas from outside: bounded to a safe subset, and checked without executing patterns.
Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentd.core.message import JsonObject
from agentd.interfaces.tools.fence import printable

ANY: JsonObject = {"type": "object"}

_LONGEST = 16_000  # characters of one schema
_DEEPEST = 12
_FIELDS = 20  # of a form, at most
_SIMPLE = ("string", "number", "integer", "boolean")
_WORDS = 300  # characters of a description inside a schema
# The keywords that are kept. Patterns, formats and remote references are dropped: a pattern may
# take for ever to match, and a reference would be fetched.
_TABLES = frozenset({"properties", "$defs"})
_SCHEMAS = frozenset({"items", "additionalProperties"})
_CHOICES = frozenset({"anyOf", "oneOf", "allOf"})
_TEXTS = frozenset({"description", "title"})
_NUMBERS = frozenset({"minimum", "maximum"})
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength"})
# Providers refuse a tool with other field names, or with one of _INSIDE at the top of its schema.
_FIELD = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_INSIDE = ("anyOf", "oneOf", "allOf", "enum", "const", "default", "$ref")
_PLACE = re.compile(r"#/\$defs/([A-Za-z0-9_.-]{1,100})", re.ASCII)
_IS: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, Mapping),
    "array": lambda v: isinstance(v, (list, tuple)),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
}


_PLAIN: Mapping[str, Callable[[Any], Any]] = {
    "type": lambda value: _kinds(value),
    "required": lambda value: _names(value),
    "enum": lambda value: _writable(value) if isinstance(value, list) and value else None,
    "const": lambda value: _writable(value),
    "default": lambda value: _writable(value),
    "additionalProperties": lambda value: value if isinstance(value, bool) else None,
}
_KEPT = frozenset(_PLAIN) | _TABLES | _SCHEMAS | _CHOICES | _TEXTS | _NUMBERS | _COUNTS


def bound_schema(schema: Any) -> JsonObject:
    """Return the part of a tool's input schema that every provider accepts; ANY if it is no schema
    of an object or too large.
    """
    kept = _object(schema)
    return _spread(kept) if kept else ANY


def mismatch(value: Any, schema: Mapping[str, Any], name: str = "the input") -> str:
    """Return in words the first place where `value` does not fit a bounded schema; "" if it
    fits.
    """
    return next(_mismatches(value, schema, name, _DEEPEST), "")


def flat(schema: Any) -> JsonObject | None:
    """Return the bounded schema of a form: 1 to 20 fields, each a string, number, boolean or
    choice. None for any other schema.
    """
    kept = _object(schema) or {}
    fields = kept.get("properties", {})
    if not 0 < len(fields) <= _FIELDS or not all(map(_is_field, fields.values())):
        return None
    return kept


def _is_field(schema: Mapping[str, Any]) -> bool:
    if schema.get("type") == "array":
        items = schema.get("items", {})
        return items.get("type", "string") == "string" and ("enum" in items or "anyOf" in items)
    return schema.get("type") in _SIMPLE


def signature(schema: Mapping[str, Any]) -> str:
    """Return the names of a tool's parameters: `path, head?`; those with `?` are optional."""
    required = set(schema.get("required", ()))
    names = schema.get("properties", {})
    order = sorted(names, key=lambda name: name not in required)
    return ", ".join(name if name in required else f"{name}?" for name in order)


def _object(schema: Any) -> dict[str, Any] | None:
    """Return the bounded schema of an object; None if it is no such schema, or too large."""
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        return None
    kept = {**_keep_known(schema, _DEEPEST), "type": "object"}
    if names := _referenced(kept):
        kept["$defs"] = {**{name: {} for name in sorted(names)}, **kept.get("$defs", {})}
    return kept if len(json.dumps(kept)) <= _LONGEST else None


def _spread(kept: dict[str, Any]) -> JsonObject:
    """Return the schema with the fields of all its alternatives merged at the top. Fields whose
    names providers refuse are only listed in the description.
    """
    inside = {word: kept.pop(word) for word in _INSIDE if word in kept}
    parts = [part for word in sorted(_CHOICES) for part in inside.get(word, ())]
    parts += [kept.get("$defs", {})[name] for name in _referenced({"$ref": inside.get("$ref")})]
    fields = {n: one for part in (*parts, kept) for n, one in part.get("properties", {}).items()}
    named = {name: one for name, one in fields.items() if _FIELD.fullmatch(name)}
    if fields:
        kept["properties"] = named
    if parts or len(named) < len(fields):
        kept.pop("additionalProperties", None)
    if others := [name for name in fields if name not in named]:
        words = f"It also takes: {json.dumps(others, ensure_ascii=False)}"
        kept["description"] = f"{kept.get('description', '')} {words}".strip()[:_WORDS]
    required = [name for name in kept.pop("required", ()) if not fields or name in named]
    return {**kept, "required": required} if required else kept


def _referenced(value: Any) -> set[str]:
    """Return the names of the definitions to which a bounded schema refers."""
    if isinstance(value, list):
        return {name for one in value for name in _referenced(one)}
    if not isinstance(value, dict):
        return set()
    found = {name for one in value.values() for name in _referenced(one)}
    place = _PLACE.fullmatch(value["$ref"]) if isinstance(value.get("$ref"), str) else None
    return found | {place[1]} if place else found


def _keep_known(schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for word, value in schema.items():
        if word in _KEPT and (inner := _keyword(word, value, depth)) is not None:
            kept[word] = inner
        elif word == "$ref" and isinstance(value, str) and _PLACE.fullmatch(value):
            kept[word] = value
    if isinstance(properties := kept.get("properties"), dict):
        named = [n for n in kept.get("required", ()) if n in properties]
        kept.pop("required", None)
        kept.update({"required": named} if named else {})
    return kept


def _keyword(word: str, value: Any, depth: int) -> Any:
    """Return the bounded value of a keyword; None if the value has the wrong type."""
    if word in _TABLES:
        return _table(value, depth) if isinstance(value, Mapping) else None
    if word in _SCHEMAS and isinstance(value, Mapping):
        return _inner(value, depth)
    if word in _CHOICES:
        parts = value if isinstance(value, list) else []
        return [_inner(part, depth) for part in parts] or None
    if word in _TEXTS:
        return printable(value)[:_WORDS] if isinstance(value, str) else None
    if word in _NUMBERS:
        return _writable(value) if _IS["number"](value) else None
    if word in _COUNTS:
        return _writable(value) if _IS["integer"](value) and value >= 0 else None
    return _PLAIN[word](value) if word in _PLAIN else None


def _table(value: Mapping[str, Any], depth: int) -> dict[str, Any]:
    return {printable(str(name))[:100]: _inner(part, depth) for name, part in value.items()}


def _kinds(value: Any) -> Any:
    kinds = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    known = list(dict.fromkeys(kind for kind in kinds if isinstance(kind, str) and kind in _IS))
    return (known[0] if isinstance(value, str) else known) if known else None


def _names(value: Any) -> list[str] | None:
    names = value if isinstance(value, list) else []
    return list(dict.fromkeys(name for name in names if isinstance(name, str))) or None


def _writable(value: Any) -> Any:
    """Return the value, None if JSON cannot express it (an infinite number)."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return None
    return value


def _inner(schema: Any, depth: int) -> dict[str, Any]:
    return _keep_known(schema, depth - 1) if isinstance(schema, Mapping) and depth > 0 else {}


def _mismatches(value: Any, schema: Mapping[str, Any], name: str, depth: int) -> Iterator[str]:
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if kinds and not any(_IS[kind](value) for kind in kinds):
        yield f"{name} must be {' or '.join(kinds)}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{name} must be one of {json.dumps(schema['enum'], ensure_ascii=False)[:_WORDS]}"
    elif "const" in schema and value != schema["const"]:
        yield f"{name} must be {json.dumps(schema['const'], ensure_ascii=False)[:_WORDS]}"
    elif depth > 0 and isinstance(value, Mapping):
        yield from _in_object(value, schema, name, depth)
    elif depth > 0 and isinstance(value, (list, tuple)) and "items" in schema:
        for number, item in enumerate(value, start=1):
            yield from _mismatches(item, schema["items"], f"{name}[{number}]", depth - 1)


def _in_object(
    value: Mapping[str, Any], schema: Mapping[str, Any], name: str, depth: int
) -> Iterator[str]:
    known = schema.get("properties", {})
    yield from (f"{name} lacks {key!r}" for key in schema.get("required", ()) if key not in value)
    for key, inner in value.items():
        if key in known:
            yield from _mismatches(inner, known[key], key, depth - 1)
        elif schema.get("additionalProperties") is False:
            yield f"{name} must not have {key!r}"
