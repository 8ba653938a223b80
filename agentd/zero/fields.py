"""The fields between the braces of a node or a graph, each with its place in the text."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from agentd.zero.faults import BadShape, BadSyntax
from agentd.zero.tokens import SourceText
from agentd.zero.values import Array, Map, Value, kind_of, share_of

Field = TypeVar("Field")
_FIELDS_KINDS: dict[type, str] = {str: "a String", int: "an Int", Map: "a Map", Array: "an Array"}


class Fields:
    """Fields by name, each to be taken once. `owner` is the node or graph as errors call it, `at`
    the offset where it begins.
    """

    def __init__(self, source: SourceText, owner: str, at: int) -> None:
        self.owner = owner
        self._source = source
        self._at = at
        self._values: dict[str, Value] = {}
        self._places: dict[str, int] = {}

    @property
    def place(self) -> tuple[int, int]:
        """The line and column where the node or graph begins."""
        return self._source.place(self._at)

    def add(self, name: str, value: Value, at: int) -> None:
        """Keep a field. Raises BadSyntax if there is already one of this name."""
        if name in self._places:
            line, column = self._source.place(at)
            raise BadSyntax(f"the key {name[:40]!r} is there twice", line=line, column=column)
        self._values[name] = value
        self._places[name] = at

    def has(self, name: str) -> bool:
        """Whether the field exists and was not taken."""
        return name in self._values

    def raw(self, name: str) -> Value:
        """Take the field, whatever its kind; Null if it is absent."""
        return self._values.pop(name, None)

    def take(self, name: str, kind: type[Field], default: Field | None = None) -> Field:
        """Take the field, or `default` if it is absent. Raises BadShape if it is of another kind,
        or absent without a default.
        """
        if name not in self._values:
            if default is None:
                raise self.missing(name)
            return default
        value = self._values.pop(name)
        if isinstance(value, kind) and (kind is not int or not isinstance(value, bool)):
            return value
        raise self.wrong(
            name, f"{name} of {self.owner} is {_FIELDS_KINDS[kind]}, not {kind_of(value)}"
        )

    def names(self, name: str) -> tuple[str, ...]:
        """Take an Array of Strings; () if it is absent. Raises BadShape for another kind."""
        if name not in self._values:
            return ()
        value = self._values.pop(name)
        if isinstance(value, Array):
            found = tuple(item for item in value if isinstance(item, str))
            if len(found) == len(value):
                return found
        raise self.wrong(name, f"{name} of {self.owner} is an Array of Strings")

    def share(self, name: str, default: float) -> float:
        """Take a number from 0 to 1, or `default` if it is absent. Raises BadShape for another
        value.
        """
        if name not in self._values:
            return default
        found = share_of(self._values.pop(name))
        if found is None:
            raise self.wrong(name, f"{name} of {self.owner} is a number from 0 to 1")
        return found

    def rest(self, given: Collection[str]) -> dict[str, Value]:
        """Return the fields that were not taken. Raises BadShape if one of their names is in
        `given`.
        """
        for name in self._values:
            if name in given:
                raise self.wrong(name, f"{name[:40]} of {self.owner} is given in two places")
        return self._values

    def missing(self, name: str) -> BadShape:
        """Return the error for an absent field."""
        line, column = self.place
        return BadShape(f"{self.owner} has no {name}", line=line, column=column)

    def wrong(self, name: str, message: str) -> BadShape:
        """Return an error with the place of a field."""
        line, column = self._source.place(self._places[name])
        return BadShape(message, line=line, column=column)
